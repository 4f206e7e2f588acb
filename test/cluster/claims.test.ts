import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../src/kube/volumes.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import {
  eventsOf,
  type Fields,
  getPod,
  IDLE,
  kubectl,
  letGo,
  newNamespace,
  pod,
  podSpec,
  read,
  readPod,
  shell,
  untilGone,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import type { FaultProxy } from '../fixtures/fault-proxy.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { diskClass, type Provisioner, startProvisioner } from '../fixtures/provisioner.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

type TimedEvent = KubeObject & { reason: string; involvedObject: { kind: string; name: string } };

const NS = 'data';
/** A process has just started on a machine that others use, too. */
const PATIENT = { timeoutMs: 60_000 };
const CLASSES = [
  { host: 'spillway' },
  { host: 'kept', member: 'slow' },
  { host: 'at-once', member: 'fast' },
  { host: 'gone', member: 'missing' },
];

let topology: Topology;
let host: Cluster;
let east: Cluster;
let disks: Provisioner;
let west: Cluster;
/** Between the program and west. */
let proxy: FaultProxy;
let disksOfWest: Provisioner;

beforeAll(async () => {
  const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 };
  const options = { spec: { storage: { classes: CLASSES }, probe } };
  topology = await startTopology({
    members: [
      { name: 'east', kwok: { nodes: 2 }, options },
      { name: 'west', kwok: { nodes: 1 }, unregistered: true },
    ],
  });
  ({ host } = topology);
  east = topology.member('east').cluster;
  disks = startProvisioner(east);
  const isDefault = { name: 'disk', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } };
  await east.apply([
    diskClass('disk', { metadata: isDefault }),
    diskClass('slow'),
    diskClass('fast', { volumeBindingMode: 'Immediate' }),
  ]);
  const ofMembers = { provisioner: 'member.spillway.dev' };
  await host.apply([
    diskClass('kept', { ...ofMembers, reclaimPolicy: 'Retain' }),
    diskClass('gone', ofMembers),
    diskClass('at-once', { ...ofMembers, volumeBindingMode: 'Immediate', parameters: { member: 'east' } }),
  ]);
  await newNamespace(host, NS);
  west = topology.member('west').cluster;
  disksOfWest = startProvisioner(west);
  await west.apply([diskClass('disk', { metadata: isDefault })]);
  proxy = await addProxiedMember(host, west, { spec: { probe } });
  await waitForNode(host, 'west');
});
afterAll(async () => {
  await Promise.all([disks?.close(), disksOfWest?.close()]);
  await topology?.close();
  await proxy?.close();
});

const claimPath = (name = ''): string => `/api/v1/namespaces/${NS}/persistentvolumeclaims/${name}`;
const claimOf = async (cluster: Cluster, name: string): Promise<PersistentVolumeClaim> => {
  const claim = await read<PersistentVolumeClaim>(cluster, claimPath(name));
  if (claim === undefined) throw new Error(`no claim ${name} in ${cluster.name}`);
  return claim;
};

async function makeClaim(name: string, storageClassName: string, more: Fields = {}): Promise<void> {
  const resources = { requests: { storage: '100Mi' } };
  const spec = { accessModes: ['ReadWriteOnce'], resources, storageClassName, ...more };
  await host.api.call('POST', claimPath(), {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec,
  });
}

function using(name: string, claim: string, more: Fields = {}): Fields {
  const container = shell(IDLE, { volumeMounts: [{ name: 'data', mountPath: '/data' }] });
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: claim } }];
  return pod(name, NS, podSpec([container], { volumes, ...more }));
}

const metrics = async (): Promise<string> => await (await fetch(`${topology.spillway.url}/metrics`)).text();

const onEast = { nodeSelector: { 'kubernetes.io/hostname': 'east' } };

test('a claim goes where its first pod goes, and all later pods follow it', async () => {
  await makeClaim('first', 'spillway');
  await host.apply([using('one', 'first', onEast)]);
  await untilRunning(host, NS, 'one');
  const below = await claimOf(east, 'first');
  expect(below.spec.storageClassName).toBe('disk');
  expect(below.status?.phase).toBe('Bound');
  const shown = await until('the claim tells where its data are', async () => {
    const claim = await claimOf(host, 'first');
    return claim.status?.capacity?.['storage'] === '1Gi' && claim;
  });
  expect(shown.metadata.annotations).toMatchObject({
    'spillway.dev/member': 'east',
    'spillway.dev/member-volume': below.spec.volumeName,
  });
  const volume = await read<PersistentVolume>(host, `/api/v1/persistentvolumes/${shown.spec.volumeName}`);
  expect(volume?.spec.capacity).toEqual({ storage: '1Gi' });

  await kubectl(host, ['delete', 'pod', 'one', '-n', NS, '--wait=false']);
  await untilGone(host, NS, 'one');
  // Nothing but the claim says where.
  await host.apply([using('two', 'first')]);
  await untilRunning(host, NS, 'two');
  expect((await getPod(host, NS, 'two')).spec.nodeName).toBe('east');
  expect((await claimOf(east, 'first')).metadata.uid).toBe(below.metadata.uid);
  expect(disks.deleted).toEqual([]);
});

test('a claim of blocks is one in the member, too, and its pod has the device', async () => {
  await makeClaim('blocks', 'spillway', { volumeMode: 'Block' });
  const container = shell(IDLE, { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] });
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'blocks' } }];
  await host.apply([pod('raw', NS, podSpec([container], { volumes, ...onEast }))]);
  await untilRunning(host, NS, 'raw');
  const below = await claimOf(east, 'blocks');
  expect(below.spec.volumeMode).toBe('Block');
  expect(below.status?.phase).toBe('Bound');
  const above = await claimOf(host, 'blocks');
  expect(above.status?.phase).toBe('Bound');
  const volume = await read<PersistentVolume>(host, `/api/v1/persistentvolumes/${above.spec.volumeName}`);
  expect(volume?.spec.volumeMode).toBe('Block');
  const [main] = (await getPod(east, NS, 'raw')).spec.containers;
  expect(main).toMatchObject({ volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] });
  await kubectl(host, ['delete', 'pod', 'raw', '-n', NS, '--wait=false']);
});

test('what cannot be used in the member is refused at once, in words, on claim and pod', async () => {
  await host.apply([diskClass('unmapped', { provisioner: 'member.spillway.dev' })]);
  await makeClaim('nowhere', 'unmapped');
  // The first by the scheduler, which asks for a volume before it binds the pod; the other past it.
  await host.apply([using('asked', 'nowhere', onEast)]);
  const why = await until('the claim says why', async () => {
    const events = await eventsOf(host, NS, 'nowhere', 'PersistentVolumeClaim');
    return events.find(({ reason }) => reason === 'ClaimClassNotMapped');
  });
  expect(why.message).toContain('storage class "unmapped", which is nothing in that cluster');
  await host.apply([using('bound', 'nowhere', { nodeSelector: undefined, nodeName: 'east' })]);
  const held = await untilPod(host, NS, 'bound', 'says why', ({ status }) => status?.reason === 'ClaimClassNotMapped');
  expect(held.status?.message).toContain('spec.storage.classes of MemberCluster "east"');
  expect(await read(east, claimPath('nowhere'))).toBeUndefined();
  expect((await claimOf(host, 'nowhere')).status?.phase).toBe('Pending');
  await kubectl(host, ['delete', 'pod', 'asked', 'bound', '-n', NS]);
});

test('files of nodes are shown to pods only where the MemberCluster allows the path', async () => {
  const withPath = (name: string, path: string): Fields => {
    const container = shell(IDLE, { volumeMounts: [{ name: 'files', mountPath: '/files' }] });
    return pod(name, NS, podSpec([container], { volumes: [{ name: 'files', hostPath: { path } }], nodeName: 'east' }));
  };
  const refused = async (name: string): Promise<string> => {
    const held = await untilPod(host, NS, name, 'is held', ({ status }) => status?.reason === 'HostPathNotAllowed');
    expect(await readPod(east, NS, name)).toBeUndefined();
    return held.status?.message ?? '';
  };
  await host.apply([withPath('logs', '/var/log/app'), withPath('beside', '/var/logs'), withPath('keys', '/etc')]);
  for (const name of ['logs', 'beside', 'keys']) expect(await refused(name)).toContain('hostPath volumes are refused');
  const member = '/apis/spillway.dev/v1alpha1/memberclusters/east';
  const allow = (hostPath: object | null): Promise<unknown> => host.api.call('PATCH', member, { spec: { hostPath } });
  await expect(allow({ policy: 'Allow' })).rejects.toThrow('policy Allow needs at least one path');
  await expect(allow({ policy: 'Allow', allowedPrefixes: ['/var/../etc'] })).rejects.toThrow('allowedPrefixes[0]');
  await allow({ policy: 'Allow', allowedPrefixes: ['/var/log'] });
  // The namespace was made for these pods, so its level is one that they are beyond; its owner may say otherwise.
  const beyond = await untilPod(host, NS, 'logs', 'waits', ({ status }) => status?.reason === 'MemberPodSecurity');
  expect(beyond.status?.message).toMatch(/violates PodSecurity "baseline:latest".*spec\.namespaces\.podSecurity/);
  await kubectl(east, ['label', '--overwrite', 'namespace', NS, 'pod-security.kubernetes.io/enforce=privileged']);
  await untilRunning(host, NS, 'logs');
  expect((await getPod(east, NS, 'logs')).spec.volumes?.[0]?.hostPath?.path).toBe('/var/log/app');
  expect(await refused('beside')).toContain('"/var/logs"');
  expect(await refused('keys')).toContain('"/etc"');
  await allow(null);
  await kubectl(host, ['delete', 'pod', 'logs', 'beside', 'keys', '-n', NS]);
});

test('what the member says of a claim is on the claim and on the pod that waits for it', async () => {
  await makeClaim('stuck', 'gone');
  await host.apply([using('waits', 'stuck', onEast)]);
  const said = 'storageclass.storage.k8s.io "missing" not found';
  for (const [kind, name, message] of [
    ['pod', 'waits', `Cluster "east", claim "stuck": ${said}`],
    ['pvc', 'stuck', `Cluster "east": ${said}`],
  ] as const) {
    await until(`kubectl describe ${kind} shows it`, async () => {
      const shown = await kubectl(host, ['describe', kind, name, '-n', NS]);
      return shown.includes('ProvisioningFailed') && shown.includes(message);
    });
  }
  // To the second, as Events tell the time.
  const time = async (cluster: Cluster, kind: string, name: string): Promise<number> => {
    const events = (await cluster.api.call('GET', `/api/v1/namespaces/${NS}/events`)) as { items: TimedEvent[] };
    const found = events.items.find(
      ({ reason, involvedObject }) =>
        reason === 'ProvisioningFailed' && involvedObject.kind === kind && involvedObject.name === name,
    );
    return Date.parse(found?.metadata.creationTimestamp ?? '');
  };
  const below = await time(east, 'PersistentVolumeClaim', 'stuck');
  for (const [kind, name] of [
    ['Pod', 'waits'],
    ['PersistentVolumeClaim', 'stuck'],
  ] as const) {
    expect((await time(host, kind, name)) - below).toBeLessThanOrEqual(20_000);
  }
  await kubectl(host, ['delete', 'pod/waits', 'pvc/stuck', '-n', NS]);
});

test('override policies choose the class of a claim in the member, and a wrong one holds only its pods', async () => {
  const policy = (name: string, selector: object, overriders: object): Fields => ({
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'OverridePolicy',
    metadata: { name, namespace: NS },
    spec: { resourceSelectors: [{ apiVersion: 'v1', ...selector }], overrideRules: [{ overriders }] },
  });
  const slow = { storageClassOverrider: [{ from: 'spillway', operator: 'replace', value: 'slow' }] };
  const larger = { plaintext: [{ path: '/spec/resources/requests/storage', operator: 'replace', value: '9Gi' }] };
  await host.apply([
    policy('chosen', { kind: 'PersistentVolumeClaim', name: 'chosen' }, slow),
    policy('of-pod', { kind: 'Pod', name: 'brings' }, slow),
    policy('wrong', { kind: 'PersistentVolumeClaim', name: 'wrong' }, larger),
  ]);
  for (const name of ['chosen', 'plain', 'wrong', 'unmapped-still']) {
    await makeClaim(name, name === 'unmapped-still' ? 'unmapped' : 'spillway');
  }
  const spec = {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'spillway',
    resources: { requests: { storage: '1Gi' } },
  };
  const volumes = [{ name: 'own', ephemeral: { volumeClaimTemplate: { spec } } }];
  await host.apply([
    using('with-chosen', 'chosen', onEast),
    using('with-plain', 'plain', onEast),
    using('with-wrong', 'wrong', onEast),
    using('with-unmapped', 'unmapped-still', { nodeName: 'east', nodeSelector: undefined }),
    pod(
      'brings',
      NS,
      podSpec([shell(IDLE, { volumeMounts: [{ name: 'own', mountPath: '/own' }] })], { volumes, ...onEast }),
    ),
  ]);
  for (const name of ['with-chosen', 'with-plain', 'brings']) await untilRunning(host, NS, name);
  expect((await claimOf(east, 'chosen')).spec.storageClassName).toBe('slow');
  expect((await claimOf(east, 'brings-own')).spec.storageClassName).toBe('slow');
  expect((await claimOf(east, 'plain')).spec.storageClassName).toBe('disk');
  const record = async (name: string): Promise<string> =>
    (await claimOf(east, name)).metadata.annotations?.['spillway.dev/applied-overrides'] ?? '';
  expect(await record('chosen')).toContain(`"OverridePolicy ${NS}/chosen"`);
  expect(await record('brings-own')).toContain(`"OverridePolicy ${NS}/of-pod"`);
  expect(await record('plain')).toBe('');
  const held = await untilPod(host, NS, 'with-wrong', 'is held', ({ status }) => status?.reason === 'OverrideRefused');
  expect(held.status?.message).toContain(`OverridePolicy ${NS}/wrong, overrideRules[0]`);
  await untilPod(host, NS, 'with-unmapped', 'is held', ({ status }) => status?.reason === 'ClaimClassNotMapped');
  // It goes on by itself once the policy is gone.
  await kubectl(host, ['delete', 'overridepolicy', 'wrong', '-n', NS]);
  await untilRunning(host, NS, 'with-wrong');
  expect((await claimOf(east, 'wrong')).spec.resources?.requests?.['storage']).toBe('100Mi');
  await kubectl(host, [
    'delete',
    'pod',
    'with-chosen',
    'with-plain',
    'with-wrong',
    'with-unmapped',
    'brings',
    '-n',
    NS,
  ]);
  await kubectl(host, ['delete', 'pvc', 'chosen', 'plain', 'wrong', 'unmapped-still', '-n', NS]);
});

test('a generic ephemeral volume lives and ends with its pod', async () => {
  const container = shell(IDLE, { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] });
  const resources = { requests: { storage: '1Gi' } };
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'spillway', resources };
  const volumes = [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec } } }];
  await host.apply([pod('brief', NS, podSpec([container], { volumes, ...onEast }))]);
  await untilRunning(host, NS, 'brief');
  const { metadata, spec: below } = await claimOf(east, 'brief-scratch');
  // The member's own controller would end it with the member pod.
  expect(metadata.ownerReferences).toBeUndefined();
  await kubectl(host, ['delete', 'pod', 'brief', '-n', NS, '--wait=false']);
  await until('its data are gone', () => disks.deleted.includes(below.volumeName ?? 'none'));
  await until('nothing of it is left', async () => {
    const volumes = (await host.api.call('GET', '/api/v1/persistentvolumes')) as { items: PersistentVolume[] };
    const left = volumes.items.some(({ spec: { claimRef } }) => claimRef?.name === 'brief-scratch');
    return !left && (await read(east, claimPath('brief-scratch'))) === undefined;
  });
});

test('a claim that binds at once is where its class says; a larger size goes down, and comes up', async () => {
  await makeClaim('ready', 'at-once');
  await until('it is bound', async () => (await claimOf(host, 'ready')).status?.phase === 'Bound');
  await host.apply([using('late', 'ready')]);
  await untilRunning(host, NS, 'late');
  expect((await claimOf(east, 'ready')).spec.storageClassName).toBe('fast');
  await host.api.call('PATCH', claimPath('ready'), { spec: { resources: { requests: { storage: '3Gi' } } } });
  await until('it is larger', async () => (await claimOf(host, 'ready')).status?.capacity?.['storage'] === '3Gi');
  const { spec } = await claimOf(host, 'ready');
  const volume = await read<PersistentVolume>(host, `/api/v1/persistentvolumes/${spec.volumeName}`);
  expect(volume?.spec.capacity).toEqual({ storage: '3Gi' });
});

test('policy Retain keeps data, and no later claim gets them', async () => {
  await makeClaim('memories', 'kept');
  await host.apply([using('writer', 'memories', onEast)]);
  await untilRunning(host, NS, 'writer');
  const { metadata } = await claimOf(east, 'memories');
  await kubectl(host, ['delete', 'pod/writer', 'pvc/memories', '-n', NS]);
  await makeClaim('memories', 'kept');
  await host.apply([using('reader', 'memories', onEast)]);
  await untilPod(host, NS, 'reader', 'waits', ({ status }) => status?.reason === 'ClaimNameTaken');
  expect((await claimOf(east, 'memories')).metadata.uid).toBe(metadata.uid);
  await kubectl(host, ['delete', 'pod', 'reader', '-n', NS]);
  expect(await metrics()).toMatch(/spillway_claim_steps_total\{.*step="create".*\} [1-9]/);
});

test('an outage of the member deletes nothing, keeps pods where their data are, and deletions wait for its end', async () => {
  const onWest = { nodeSelector: { 'kubernetes.io/hostname': 'west' } };
  for (const name of ['kept-there', 'doomed']) await makeClaim(name, 'spillway');
  await host.apply([using('first-user', 'kept-there', onWest), using('last-user', 'doomed', onWest)]);
  for (const name of ['first-user', 'last-user']) await untilRunning(host, NS, name);
  const before = await claimOf(west, 'kept-there');
  const doomed = (await claimOf(west, 'doomed')).spec.volumeName ?? 'none';
  await kubectl(host, ['delete', 'pod', 'first-user', 'last-user', '-n', NS, '--wait=false']);
  for (const name of ['first-user', 'last-user']) await untilGone(host, NS, name);

  proxy.inject({ kind: 'reset', when: 'before' });
  proxy.resetConnections();
  await kubectl(host, ['wait', 'node/west', '--for=condition=spillway.dev/MemberReachable=False', '--timeout=60s']);
  await host.apply([using('pinned', 'kept-there'), using('sent', 'kept-there', { nodeName: 'west' })]);
  // Not bound yet, it is for the scheduler to say.
  const why = await until(
    'the scheduler says what keeps the pod',
    async () => (await eventsOf(host, NS, 'pinned')).find(({ reason }) => reason === 'FailedScheduling'),
    PATIENT,
  );
  expect(why.message).toContain("didn't match PersistentVolume's node affinity");
  expect(why.message).toContain('untolerated taint');
  const told = await until(
    'the claim says where its data are',
    async () => {
      const events = await eventsOf(host, NS, 'kept-there', 'PersistentVolumeClaim');
      return events.find(({ reason }) => reason === 'MemberUnreachable');
    },
    PATIENT,
  );
  expect(told.message).toMatch(/^Cluster "west", where the data of the claim are, does not answer/);
  const held = await untilPod(host, NS, 'sent', 'says why', ({ status }) => status?.reason === 'MemberUnreachable');
  expect(held.status?.message).toContain('Cluster "west" does not answer');
  await kubectl(host, ['delete', 'pvc', 'doomed', '-n', NS, '--timeout=60s']);
  expect((await claimOf(host, 'kept-there')).status?.phase).toBe('Bound');
  expect((await claimOf(west, 'doomed')).metadata.deletionTimestamp).toBeUndefined();
  expect(disksOfWest.deleted).toEqual([]);

  proxy.clear();
  for (const name of ['pinned', 'sent']) {
    await untilRunning(host, NS, name, PATIENT);
    expect((await getPod(host, NS, name)).spec.nodeName).toBe('west');
  }
  await until('the deletion is carried out', () => disksOfWest.deleted.includes(doomed), PATIENT);
  expect(disksOfWest.deleted).toEqual([doomed]);
  const { metadata, spec } = await claimOf(west, 'kept-there');
  expect([metadata.uid, spec.volumeName]).toEqual([before.metadata.uid, before.spec.volumeName]);
  await until(
    'nothing of it is left',
    async () => {
      const { items } = (await host.api.call('GET', '/api/v1/persistentvolumes')) as { items: PersistentVolume[] };
      return (
        !items.some(({ spec: { claimRef } }) => claimRef?.name === 'doomed') &&
        (await read(west, claimPath('doomed'))) === undefined
      );
    },
    PATIENT,
  );
  await kubectl(host, ['delete', 'pod', 'pinned', 'sent', '-n', NS, '--wait=false']);
});

test('no virtual node, MemberCluster or process that goes takes data along', async () => {
  const before = await claimOf(east, 'first');
  const restart = async (): Promise<void> => {
    const { process } = topology.spillway;
    await process.stop('SIGKILL');
    process.restart();
    await waitReady(topology.spillway);
  };
  await kubectl(host, ['delete', 'node', 'east']);
  await restart();
  await waitForNode(host, 'east');
  await kubectl(host, ['delete', 'pod', '-n', NS, '--all']);
  const member = await read<KubeObject & { spec: object }>(host, '/apis/spillway.dev/v1alpha1/memberclusters/east');
  await letGo(host, 'east');
  await restart();
  const metadata = { name: 'east' };
  await host.api.call('POST', '/apis/spillway.dev/v1alpha1/memberclusters', { ...member, metadata, status: undefined });
  await waitForNode(host, 'east');
  await host.apply([using('again', 'first')]);
  await untilRunning(host, NS, 'again', PATIENT);
  expect((await claimOf(east, 'first')).metadata.uid).toBe(before.metadata.uid);
  expect((await claimOf(east, 'first')).spec.volumeName).toBe(before.spec.volumeName);
});

test('a claim that is lost in the member is not replaced by an empty one', async () => {
  await kubectl(host, ['delete', 'pod', 'again', '-n', NS, '--wait=false']);
  await untilGone(east, NS, 'again');
  await kubectl(east, ['delete', 'pvc', 'first', '-n', NS]);
  await host.apply([using('lost', 'first')]);
  await untilPod(host, NS, 'lost', 'says so', ({ status }) => status?.reason === 'ClaimLost');
  expect(await read(east, claimPath('first'))).toBeUndefined();
  expect(errorsOf(topology.spillway)).toEqual([]);
  expect(await metrics()).not.toMatch(/spillway_invariant_violations_total\{invariant="I20"\} [1-9]/);
});
