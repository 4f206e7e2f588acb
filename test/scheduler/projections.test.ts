import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { hostNodeProjection, hostPodProjection, ownerProjection } from '../../src/scheduler/projections.ts';

const pod = (name: string, nodeName: string | undefined, more: { spec?: object; status?: object } = {}): KubeObject =>
  ({
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-${name}`,
      resourceVersion: '7',
      labels: { app: 'web' },
      annotations: { long: 'x'.repeat(500), 'spillway.dev/deletion-cost': '7' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'set', controller: true }],
    },
    spec: {
      ...(nodeName === undefined ? {} : { nodeName }),
      containers: [{ name: 'main', image: 'app', env: [{ name: 'A' }], resources: { requests: { cpu: '100m' } } }],
      overhead: { memory: '1Mi' },
      ...more.spec,
    },
    status: { phase: 'Running', podIP: '10.0.0.1', ...more.status },
  }) as KubeObject;
const containers = [{ name: '', resources: { requests: { cpu: '100m' } } }];

describe('hostPodProjection', () => {
  const project = hostPodProjection((node) => node === 'east');

  it('keeps what a pod takes on a node of the host, once for all that are alike', () => {
    const [one, two] = [project(pod('a', 'local-1')), project(pod('b', 'local-1'))];
    expect(one.spec).toEqual({ nodeName: 'local-1', containers, overhead: { memory: '1Mi' } });
    expect(one.metadata.annotations).toEqual({ 'spillway.dev/deletion-cost': '7' });
    expect(two.spec.containers).toBe(one.spec.containers);
    expect(two.metadata.labels).toBe(one.metadata.labels);
    expect(two.metadata.ownerReferences).toBe(one.metadata.ownerReferences);
  });
  it('keeps when one that is going has to be gone, and its grace period', () => {
    const going = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 };
    const { metadata, ...rest } = pod('a', 'east');
    expect(project({ ...rest, metadata: { ...metadata, ...going } }).metadata).toMatchObject(going);
  });
  it('keeps only the place of one on a virtual node, and of one that has ended', () => {
    expect(project(pod('a', 'east')).spec).toEqual({ nodeName: 'east', containers: [] });
    expect(project(pod('a', undefined, { status: { phase: 'Failed' } })).spec).toEqual({ containers: [] });
    expect(project(pod('a', 'local-1', { status: { phase: 'Failed' } })).spec).toEqual({
      nodeName: 'local-1',
      containers: [],
    });
  });
  it('keeps what a pod asks for that needs a node, or in whose place in a member another one comes, once for all that are alike', () => {
    const spec = (name: string): object => ({
      hostname: name,
      nodeSelector: { disk: 'ssd' },
      containers: [
        { name: 'main', image: 'app', volumeMounts: [{ name: `kube-api-access-${name}` }, { name: 'tmp' }] },
      ],
      volumes: [
        { name: `kube-api-access-${name}`, projected: {} },
        { name: 'tmp', emptyDir: {} },
      ],
    });
    const whole = {
      nodeSelector: { disk: 'ssd' },
      overhead: { memory: '1Mi' },
      containers: [{ name: 'main', image: 'app', volumeMounts: [{ name: 'tmp' }] }],
      volumes: [{ name: 'tmp', emptyDir: {} }],
    };
    const waiting = pod('a', undefined, { spec: spec('a') });
    const ending = (node: string, of = 'b'): KubeObject => {
      const { metadata, ...rest } = pod(of, node, { spec: spec(of) });
      return { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    };
    const [one, two] = [project(waiting), project(ending('east'))];
    expect(one.spec).toEqual(whole);
    expect(one.metadata.annotations).toEqual(waiting.metadata.annotations);
    expect(two.spec).toEqual({ ...whole, nodeName: 'east' });
    expect(two.spec.containers).toBe(one.spec.containers);
    expect(project(ending('local-1')).spec).not.toHaveProperty('nodeSelector');
    const gates = { schedulingGates: [{ name: 'g' }] };
    expect(project(pod('a', undefined, { spec: { ...spec('a'), ...gates } })).spec).toEqual({
      containers: [],
      ...gates,
    });
  });
  it('keeps what a node of the host has granted of a resize that is under way', () => {
    const statuses = [{ name: 'main', resources: { requests: { cpu: '2' } } }];
    const [one] = project(pod('a', 'local-1', { status: { containerStatuses: statuses } })).spec.containers;
    expect(one).toEqual({ name: '', resources: { requests: { cpu: '2' } } });
  });
  it('keeps of volumes what binds a pod on a virtual node to its data', () => {
    const volumes = [
      { name: 'tmp', emptyDir: {} },
      { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
      { name: 'own', ephemeral: { volumeClaimTemplate: { spec: { storageClassName: 'x' } } } },
    ];
    expect(project(pod('a', 'east', { spec: { volumes } })).spec.volumes).toEqual([
      { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
      { name: 'own', ephemeral: {} },
    ]);
  });
  it('keeps all of a pod that is not bound yet and whose gang has its place: room is held for what it asks for', () => {
    const placed = (nodeName?: string): KubeObject => {
      const raw = pod('a', nodeName);
      const labels = { ...raw.metadata.labels, 'spillway.dev/gang': 'g' };
      const annotations = { ...raw.metadata.annotations, 'spillway.dev/gang-placed-at': '2026-01-01T00:00:00Z' };
      return { ...raw, metadata: { ...raw.metadata, labels, annotations } };
    };
    expect(project(placed()).spec).toEqual((placed() as unknown as { spec: object }).spec);
    expect(project(placed()).metadata.annotations).toEqual(placed().metadata.annotations);
    expect(project(placed('east')).spec).toEqual({ nodeName: 'east', containers: [] });
  });
  it('knows a pod for which others were evicted by the node that is kept for it', () => {
    const one = project(pod('a', undefined, { status: { nominatedNodeName: 'local-1' } }));
    expect(one.spec).toEqual({ containers, overhead: { memory: '1Mi' } });
    expect(one.status?.nominatedNodeName).toBe('local-1');
  });
});

describe('ownerProjection', () => {
  const app = { key: 'app', operator: 'In', values: ['web'] };
  const out = [
    { key: 'track', operator: 'NotIn', values: ['canary'] },
    { key: 'former-ip', operator: 'DoesNotExist' },
  ];
  const hash = { 'pod-template-hash': '5d4' };
  const specOf = (kind: string, selector: object): unknown =>
    (
      ownerProjection('apps/v1', kind)({ metadata: { name: 'web' }, spec: { selector } } as KubeObject) as unknown as {
        spec: { selector?: unknown };
      }
    ).spec.selector;

  it.each(['ReplicaSet', 'StatefulSet', 'Deployment', 'Job'])(
    'keeps of the selector of a %s what it rules out',
    (kind) => {
      expect(specOf(kind, { matchLabels: { app: 'web' }, matchExpressions: [app, ...out] })).toEqual({
        matchExpressions: out,
      });
      expect(specOf(kind, { matchLabels: { app: 'web' }, matchExpressions: [app] })).toBeUndefined();
    },
  );
  it('keeps of a Job whether it makes a pod before the former one has ended', () => {
    const raw = { metadata: { name: 'work' }, spec: { podReplacementPolicy: 'Failed', template: {} } } as KubeObject;
    expect(ownerProjection('batch/v1', 'Job')(raw)).toMatchObject({ spec: { podReplacementPolicy: 'Failed' } });
  });
  it('keeps of that of a ReplicaSet by which it knows its template, too', () => {
    expect(specOf('ReplicaSet', { matchLabels: { app: 'web', ...hash }, matchExpressions: out })).toEqual({
      matchLabels: hash,
      matchExpressions: out,
    });
    expect(specOf('Deployment', { matchLabels: { app: 'web', ...hash } })).toBeUndefined();
  });
});

describe('hostNodeProjection', () => {
  const node = (labels: object): KubeObject =>
    ({
      metadata: { name: 'n', labels, annotations: { a: 'b' } },
      spec: { unschedulable: true, taints: [{ key: 'a', effect: 'NoSchedule' }], podCIDR: '10.0.0.0/24' },
      status: {
        allocatable: { cpu: '4' },
        capacity: { cpu: '5' },
        conditions: [
          { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' },
          { type: 'DiskPressure', status: 'False' },
        ],
        images: [{ names: ['x'] }],
      },
    }) as unknown as KubeObject;
  const spec = { unschedulable: true, taints: [{ key: 'a', effect: 'NoSchedule' }] };

  it('keeps what a real node can take, and leaves that of a virtual one to its member', () => {
    expect(hostNodeProjection(node({}))).toEqual({
      metadata: { name: 'n', labels: {} },
      spec,
      status: { allocatable: { cpu: '4' }, conditions: [{ type: 'Ready', status: 'True' }] },
    });
    const labels = { 'spillway.dev/member': 'east' };
    expect(hostNodeProjection(node(labels))).toEqual({ metadata: { name: 'n', labels }, spec });
  });
});
