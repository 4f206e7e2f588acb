import { describe, expect, test } from 'vitest';
import { MEMBER_CONSTRAINTS_ANNOTATION, VIRTUAL_NODE_TAINT } from '../../src/api/marks.ts';
import { splitConstraints } from '../../src/admission/split-constraints.ts';
import type { Pod, PodSpec } from '../../src/kube/core-v1.ts';
import { nextPod } from '../../src/scheduler/next-of-set.ts';

const GIVEN = { key: VIRTUAL_NODE_TAINT, operator: 'Exists' as const, effect: 'NoSchedule' as const };
const DEFAULT = { key: 'node.kubernetes.io/not-ready', operator: 'Exists' as const, effect: 'NoExecute' as const };
const MAIN = { name: 'main', image: 'a' };

const livePod = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: {
    name: 'db-0',
    namespace: 'shop',
    uid: 'u',
    labels: { app: 'old', 'controller-revision-hash': 'db-1', 'statefulset.kubernetes.io/pod-name': 'db-0' },
    ...metadata,
  },
  spec: { nodeName: 'east', containers: [MAIN], ...spec },
});

/** What comes instead of `live` where the template of its set says so. */
function next(
  live: Pod,
  spec: Partial<PodSpec>,
  namespaceLabels: Record<string, string> = {},
  annotations = {},
): ReturnType<typeof nextPod> {
  const set = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'shop', uid: 's' },
    spec: {
      updateStrategy: { type: 'OnDelete' },
      template: { metadata: { labels: { app: 'db' }, annotations }, spec: { containers: [MAIN], ...spec } },
    },
    status: { currentRevision: 'db-1', updateRevision: 'db-2' },
  };
  return nextPod(live, {
    owners: { chainOf: () => [{ ...live, apiVersion: 'v1', kind: 'Pod' }, set] },
    nodes: { memberOf: (name: string) => (name === 'east' ? 'east' : undefined) },
    namespaceLabels: () => namespaceLabels,
  } as unknown as Parameters<typeof nextPod>[1]);
}

const known = (found: ReturnType<typeof nextPod>): Pod => {
  if ('unknown' in found) throw new Error(found.unknown);
  return found;
};

test('it has the name of the former one, the labels of the template, and the revision that comes', () => {
  const { metadata } = known(next(livePod(), {}));
  expect(metadata).toMatchObject({ name: 'db-0', uid: 'u' });
  expect(metadata.labels).toEqual({
    app: 'db',
    'controller-revision-hash': 'db-2',
    'statefulset.kubernetes.io/pod-name': 'db-0',
  });
});

test('one without a node is itself the one that looks for a place', () => {
  const { nodeName: _, ...spec } = livePod().spec;
  const live = { ...livePod(), spec };
  expect(next(live, { containers: [{ ...MAIN, resources: { requests: { cpu: '64' } } }] })).toBe(live);
});

test('a container does what it did, and asks for what the template says, or for what it was given where that says nothing', () => {
  const resources = { requests: { cpu: '1' } };
  const env = [{ name: 'A' }];
  const live = livePod({ containers: [{ ...MAIN, env, resources, ports: [{ containerPort: 80, hostPort: 80 }] }] });
  expect(known(next(live, {})).spec.containers).toEqual([{ ...MAIN, env, resources }]);
  const more = { limits: { cpu: '9' } };
  expect(known(next(live, { containers: [{ ...MAIN, resources: more }] })).spec.containers).toEqual([
    { ...MAIN, env, resources: more },
  ]);
});

test('it keeps claims of its own, and no volume that the template has no more', () => {
  const own = { name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } };
  const live = livePod({ volumes: [own, { name: 'shared', persistentVolumeClaim: { claimName: 'shared' } }] });
  expect(known(next(live, { volumes: [{ name: 'tmp', emptyDir: {} }] })).spec.volumes).toEqual([
    { name: 'tmp', emptyDir: {} },
    own,
  ]);
});

describe('what admission gives', () => {
  const live = livePod({ tolerations: [GIVEN, DEFAULT, { key: 'dear' }], priority: 7, overhead: { cpu: '1' } });

  test('is as it was, but no toleration that only the former template had', () => {
    const { spec } = known(next(live, {}, { 'spillway.dev/burst': 'enabled' }));
    expect(spec).toMatchObject({ tolerations: [GIVEN, DEFAULT], priority: 7, overhead: { cpu: '1' } });
  });
  test('is no toleration of virtual nodes where the pod had it from its template, and the next one has not', () => {
    expect(known(next(live, {})).spec.tolerations).toEqual([DEFAULT]);
    const asks = { nodeSelector: { 'spillway.dev/member': 'west' } };
    expect(known(next(live, asks)).spec.tolerations).toEqual([GIVEN, DEFAULT]);
  });
  test('is no priority and no overhead where the template names other classes', () => {
    const { spec } = known(next(live, { priorityClassName: 'low', runtimeClassName: 'gvisor' }));
    expect([spec.priority, spec.overhead]).toEqual([undefined, undefined]);
  });
});

describe('what it asks of nodes', () => {
  const asked = { nodeSelector: { disk: 'ssd' } };
  /** As admission splits it. */
  const affinity = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'spillway.dev/member', operator: 'Exists' as const }] }],
      },
    },
  };
  const [annotate] = splitConstraints({}, asked);
  const annotations = annotate?.value as Record<string, string>;
  const split = livePod({ affinity }, { annotations });

  test('is what admission made of it, as long as it is the same', () => {
    const found = known(next(split, asked));
    expect(found.spec.affinity).toEqual(affinity);
    expect(found.spec.nodeSelector).toBeUndefined();
    expect(found.metadata.annotations).toEqual(annotations);
    expect(annotations).toHaveProperty([MEMBER_CONSTRAINTS_ANNOTATION]);
  });
  test('is not known where it has changed', () => {
    expect(next(split, { nodeSelector: { disk: 'hdd' } })).toMatchObject({
      unknown: expect.stringContaining('admission'),
    });
    expect(next(livePod(), asked)).toMatchObject({ unknown: expect.stringContaining('admission') });
  });
  test('is what the template says where admission leaves that alone', () => {
    const zone = { nodeSelector: { 'topology.kubernetes.io/zone': 'a' } };
    expect(known(next(split, zone)).spec).toMatchObject(zone);
    expect(known(next(split, {})).spec.affinity).toBeUndefined();
    const told = known(next(split, asked, {}, { [MEMBER_CONSTRAINTS_ANNOTATION]: '{}' }));
    expect([told.spec.nodeSelector, told.metadata.annotations]).toEqual([
      asked.nodeSelector,
      { [MEMBER_CONSTRAINTS_ANNOTATION]: '{}' },
    ]);
  });
});
