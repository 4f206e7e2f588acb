import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { type JsonName, Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../../hack/api-access.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { KEY, newNodeRequest, SIGNING } from '../../src/kube/certificate-key.ts';
import { apiOf, type Guarded, KEPT, MANAGER, OWNED, serveOnly, startGuarded, untilRefused } from './guard-harness.ts';

/** What a thief of the manager's token can do: RBAC says on which kinds, admission policies on which objects. */
let guarded: Guarded;
let host: Cluster;
let thief: Api;

beforeAll(async () => {
  const files = ['crds/spillway.dev_memberclusters.yaml', 'rbac.yaml', 'rbac-service-account.yaml'];
  guarded = await startGuarded(MANAGER, ...files, 'node-guard.yaml', 'storage.yaml');
  ({ cluster: host, thief } = guarded);
});
afterAll(() => guarded?.close());

describe('claims and volumes', () => {
  const volumes = '/api/v1/persistentvolumes';
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
  const uid = '3b7a3f0e-1d3f-4a53-9f8e-7d7c5f7f1b52';
  const spec = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'spillway',
    persistentVolumeReclaimPolicy: 'Retain',
  };
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data', uid };
  const csi = { driver: 'member.spillway.dev', volumeHandle: 'x' };
  const volume = (name: string, more: object) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: { ...spec, ...more },
  });
  const others = {
    'of-driver': { csi: { driver: 'disks.example', volumeHandle: 'x' } },
    'of-node': { hostPath: { path: '/data' } },
  };
  const ours = `${volumes}/pvc-${uid}`;
  const claim = `${claims}/data`;
  const selected = 'volume.kubernetes.io/selected-node';

  beforeAll(async () => {
    await host.apply([
      ...Object.entries(others).map(([name, source]) => volume(name, source)),
      {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: 'disks' },
        provisioner: 'disks.example',
      },
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name: 'data',
          namespace: 'default',
          labels: { app: 'shop' },
          annotations: { [selected]: 'east', 'example.com/theirs': 'x' },
        },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'spillway',
          resources: { requests: { storage: '1Gi' } },
        },
      },
    ]);
    await untilRefused(
      () => thief.call('POST', `${volumes}?dryRun=All`, volume('stray', others['of-node'])),
      'Spillway may only write volumes whose driver is',
    );
    await untilRefused(
      () =>
        thief.call('POST', `${volumes}?dryRun=All`, volume(`pvc-${uid}`, { csi, claimRef, storageClassName: 'disks' })),
      'Spillway may only make volumes of classes',
    );
    await untilRefused(() => thief.call('PATCH', `${claim}?dryRun=All`, { metadata: OWNED }), 'nothing of a claim');
    await thief.call('POST', volumes, volume(`pvc-${uid}`, { csi, claimRef }));
  });

  it.each(Object.entries(others))('a volume %s is out of reach', async (name, source) => {
    const refusal = 'Spillway may only write volumes whose driver is member.spillway.dev';
    const body = { metadata: { annotations: { 'spillway.dev/member-claim-uid': 'x' } } };
    await expect(thief.call('POST', volumes, volume(`new-${name}`, source))).rejects.toThrow(refusal);
    await expect(thief.call('PATCH', `${volumes}/${name}`, body)).rejects.toThrow(refusal);
    await expect(thief.call('DELETE', `${volumes}/${name}`)).rejects.toThrow(refusal);
  });

  it.each([
    ['for no claim', 'any', { csi }],
    ['under another name', 'any', { csi, claimRef }],
    ['that takes claims that wait for a volume by hand', `pvc-${uid}`, { csi, claimRef, storageClassName: '' }],
    ['that takes claims of a class of others', `pvc-${uid}`, { csi, claimRef, storageClassName: 'disks' }],
  ])('a volume %s is not made', async (_, name, more) => {
    const made = thief.call('POST', `${volumes}?dryRun=All`, volume(name, more));
    await expect(made).rejects.toThrow('Spillway may only make volumes');
  });

  it.each([
    { metadata: OWNED },
    { metadata: KEPT },
    { metadata: { finalizers: null } },
    { metadata: { labels: { app: 'shop' } } },
    { metadata: { annotations: { 'example.com/any': 'x' } } },
    { spec: { persistentVolumeReclaimPolicy: 'Delete' } },
    { spec: { claimRef: { uid: '11111111-1d3f-4a53-9f8e-7d7c5f7f1b52' } } },
    { spec: { claimRef: null } },
    { spec: { storageClassName: 'disks' } },
  ])('of a volume this is not changed: %j', async (body) => {
    await expect(thief.call('PATCH', `${ours}?dryRun=All`, body)).rejects.toThrow(
      'Spillway may change nothing of a volume',
    );
  });

  it('of a volume it is written how large it is, and once which claim of the member it is', async () => {
    const named = (value: string | null) => ({ metadata: { annotations: { 'spillway.dev/member-claim-uid': value } } });
    await thief.call('PATCH', ours, { spec: { capacity: { storage: '2Gi' } } });
    await thief.call('PATCH', ours, named('x'));
    for (const value of ['y', null]) {
      await expect(thief.call('PATCH', ours, named(value))).rejects.toThrow('Spillway may change nothing of a volume');
    }
  });

  it('a volume goes only when its claim is gone', async () => {
    await expect(thief.call('DELETE', `${ours}?dryRun=All`)).rejects.toThrow(
      'Spillway may only delete volumes whose claim is gone',
    );
    await host.api.call('PATCH', `${ours}/status`, { status: { phase: 'Released' } });
    await thief.call('DELETE', `${ours}?dryRun=All`);
  });

  it.each([
    { metadata: OWNED },
    { metadata: KEPT },
    { metadata: { finalizers: null } },
    { metadata: { labels: { app: 'other' } } },
    { metadata: { labels: null } },
    { metadata: { annotations: { 'example.com/theirs': null } } },
    { metadata: { annotations: { 'example.com/any': 'x' } } },
    { metadata: { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } } },
    { metadata: { annotations: { [selected]: 'real' } } },
  ])('of a claim this is not changed, be it by its status: %j', async (body) => {
    for (const path of [claim, `${claim}/status`]) {
      await expect(thief.call('PATCH', `${path}?dryRun=All`, body), path).rejects.toThrow(
        'Spillway may change nothing of a claim',
      );
    }
  });

  it('of a claim neither what it asks for is changed nor what its phase is', async () => {
    await expect(thief.call('PATCH', claim, { spec: { volumeName: 'of-node' } })).rejects.toThrow(
      'Spillway may not change what a claim asks for',
    );
    for (const status of [{ phase: 'Lost' }, { accessModes: ['ReadWriteMany'] }]) {
      await expect(thief.call('PATCH', `${claim}/status`, { status })).rejects.toThrow(
        'Spillway may change nothing of what a claim is but its size and conditions',
      );
    }
  });

  it('on a claim it is written where the data are and how large, and that the scheduler is to choose anew', async () => {
    const annotations = { 'spillway.dev/member': 'east', 'spillway.dev/member-volume': 'pv-1', [selected]: null };
    await thief.call('PATCH', claim, { metadata: { annotations } });
    const conditions = [{ type: 'Resizing', status: 'True' }];
    await thief.call('PATCH', `${claim}/status`, { status: { capacity: { storage: '2Gi' }, conditions } });
    const { metadata, status } = (await host.api.call('GET', claim)) as { metadata: object; status: object };
    expect(metadata).toMatchObject({ annotations: { 'spillway.dev/member': 'east', 'example.com/theirs': 'x' } });
    expect(status).toMatchObject({ phase: 'Pending', capacity: { storage: '2Gi' }, conditions });
  });

  it('is for Spillway alone', async () => {
    expect(await host.kubectl(['label', 'pvc', 'data', 'a=b'])).toMatchObject({ code: 0 });
    expect(await host.kubectl(['delete', 'pv', 'of-node', '--wait=false'])).toMatchObject({ code: 0 });
  });
});

it('what people wrote on a Lease to stop all moves is neither written by the manager nor taken off', async () => {
  const leases = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases';
  const path = `${leases}/spillway-descheduler`;
  const words = 'Spillway neither stops moves nor lets them go on';
  const lease = (said: string | undefined, holderIdentity: string, resourceVersion?: string) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: 'spillway-descheduler',
      annotations: {
        'spillway.dev/process': 'x',
        ...(said === undefined ? {} : { 'spillway.dev/moves-stopped': said }),
      },
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    spec: { holderIdentity },
  });
  await untilRefused(() => thief.call('POST', `${leases}?dryRun=All`, lease('', 'a')), words);
  await thief.call('POST', leases, lease(undefined, 'a'));
  const said = async (value: string | null): Promise<string> => {
    const body = { metadata: { annotations: { 'spillway.dev/moves-stopped': value } } };
    const stored = (await host.api.call('PATCH', path, body)) as { metadata: { resourceVersion: string } };
    return stored.metadata.resourceVersion;
  };
  for (const [before, others] of [
    ['INC-7', [undefined, '', 'INC-8']],
    ['', [undefined, 'INC-8']],
    [null, ['', 'INC-8']],
  ] as const) {
    const version = await said(before);
    for (const other of others)
      await expect(thief.call('PUT', path, lease(other, 'b', version)), `${before} ${other}`).rejects.toThrow(words);
    await thief.call('PUT', path, lease(before ?? undefined, 'b', version));
  }
});

describe('nodes', () => {
  const node = (name: string, more: { metadata?: object; spec?: object } = {}) => ({
    apiVersion: 'v1',
    kind: 'Node',
    ...more,
    metadata: { name, ...more.metadata },
  });
  const labels = { 'spillway.dev/member': 'east' };
  const spec = { providerID: 'spillway://east/east' };
  const patch = async (path: string, body: object): Promise<unknown> =>
    await thief.call('PATCH', `/api/v1/nodes/${path}?dryRun=All`, body);

  beforeAll(async () => {
    await host.apply([node('real')]);
    await untilRefused(
      () => thief.call('POST', '/api/v1/nodes?dryRun=All', node('stray', { spec })),
      'Spillway may only write Nodes that carry the label spillway.dev/member',
    );
    await thief.call('POST', '/api/v1/nodes', node('east', { metadata: { labels }, spec }));
  });

  it.each([
    ['without the label', { spec }],
    ['without the provider ID', { metadata: { labels } }],
    ['with an owner', { metadata: { labels, ...OWNED }, spec }],
    ['with a finalizer', { metadata: { labels, ...KEPT }, spec }],
  ])('one %s is not made', async (_, more) => {
    const made = thief.call('POST', '/api/v1/nodes?dryRun=All', node('new', more));
    await expect(made).rejects.toThrow('Spillway may only');
  });

  it.each([
    ['real', { spec: { unschedulable: true } }],
    ['real', { metadata: { labels } }],
    ['real', { metadata: { labels }, spec }],
    ['real/status', { status: { capacity: { cpu: '1' } } }],
    ['real/status', { metadata: { labels } }],
    ['east', { metadata: { labels: { 'spillway.dev/member': null } } }],
    ['east', { metadata: OWNED }],
    ['east', { metadata: KEPT }],
    ['east', { metadata: { annotations: { 'cluster-autoscaler.kubernetes.io/scale-down-disabled': 'true' } } }],
    ['east', { spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' }] } }],
    ['east', { spec: { podCIDR: '10.0.0.0/8', podCIDRs: ['10.0.0.0/8'] } }],
    ['east/status', { metadata: OWNED }],
    ['east/status', { metadata: KEPT }],
    ['east/status', { metadata: { labels: { disk: 'fast' } } }],
    ['east/status', { metadata: { annotations: { 'example.com/any': 'x' } } }],
  ])('of %s this is not changed: %j', async (path, body) => {
    await expect(patch(path, body)).rejects.toThrow('Spillway may');
  });

  it('of a virtual one labels, taints, the cordon and annotations of our own are changed, and what it reports', async () => {
    await patch('east', {
      metadata: { labels: { disk: 'fast' }, annotations: { 'spillway.dev/look-again': '1' } },
      spec: { unschedulable: true, taints: [{ key: 'a', effect: 'NoSchedule' }] },
    });
    await patch('east/status', { status: { capacity: { cpu: '4' } } });
    // What an administrator says stays, beside taints of our own.
    const outOfService = { key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' };
    await host.api.call('PATCH', '/api/v1/nodes/east', { spec: { taints: [outOfService] } });
    await patch('east', { spec: { taints: [outOfService, { key: 'a', effect: 'NoSchedule' }] } });
    await host.api.call('PATCH', '/api/v1/nodes/east', { spec: { taints: null } });
    // Of a user who took the label away.
    await host.kubectl(['label', 'node', 'east', 'spillway.dev/member-']);
    await patch('east', { metadata: { labels } });
    expect(await host.kubectl(['label', 'node', 'real', 'a=b'])).toMatchObject({ code: 0 });
  });

  it('only a virtual one that is cordoned is removed: a Node that goes takes its pods with it', async () => {
    const remove = async (name: string): Promise<unknown> =>
      await thief.call('DELETE', `/api/v1/nodes/${name}?dryRun=All`);
    const deceptive = node('deceptive', {
      metadata: { labels },
      spec: { providerID: 'cloud:///i-1', unschedulable: true },
    });
    await host.apply([deceptive, node('retiring', { spec: { providerID: 'spillway://east/retiring' } })]);
    await untilRefused(() => remove('real'), 'Spillway may only remove Nodes that it made');
    await expect(remove('deceptive')).rejects.toThrow('Spillway may only remove Nodes that it made');
    await expect(remove('retiring')).rejects.toThrow('Spillway may only remove Nodes that are cordoned');
    await host.api.call('PATCH', '/api/v1/nodes/retiring', { spec: { unschedulable: true } });
    await remove('retiring');
  });
});

describe('certificates', () => {
  const client = 'kubernetes.io/kube-apiserver-client-kubelet';
  const nodes: JsonName = [{ O: ['system:nodes'] }];

  async function ask(
    request: string,
    { node = 'east', signerName = client, expirationSeconds = 604_800, metadata = {}, as = thief }: AskOptions = {},
  ): Promise<unknown> {
    return await as.call('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All', {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: `spillway-${node}-`, ...metadata },
      spec: {
        signerName,
        request: Buffer.from(request).toString('base64'),
        usages: ['digital signature', signerName.endsWith('serving') ? 'server auth' : 'client auth'],
        ...(expirationSeconds === 0 ? {} : { expirationSeconds }),
      },
    });
  }
  interface AskOptions {
    /** For which the request is named. */
    node?: string;
    signerName?: string;
    /** 0: as long as the signer likes. */
    expirationSeconds?: number;
    metadata?: object;
    as?: Api;
  }

  async function requestOf(name: JsonName, key: webcrypto.EcKeyGenParams = KEY): Promise<string> {
    const keys = await webcrypto.subtle.generateKey(key, true, ['sign', 'verify']);
    const made = await Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm: SIGNING });
    return made.toString('pem');
  }
  const plain = async (name: string): Promise<string> => (await newNodeRequest(name)).request;

  beforeAll(async () => {
    await host.apply([{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'master' } }]);
    const request = await plain('east');
    await untilRefused(() => ask(request, { signerName: 'example.com/any' }), 'only ask for certificates of nodes');
    const real = await plain('master');
    await untilRefused(() => ask(real, { node: 'master' }), 'the certificate of a node that is not virtual');
  });

  it.each(['east', 'a', '0', 'a.b-c.9', 'y'.repeat(63)])('are to be had for node %s', async (name) => {
    await ask(await plain(name), { node: name });
  });

  it('are not to be had for a node that is there and is not virtual', async () => {
    const request = await plain('master');
    await expect(ask(request, { node: 'master' })).rejects.toThrow('the certificate of a node that is not virtual');
    for (const node of ['east', 'master-', 'masters']) {
      await expect(ask(request, { node }), node).rejects.toThrow('are named for their node');
    }
    await expect(ask(request, { metadata: { name: 'any', generateName: '' } })).rejects.toThrow('named for their node');
    await ask(await plain('master-2'), { node: 'master-2' });
  });

  it('last a week at most, and are for nodes', async () => {
    const request = await plain('east');
    await expect(ask(request, { expirationSeconds: 0 })).rejects.toThrow('seven days at most');
    await expect(ask(request, { expirationSeconds: 604_801 })).rejects.toThrow('seven days at most');
    const signerName = 'kubernetes.io/kube-apiserver-client';
    await expect(ask(request, { signerName })).rejects.toThrow('certificates of nodes');
    await ask(request, { signerName: 'kubernetes.io/kubelet-serving', expirationSeconds: 0 });
    await expect(ask(request, { metadata: KEPT })).rejects.toThrow('no owners and no finalizers');
    await expect(ask(request, { metadata: OWNED })).rejects.toThrow('no owners and no finalizers');
  });

  it.each<[string, () => Promise<string>]>([
    ['the name first', () => requestOf([{ CN: ['system:node:gone'] }, ...nodes])],
    ['no organization', () => requestOf([{ CN: ['system:node:gone'] }])],
    ['another organization', () => requestOf([{ O: ['system:masters'] }, { CN: ['system:node:east'] }])],
    ['another name', () => requestOf([...nodes, { CN: ['system:nodf:master'] }])],
    ['two names', () => requestOf([...nodes, { CN: ['system:node:east'] }, { CN: ['system:node:gone'] }])],
    ['two names in one part', () => requestOf([...nodes, { CN: ['system:node:east', 'system:node:gone'] }])],
    ['another part', () => requestOf([...nodes, { CN: ['system:node:east'] }, { OU: ['any'] }])],
    ['an upper case letter', () => requestOf([...nodes, { CN: ['system:node:Master'] }])],
    ['no node', () => requestOf([...nodes, { CN: ['system:node:'] }])],
    ['a name longer than any of a node', () => requestOf([...nodes, { CN: [`system:node:${'a'.repeat(64)}`] }])],
    ['another key', () => requestOf([...nodes, { CN: ['system:node:gone'] }], { name: 'ECDSA', namedCurve: 'P-384' })],
    ['words before it', async () => `any\n${await plain('east')}`],
    ['two requests', async () => `${await plain('east')}\n${await plain('gone')}`],
    ['a first one that is none', async () => `${(await plain('east')).replaceAll('A', '=')}\n${await plain('gone')}`],
    ['headers', async () => (await plain('east')).replace('-----\n', '-----\nany: x\n\n')],
    [
      'lines of another length',
      async () => (await plain('east')).replaceAll(/(?<=[a-zA-Z0-9+/]{32})(?=[a-zA-Z0-9+/]{32}\n)/g, '\n'),
    ],
    ['a zero byte', async () => (await plain('east')).replace('\nMI', '\nM\0I')],
    ['another end of lines', async () => (await plain('east')).replaceAll('\n', '\r\n')],
    [
      'much of it',
      async () => (await plain('east')).replace('\n-----END', `\n${`${'A'.repeat(64)}\n`.repeat(60)}-----END`),
    ],
  ])('are not to be had by a request with %s', async (_, request) => {
    // What Kubernetes itself cannot read is refused before.
    await expect(ask(await request())).rejects.toThrow(
      /requests of the form that it makes itself|spec.request: Invalid value/,
    );
  });

  it('requests are taken away that were made for virtual nodes', async () => {
    const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
    const refusal = 'Spillway may only remove requests that it made for virtual nodes';
    const body = async (as: Api, name: string, labels: object): Promise<unknown> =>
      await as.call('POST', path, {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { ...(name === '' ? { generateName: 'spillway-east-' } : { name }), labels },
        spec: {
          signerName: client,
          request: Buffer.from(await plain('east')).toString('base64'),
          usages: ['digital signature', 'client auth'],
          expirationSeconds: 604_800,
        },
      });
    const labels = { 'spillway.dev/member': 'east' };
    await body(host.api, 'others', labels);
    await body(host.api, 'spillway-east-theirs', labels);
    const made = (await body(thief, '', labels)) as { metadata: { name: string } };
    const plainOne = (await body(thief, '', {})) as { metadata: { name: string } };
    await untilRefused(() => thief.call('DELETE', `${path}/others`), refusal);
    for (const name of ['spillway-east-theirs', plainOne.metadata.name])
      await expect(thief.call('DELETE', `${path}/${name}`), name).rejects.toThrow(refusal);
    await thief.call('DELETE', `${path}/${made.metadata.name}`);
  });

  it('are to be had for certain names only, where RBAC says which', async () => {
    const request = await plain('west');
    await serveOnly(host, ['east'], async () => {
      const refusal = 'Spillway may not serve a virtual node of the name west';
      await untilRefused(() => ask(request, { node: 'west' }), refusal);
      await ask(await plain('east'));
    });
    await until(
      'all names are granted again',
      async () => (await ask(request, { node: 'west' }).catch(() => undefined)) !== undefined,
    );
  });

  it('are not renewed by the virtual nodes themselves', async () => {
    await host.apply([
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'west' }, spec: { providerID: 'spillway://west/west' } },
    ]);
    const [virtual, real] = [
      await apiOf(host, 'system:node:west', ['system:nodes']),
      await apiOf(host, 'system:node:master', ['system:nodes']),
    ];
    const request = await plain('west');
    await untilRefused(
      () => ask(request, { as: virtual }),
      'virtual nodes do not ask for client certificates themselves',
    );
    await ask(await plain('master'), { as: real });
    const signerName = 'kubernetes.io/kubelet-serving';
    await ask(request, { as: virtual, signerName, expirationSeconds: 0 });
    await Promise.all([virtual.close(), real.close()]);
  });
});
