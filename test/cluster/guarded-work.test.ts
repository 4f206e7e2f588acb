import { afterAll, beforeAll, expect, it } from 'vitest';
import { SELECTED_NODE_ANNOTATION } from '../../src/api/storage.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../src/kube/volumes.ts';
import type { ClaimAction, ClaimFacts } from '../../src/dependents/claim-decision.ts';
import { reportOf } from '../../src/dependents/claim-report.ts';
import { ClaimWriter } from '../../src/dependents/claim-writer.ts';
import { MemberCopies } from '../../src/dependents/member-copies.ts';
import { readMemberVolume } from '../../src/api/member-volume.ts';
import { memberClaimFor } from '../../src/dependents/member-volume.ts';
import { type ClaimCopy, recordOfCopy } from '../../src/dependents/copy.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { type EventOutcome, EventRecorder } from '../../src/kube/event-recorder.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { HOME } from '../fixtures/claims.ts';
import { type Guarded, MANAGER, startGuarded, untilRefused } from './guard-harness.ts';

/** What the program itself writes passes the policies that keep a thief from writing anything else. */
let guarded: Guarded;
let client: KubeClient;

beforeAll(async () => {
  const files = ['crds/spillway.dev_memberclusters.yaml', 'rbac.yaml', 'node-guard.yaml', 'storage.yaml'];
  guarded = await startGuarded(MANAGER, ...files);
  const { server, ca, cert, key } = guarded.thief.access;
  client = new KubeClient({ cluster: 'host', ...staticAccess({ endpoint: { server, ca }, cert, key }) });
});
afterAll(async () => {
  await client?.close();
  await guarded?.close();
});

it('a claim finds its place, is told about, and its volume goes with it', async () => {
  const { cluster, thief } = guarded;
  const { signal } = new AbortController();
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
  const volumes = '/api/v1/persistentvolumes';
  const storageClass = (await cluster.api.call(
    'GET',
    '/apis/storage.k8s.io/v1/storageclasses/spillway',
  )) as StorageClass;
  const readClaim = async (): Promise<PersistentVolumeClaim> =>
    (await cluster.api.call('GET', `${claims}/db`)) as PersistentVolumeClaim;
  await cluster.apply([
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: 'db',
        namespace: 'default',
        annotations: { [SELECTED_NODE_ANNOTATION]: 'east' },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'spillway',
        resources: { requests: { storage: '1Gi' } },
      },
    },
  ]);
  await untilRefused(
    () => thief.call('PATCH', `${claims}/db?dryRun=All`, { metadata: { labels: { a: 'b' } } }),
    'claim-guard',
  );
  const noVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'x' },
    spec: { hostPath: { path: '/' } },
  };
  const spec = { ...noVolume.spec, accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } };
  await untilRefused(() => thief.call('POST', `${volumes}?dryRun=All`, { ...noVolume, spec }), 'volume-guard');

  const writer = new ClaimWriter({
    hostId: 'h1',
    host: client,
    copies: new MemberCopies({ client, hostId: 'h1' } as ConstructorParameters<typeof MemberCopies>[0]),
    confirmIdentity: async () => await Promise.resolve(true),
    memberNamespaceOf: (namespace) => namespace,
    ensureNamespace: async (namespace) => await Promise.resolve({ namespace }),
  });
  const perform = async (action: ClaimAction): Promise<string> => {
    const facts: ClaimFacts = {
      claim: await readClaim(),
      storageClass,
      volume: undefined,
      home: HOME,
      copy: undefined,
      knowledge: { known: true },
      answer: undefined,
      place: 'default',
      wanted: true,
      plan: () => 'none',
    };
    return await writer.perform(facts, action, signal);
  };
  expect(await perform({ do: 'refuse', refusal: { reason: 'Any', message: 'any' } })).toBe('done');
  expect((await readClaim()).metadata.annotations).not.toHaveProperty([SELECTED_NODE_ANNOTATION]);
  expect(await perform({ do: 'bind' })).toBe('done');

  const claim = await readClaim();
  const path = `${volumes}/pvc-${claim.metadata.uid ?? ''}`;
  const readVolume = async () => readMemberVolume((await cluster.api.call('GET', path)) as PersistentVolume);
  const made = memberClaimFor(claim, undefined, { hostId: 'h1', namespace: 'default' });
  const copy = recordOfCopy('PersistentVolumeClaim', {
    ...made,
    metadata: { ...made.metadata, uid: 'member-claim' },
    spec: { ...made.spec, volumeName: 'pv-in-member' },
    status: { phase: 'Bound', capacity: { storage: '2Gi' }, conditions: [{ type: 'Resizing', status: 'True' }] },
  } as PersistentVolumeClaim) as ClaimCopy;
  let volume = await readVolume();
  if (volume === undefined) throw new Error('the volume is not there');
  expect(await perform({ do: 'note', volume, copy })).toBe('done');
  volume = await readVolume();
  if (volume === undefined) throw new Error('the volume is not there');
  const report = reportOf(claim, volume, copy);
  if (report === undefined) throw new Error('there is nothing to report');
  expect(Object.keys(report).sort()).toEqual(['claim', 'status', 'volume']);
  expect(await perform({ do: 'report', report })).toBe('done');
  expect((await readClaim()).status).toMatchObject({ capacity: { storage: '2Gi' } });

  await cluster.api.call('PATCH', `${path}/status`, { status: { phase: 'Released' } });
  expect(await writer.reclaim(volume, { do: 'volume' }, HOME.identity, signal)).toBe('done');
});

it('Events are written, and counted when they come again, also by another life of the program', async () => {
  const outcomes: EventOutcome[] = [];
  const stop = new AbortController();
  for (const message of ['something is wrong', 'something is wrong']) {
    const recorder = new EventRecorder({
      client,
      component: 'spillway',
      onOutcome: (outcome) => outcomes.push(outcome),
    });
    const subject = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web', uid: 'u' };
    recorder.record(subject, 'Warning', 'Any', message);
    stop.abort();
    await recorder.run(stop.signal);
  }
  expect(outcomes).toEqual(['created', 'patched']);
});
