import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Namespace, Pod } from '../../src/kube/core-v1.ts';
import { HostClaims } from '../../src/dependents/host-claims.ts';
import { memberClaimFor } from '../../src/dependents/member-volume.ts';
import { ObservedClaims } from '../../src/dependents/observed-claims.ts';
import { Informer } from '../../src/kube/informer.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';
import { HOME, hostClaim, storageClass, volumeFor } from '../fixtures/claims.ts';
import { HOST_ID } from '../fixtures/dependents.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

const ZONE = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }] };
const EAST = {
  metadata: { name: HOME.member },
  spec: { storage: HOME.storage, virtualNodes: [] },
} as unknown as MemberCluster;
const pod = (claim: string): Pod => ({
  metadata: { name: 'web', namespace: 'shop', uid: 'web' },
  spec: { containers: [], volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }] },
});

let host: MemoryApi;
let member: MemoryApi;
let servers: MemoryApiServer[];
let end: AbortController;
let running: Promise<unknown>[];

beforeEach(async () => {
  [host, member] = [new MemoryApi(), new MemoryApi()];
  servers = [await serveMemoryApi(host), await serveMemoryApi(member)];
  end = new AbortController();
  running = [];
});
afterEach(async () => {
  end.abort();
  await Promise.all(running);
  for (const server of servers) await server.close();
});

function make(api: MemoryApi, path: string, object: object): { metadata: { uid: string } } {
  const { metadata } = object as { metadata: object };
  const body = { ...object, metadata: { ...metadata, resourceVersion: undefined } };
  const request = { method: 'POST', path, query: {}, body, contentType: 'application/json' };
  return api.handle(request) as { metadata: { uid: string } };
}

test('who only observes a member knows which of its nodes can use the volumes of claims, and reads no more than that', async () => {
  const logger = pino({ level: 'silent' });
  const [hostServer, memberServer] = servers;
  if (hostServer === undefined || memberServer === undefined) throw new Error('no servers');
  const hostClaims = new HostClaims({ host: hostServer.client('host'), logger });
  const client = memberServer.client('east');
  const namespaces = new Informer<Namespace>({ client, resource: NAMESPACES });
  const claims = new ObservedClaims({
    client,
    hostId: HOST_ID,
    namespaces,
    isUsable: () => true,
    hostClaims,
    member: () => EAST,
    identity: () => HOME.identity,
    logger,
  });
  make(member, '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 't-shop' } });
  running.push(hostClaims.run(end.signal), namespaces.run(end.signal), claims.run(end.signal));
  await until('the caches are complete', () => namespaces.hasSynced && hostClaims.unknown() === undefined);
  make(host, '/apis/storage.k8s.io/v1/storageclasses', storageClass());
  const claimOf = hostClaim();
  const inHost = make(host, '/api/v1/namespaces/shop/persistentvolumeclaims', claimOf);
  const mine = hostClaim({ volumeName: volumeFor(hostClaim({}, inHost.metadata)).metadata.name }, inHost.metadata);
  host.edit('/api/v1/namespaces/shop/persistentvolumeclaims/db', { spec: mine.spec });
  make(host, '/api/v1/persistentvolumes', volumeFor(mine));
  const copy = memberClaimFor(mine, 'ssd', { hostId: HOST_ID, namespace: 't-shop' });
  make(member, '/api/v1/persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1' },
    spec: { nodeAffinity: { required: ZONE } },
  });
  make(member, '/api/v1/namespaces/t-shop/persistentvolumeclaims', {
    ...copy,
    spec: { ...copy.spec, volumeName: 'pv-1' },
  });
  await until('the place of the volume is known', () => claims.places.placesOf(pod('db')).length > 0);
  expect(claims.places.placesOf(pod('db'))).toEqual([ZONE]);
  expect(claims.places.refusalOf(pod('db'), 't-shop')).toBeUndefined();
  expect(claims.places.placesOf(pod('other'))).toEqual([]);
  expect(new Set(member.seen.map(({ method }) => method))).toEqual(new Set(['GET']));
  expect(member.seen.filter(({ path }) => /secrets|configmaps/.test(path))).toEqual([]);
});
