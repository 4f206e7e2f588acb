import { describe, expect, it } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { formatAmounts, UNIT } from '../../src/kube/amounts.ts';
import { grantedSpec, holdsResources, podRequests } from '../../src/capacity/pod-requests.ts';
import { parseQuantity } from '../../src/kube/quantity.ts';
// Made with k8s.io/component-helpers/resource v0.36.3: PodRequests with status resources, as kube-scheduler 1.36 asks.
import golden from '../fixtures/pod-requests.json' with { type: 'json' };

const requests = (spec: object): Record<string, string> =>
  formatAmounts(podRequests({ metadata: { name: 'p' }, spec } as Pod));
const container = (cpu: string, restartPolicy?: string) => ({
  name: 'c',
  resources: { requests: { cpu } },
  ...(restartPolicy === undefined ? {} : { restartPolicy }),
});

describe('podRequests', () => {
  it('equals what kube-scheduler counts', () => {
    for (const { pod, requests: expected } of golden as unknown as { pod: Pod; requests: Record<string, string> }[]) {
      const amounts = new Map([...podRequests(pod)].filter(([name, nanos]) => name !== 'pods' && nanos !== 0n));
      const wanted = new Map(Object.entries(expected).map(([name, text]) => [name, parseQuantity(text).nanos]));
      expect(amounts, pod.metadata.name).toEqual(wanted);
    }
  });

  it('comes to the same for the spec alone that a cache keeps', () => {
    for (const { pod } of golden as unknown as { pod: Pod }[]) {
      expect(podRequests({ metadata: pod.metadata, spec: grantedSpec(pod) })).toEqual(podRequests(pod));
    }
    const nothingNew = golden.filter(({ pod }) => grantedSpec(pod as unknown as Pod) === (pod.spec as unknown));
    expect(nothingNew.length).toBeGreaterThan(0);
  });

  it('takes the largest step of the init sequence, sidecars started before it included', () => {
    expect(
      requests({
        containers: [container('100m')],
        initContainers: [container('200m', 'Always'), container('500m'), container('300m', 'Always'), container('50m')],
      }),
    ).toEqual({ cpu: '700m', pods: '1' });
    expect(
      requests({ containers: [container('1')], initContainers: [container('200m', 'Always'), container('500m')] }),
    ).toEqual({ cpu: '1200m', pods: '1' });
  });

  it('lets pod-level requests replace those of the containers, overhead on top', () => {
    expect(
      requests({
        containers: [container('1')],
        resources: { requests: { cpu: '300m', memory: '1Gi', 'example.com/x': '5' } },
        overhead: { cpu: '50m' },
      }),
    ).toEqual({ cpu: '350m', memory: '1Gi', pods: '1' });
  });

  it('counts a pod without requests as one pod', () => {
    expect(podRequests({ metadata: { name: 'p' }, spec: { containers: [{ name: 'c' }] } })).toEqual(
      new Map([['pods', UNIT]]),
    );
  });

  it('takes a quantity that cannot be read as nothing', () => {
    expect(requests({ containers: [container('lots')] })).toEqual({ pods: '1' });
  });
});

describe('holdsResources', () => {
  it('is false for finished pods only', () => {
    const pod = (phase?: string) =>
      ({ metadata: { name: 'p' }, spec: { containers: [] }, status: phase === undefined ? {} : { phase } }) as Pod;
    expect(['Pending', 'Running', 'Unknown', undefined].map((phase) => holdsResources(pod(phase)))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(['Succeeded', 'Failed'].map((phase) => holdsResources(pod(phase)))).toEqual([false, false]);
  });
});
