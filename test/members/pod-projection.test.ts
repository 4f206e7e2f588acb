import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { nodeProjection, podProjection } from '../../src/members/pod-projection.ts';

const HOST_ID = '0123456789abcdef';
const pod = (name: string, more: { metadata?: object; spec?: object } = {}): KubeObject =>
  ({
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-${name}`,
      resourceVersion: '7',
      labels: { app: 'web', 'pod-template-hash': 'abc' },
      annotations: { long: 'x'.repeat(500) },
      ...more.metadata,
    },
    spec: {
      nodeName: 'node-1',
      containers: [
        {
          name: 'web',
          image: 'registry.example/web:1',
          env: [{ name: 'A', value: 'b' }],
          resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
        },
      ],
      initContainers: [{ name: 'side', image: 'x', restartPolicy: 'Always', resources: { requests: { cpu: '10m' } } }],
      overhead: { memory: '1Mi' },
      resources: { requests: { cpu: '200m' }, limits: { cpu: '1' } },
      tolerations: [{ operator: 'Exists' }],
      ...more.spec,
    },
    status: { phase: 'Running', podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
  }) as KubeObject;

describe('podProjection', () => {
  it('keeps ours whole', () => {
    const labels = { 'spillway.dev/host': HOST_ID, app: 'web' };
    const raw = pod('ours', { metadata: { labels } });
    const { managedFields: _, ...metadata } = raw.metadata as KubeObject['metadata'] & { managedFields: unknown };
    expect(podProjection(HOST_ID)(raw)).toEqual({ ...raw, metadata });
    expect(podProjection('another-host')(raw).spec.containers[0]?.image).toBeUndefined();
  });

  it('keeps of others only what decides how much of a node they take', () => {
    expect(podProjection(HOST_ID)(pod('theirs'))).toEqual({
      metadata: {
        name: 'theirs',
        namespace: 'shop',
        uid: 'uid-theirs',
        resourceVersion: '7',
        labels: { app: 'web', 'pod-template-hash': 'abc' },
      },
      spec: {
        nodeName: 'node-1',
        containers: [{ name: '', resources: { requests: { cpu: '100m', memory: '64Mi' } } }],
        initContainers: [{ name: '', restartPolicy: 'Always', resources: { requests: { cpu: '10m' } } }],
        overhead: { memory: '1Mi' },
        resources: { requests: { cpu: '200m' } },
      },
      status: { phase: 'Running' },
    });
  });

  it('keeps of a resize that is under way what the node has granted, until it is done', () => {
    const resized = (granted: string | undefined) => {
      const resources = granted === undefined ? {} : { resources: { requests: { cpu: granted, memory: '64Mi' } } };
      const raw = pod('theirs', { spec: { initContainers: [], resources: undefined } });
      return { ...raw, status: { phase: 'Running', containerStatuses: [{ name: 'web', ...resources }] } } as KubeObject;
    };
    const project = podProjection(HOST_ID);
    const kept = (granted: string | undefined) => project(resized(granted)).spec.containers;
    expect(kept('2')).toEqual([{ name: '', resources: { requests: { cpu: '2', memory: '64Mi' } } }]);
    const asked = [{ name: '', resources: { requests: { cpu: '100m', memory: '64Mi' } } }];
    for (const granted of ['50m', '100m', undefined]) expect(kept(granted)).toEqual(asked);
    expect(kept('100m')).toBe(kept(undefined));
  });

  it('keeps whom others keep away, by ports of the node and by anti-affinity, and that they are on their way', () => {
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] };
    const preferred = { preferredDuringSchedulingIgnoredDuringExecution: [] };
    const ports = [{ name: 'web', containerPort: 80, hostPort: 8080, protocol: 'TCP' }, { containerPort: 81 }];
    const { spec, status, metadata } = podProjection(HOST_ID)({
      ...pod('theirs', {
        metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
        spec: {
          nodeName: undefined,
          containers: [{ name: 'web', ports }],
          affinity: { podAntiAffinity: { ...podAntiAffinity, ...preferred }, podAffinity: podAntiAffinity },
        },
      }),
      status: { phase: 'Pending', nominatedNodeName: 'node-2' },
    } as KubeObject);
    expect(spec.containers).toEqual([{ name: '', ports: [{ containerPort: 80, hostPort: 8080, protocol: 'TCP' }] }]);
    expect(spec.affinity).toEqual({ podAntiAffinity });
    expect(status).toEqual({ phase: 'Pending', nominatedNodeName: 'node-2' });
    expect(metadata.deletionTimestamp).toBe('2026-01-01T00:00:00Z');
  });

  it('copes with a pod that says almost nothing', () => {
    const raw = { metadata: { name: 'x' }, spec: { containers: [{ name: 'c' }] } } as KubeObject;
    expect(podProjection(HOST_ID)(raw)).toEqual({ metadata: { name: 'x' }, spec: { containers: [{ name: '' }] } });
  });

  it('shares what pods have in common, and tells apart what they have not', () => {
    const project = podProjection(HOST_ID);
    const [one, two, other] = [
      project(pod('a')),
      project(pod('b')),
      project(pod('c', { spec: { overhead: { cpu: '1' } } })),
    ];
    expect(two.spec.containers).toBe(one.spec.containers);
    expect(other.spec.containers).not.toBe(one.spec.containers);
    expect(other.spec.overhead).toEqual({ cpu: '1' });
  });

  it('keeps a bounded number of shapes', () => {
    const project = podProjection(HOST_ID);
    const shapes = Array.from({ length: 10_000 }, (_, index) =>
      project(pod(`p${String(index)}`, { spec: { overhead: { cpu: `${String(index)}m` } } })),
    );
    expect(shapes.map(({ spec }) => spec.overhead?.['cpu'])).toEqual(shapes.map((_, index) => `${String(index)}m`));
  });
});

describe('nodeProjection', () => {
  it('drops all of images but their names', () => {
    const raw = {
      metadata: { name: 'n', labels: { a: 'b' } },
      spec: { unschedulable: true },
      status: { allocatable: { cpu: '4' }, images: [{ names: ['x', 'y'], sizeBytes: 7 }, { names: ['z'] }] },
    } as unknown as KubeObject;
    expect(nodeProjection()(raw)).toEqual({
      metadata: { name: 'n', labels: { a: 'b' } },
      spec: { unschedulable: true },
      status: { allocatable: { cpu: '4' }, images: [{ names: ['x', 'y', 'z'] }] },
    });
  });
});
