import { describe, expect, it } from 'vitest';
import { podDefaults } from '../../src/admission/pod-defaults.ts';
import { NAMESPACES, POD_CASES, podOf, SCHEDULER, VIRTUAL_NODES } from './pod-cases.ts';

const isVirtualNode = (name: string): boolean => VIRTUAL_NODES.includes(name);
const optedIn = (namespace: string): boolean => ['enabled', 'policies'].includes(NAMESPACES[namespace] ?? '');

describe('what a new pod gets', () => {
  // Which namespaces are never asked about is for the server and the configuration to say.
  it.each(POD_CASES.filter(({ namespace }) => namespace !== 'kube-system'))('$what', (one) => {
    const steps = podDefaults(podOf(one), optedIn(one.namespace), {
      schedulerName: SCHEDULER,
      isVirtualNode,
      splitConstraints: false,
    });
    const got = steps.map(({ path }) => path.split('/')[2]);
    const fields = { toleration: 'tolerations', gate: 'schedulingGates', scheduler: 'schedulerName' };
    expect(got).toEqual(one.gets.map((what) => fields[what]));
  });

  it('keeps the scheduler where none is configured', () => {
    const pod = podOf({ what: '', namespace: 'shop', gets: [] });
    const steps = podDefaults(pod, true, { schedulerName: undefined, isVirtualNode, splitConstraints: false });
    expect(steps).toEqual([
      {
        op: 'add',
        path: '/spec/tolerations',
        value: [{ key: 'spillway.dev/virtual-node', operator: 'Exists', effect: 'NoSchedule' }],
      },
    ]);
  });

  it.each([undefined, null, 'pod', [], {}, { spec: [] }, { spec: { tolerations: 'x', affinity: 3 }, metadata: null }])(
    'takes %j for what it is',
    (pod) => {
      expect(podDefaults(pod, false, { schedulerName: SCHEDULER, isVirtualNode, splitConstraints: false })).toEqual([]);
    },
  );

  it('does not take names of Object for labels', () => {
    const pod = { metadata: { labels: {} }, spec: { nodeSelector: { constructor: 'x' } } };
    expect(
      podDefaults(pod, false, { schedulerName: SCHEDULER, isVirtualNode: () => true, splitConstraints: false }),
    ).toEqual([]);
  });
});
