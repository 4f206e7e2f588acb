import { describe, expect, it } from 'vitest';
import { podDefaults, systemPodDefaults } from '../../src/admission/pod-defaults.ts';
import type { OutageRule } from '../../src/api/outage-tolerations.ts';
import { NAMESPACES, POD_CASES, podOf, SCHEDULER, VIRTUAL_NODES } from './pod-cases.ts';

const isVirtualNode = (name: string): boolean => VIRTUAL_NODES.includes(name);
const optedIn = (namespace: string): boolean => ['enabled', 'policies'].includes(NAMESPACES[namespace] ?? '');

describe('what a new pod gets', () => {
  it.each(POD_CASES)('$what', (one) => {
    const settings = {
      schedulerName: SCHEDULER,
      isVirtualNode,
      splitConstraints: false,
      outages: { toleration: 'Forever', admissionSeconds: 300 },
    } as const;
    const ofTheCluster = one.namespace === 'kube-system';
    const steps = ofTheCluster
      ? systemPodDefaults(podOf(one))
      : podDefaults(podOf(one), optedIn(one.namespace), settings);
    const got = steps.map(({ path }) => path.split('/')[2]);
    const fields = {
      outage: 'tolerations',
      toleration: 'tolerations',
      gate: 'schedulingGates',
      scheduler: 'schedulerName',
      host: 'affinity',
    };
    expect(got).toEqual([...new Set(one.gets.map((what) => fields[what]))]);
  });

  it('keeps a pod that tolerates everything on the host where only one of its ORed terms names nodes', () => {
    const line = (key: string, operator: string, ...values: string[]): object => ({ key, operator, values });
    const stay = { key: 'spillway.dev/member', operator: 'DoesNotExist' };
    const named = [
      { matchExpressions: [line('kubernetes.io/hostname', 'In', 'worker-1')] },
      { matchFields: [line('metadata.name', 'In', 'worker-1')] },
    ];
    const linux = line('kubernetes.io/os', 'In', 'linux');
    const nodeSelectorTerms = [...named, { matchExpressions: [linux] }];
    const spec = {
      tolerations: [{ operator: 'Exists' }],
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
    };
    const steps = systemPodDefaults(podOf({ what: '', namespace: 'kube-system', spec, gets: [] }));
    expect(steps.map(({ value }) => value)).toEqual([
      { nodeSelectorTerms: [...named, { matchExpressions: [linux, stay] }] },
    ]);
  });

  it('leaves an ORed term without lines as it is, which matches no node', () => {
    const spec = (...nodeSelectorTerms: object[]): object => ({
      tolerations: [{ operator: 'Exists' }],
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
    });
    const of = (...terms: object[]): unknown[] =>
      systemPodDefaults(podOf({ what: '', namespace: 'kube-system', spec: spec(...terms), gets: [] })).map(
        ({ value }) => value,
      );
    const linux = { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] };
    const stay = { key: 'spillway.dev/member', operator: 'DoesNotExist' };
    expect(of({})).toEqual([]);
    expect(of({}, { matchExpressions: [linux] })).toEqual([
      { nodeSelectorTerms: [{}, { matchExpressions: [linux, stay] }] },
    ]);
  });

  it.each([
    ['a number', 5],
    ['a list', []],
    ['missing', undefined],
  ])('gives nothing to what is no pod, as no patch would fit it: its metadata is %s', (_what, metadata) => {
    const pod = { metadata, spec: { nodeSelector: { disk: 'ssd' }, tolerations: [{ operator: 'Exists' }] } };
    const settings = {
      schedulerName: SCHEDULER,
      isVirtualNode,
      splitConstraints: true,
      outages: { toleration: 'Forever', admissionSeconds: 300 },
    } as const;
    expect(podDefaults(pod, true, settings)).toEqual([]);
    expect(systemPodDefaults(pod)).toEqual([]);
  });

  it('keeps the scheduler where none is configured', () => {
    const pod = podOf({ what: '', namespace: 'shop', gets: [] });
    const steps = podDefaults(pod, true, {
      schedulerName: undefined,
      isVirtualNode,
      splitConstraints: false,
      outages: { toleration: 'Forever', admissionSeconds: 300 },
    });
    expect(steps).toEqual([
      {
        op: 'add',
        path: '/spec/tolerations',
        value: [{ key: 'spillway.dev/virtual-node', operator: 'Exists', effect: 'NoSchedule' }],
      },
    ]);
  });

  it('gives those that go nowhere else an answer to outages, before what the pod has', () => {
    const present = { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' };
    const ours = (key: string) => ({ key: `node.kubernetes.io/${key}`, operator: 'Equal', effect: 'NoExecute' });
    const tolerationsOf = (toleration: OutageRule['toleration'], tolerationSeconds: number): unknown => {
      const spec = {
        nodeSelector: { 'spillway.dev/member': 'east' },
        tolerations: [
          { key: 'spillway.dev/virtual-node', operator: 'Exists' },
          { ...present, tolerationSeconds },
        ],
      };
      const settings = {
        schedulerName: undefined,
        isVirtualNode,
        splitConstraints: false,
        outages: { toleration, admissionSeconds: 300 },
      };
      const pod = podOf({ what: '', namespace: 'plain', spec, gets: [] });
      return podDefaults(pod, false, settings).map(({ value }) => (value as unknown[]).slice(0, -2));
    };
    expect(tolerationsOf('Forever', 300)).toEqual([[ours('not-ready'), ours('unreachable')]]);
    expect(tolerationsOf(3600, 60)).toEqual([[{ ...ours('not-ready'), tolerationSeconds: 3600 }]]);
    expect(tolerationsOf('Keep', 300)).toEqual([]);
  });

  it.each([undefined, null, 'pod', [], {}, { spec: [] }, { spec: { tolerations: 'x', affinity: 3 }, metadata: null }])(
    'takes %j for what it is',
    (pod) => {
      expect(
        podDefaults(pod, false, {
          schedulerName: SCHEDULER,
          isVirtualNode,
          splitConstraints: false,
          outages: { toleration: 'Forever', admissionSeconds: 300 },
        }),
      ).toEqual([]);
    },
  );

  it('does not take names of Object for labels', () => {
    const pod = { metadata: { labels: {} }, spec: { nodeSelector: { constructor: 'x' } } };
    expect(
      podDefaults(pod, false, {
        schedulerName: SCHEDULER,
        isVirtualNode: () => true,
        splitConstraints: false,
        outages: { toleration: 'Forever', admissionSeconds: 300 },
      }),
    ).toEqual([]);
  });
});
