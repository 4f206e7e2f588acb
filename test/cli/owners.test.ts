import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownersOf } from '../../src/cli/owners.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { isNotFound } from '../../src/kube/errors.ts';
import { get } from '../../src/kube/verbs.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';

let api: MemoryApi;
let server: MemoryApiServer;
let client: KubeClient;

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  client = server.client('host');
});
afterEach(async () => await server.close());

const signal = new AbortController().signal;
const host: Parameters<typeof ownersOf>[0] = {
  get client() {
    return client;
  },
  ask: async (_, work) => await work(signal),
  tryGet: async (resource, ref) => {
    try {
      return await get(client, resource, ref, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  },
};

const of = (apiVersion: string, kind: string, name: string): object => ({
  ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true }],
});
const podOf = (owner: object): Pod => ({
  metadata: { name: 'a', namespace: 'shop', uid: 'uid-a', ...owner },
  spec: { containers: [] },
});

test('the owners of a pod that was released are those it had', async () => {
  const path = '/apis/apps/v1/namespaces/shop';
  const put = (plural: string, name: string, more: object): void => {
    const metadata = { name, namespace: 'shop', uid: `uid-${name}`, ...more };
    api.put(`${path}/${plural}/${name}`, { metadata, spec: { replicas: 1 } });
  };
  put('replicasets', 'web-h', of('apps/v1', 'Deployment', 'web'));
  put('deployments', 'web', {});
  const mark = { hash: 'h', replicaSet: 'web-h', uid: 'uid-web-h', at: '2026-03-01T12:00:00Z', ready: 1 };
  const annotations = { 'spillway.dev/released': JSON.stringify(mark) };
  const { chain } = await ownersOf(host, podOf({ labels: { app: 'web' }, annotations }));
  expect(chain.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
    'Pod a',
    'ReplicaSet web-h',
    'Deployment web',
  ]);
  expect(chain[0].metadata.labels).toEqual({ app: 'web', 'pod-template-hash': 'h' });
});

test('owners of kinds that are not Kubernetes own are read, and what is above them', async () => {
  const put = (path: string, name: string, more: object): void => {
    api.put(`${path}/${name}`, { metadata: { name, namespace: 'shop', uid: `uid-${name}`, ...more }, spec: {} });
  };
  const labels = { tier: 'front' };
  put('/apis/core.strimzi.io/v1/namespaces/shop/strimzipodsets', 'set', of('kafka.strimzi.io/v1', 'Kafka', 'events'));
  put('/apis/kafka.strimzi.io/v1/namespaces/shop/kafkas', 'events', { labels });
  const { chain, missing } = await ownersOf(host, podOf(of('core.strimzi.io/v1', 'StrimziPodSet', 'set')));
  expect(chain.map(({ kind, metadata }) => [kind, metadata.name, metadata.labels])).toEqual([
    ['Pod', 'a', undefined],
    ['StrimziPodSet', 'set', undefined],
    ['Kafka', 'events', labels],
  ]);
  expect(missing).toBeUndefined();
});

test.each([
  ['example.com/v1', 'Robot'],
  ['argoproj.io/v1alpha1', 'Robot'],
  ['v1', 'Node'],
])('of %s %s only the name is known, as the pod says it', async (apiVersion, kind) => {
  const { chain } = await ownersOf(host, podOf(of(apiVersion, kind, 'r')));
  expect(chain.slice(1)).toEqual([{ apiVersion, kind, metadata: { name: 'r', namespace: 'shop', uid: 'uid-r' } }]);
});
