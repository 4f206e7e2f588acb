import { describe, expect, it } from 'vitest';
import { HOST_LABEL, MIRRORED_CONDITION, NODE_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { LimitRange } from '../../src/kube/namespace-limits.ts';
import type { Pod, PodSpec, PodStatus, ResourceList } from '../../src/kube/core-v1.ts';
import { addTo, formatAmounts, parseAmounts } from '../../src/kube/amounts.ts';
import type { MemberCapacityOptions } from '../../src/capacity/member-capacity.ts';
import { holdsResources, podRequests } from '../../src/capacity/pod-requests.ts';
import { memberNode, poolOf } from '../fixtures/member-nodes.ts';
import { memberFit, policyOnPods } from '../fixtures/member-room.ts';

const POOL = poolOf();
const MIRRORED: PodStatus = { phase: 'Running', conditions: [{ type: MIRRORED_CONDITION, status: 'True' }] };
const STUCK: PodStatus = {
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
};

const specOf = (requests: ResourceList): PodSpec => ({
  containers: [{ name: 'c', image: 'i', resources: { requests } }],
});

function hostPod(name: string, requests: ResourceList, status: PodStatus = {}, more: Partial<PodSpec> = {}): Pod {
  return {
    metadata: { name, namespace: 'shop', uid: `uid-${name}` },
    spec: { ...specOf(requests), nodeName: 'east', ...more },
    status,
  };
}

/** The copy of the host pod of that name. */
function copy(
  name: string,
  nodeName: string | undefined,
  requests: ResourceList,
  status: PodStatus = { phase: 'Running' },
  more: Partial<PodSpec> = {},
): Pod {
  return {
    metadata: {
      name,
      namespace: 'member-shop',
      uid: `copy-${name}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { [HOST_LABEL]: 'host-1', [NODE_LABEL]: 'east', [UID_LABEL]: `uid-${name}` },
    },
    spec: { ...specOf(requests), ...(nodeName === undefined ? {} : { nodeName }), ...more },
    status,
  };
}

const deleting = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});

interface World {
  host?: Pod[];
  member?: Pod[];
  options?: Partial<MemberCapacityOptions>;
  policies?: boolean;
  defaults?: ResourceList;
  known?: boolean;
}

/** A member with one node of 8 CPUs, and what the host's scheduler has left there when it has subtracted its own figures. */
function world({ host = [], member = [], options = {}, policies = false, defaults, known = true }: World) {
  const made = memberFit({ pools: [POOL], ...options });
  made.capacity.nodeHandler.added(memberNode('a'));
  if (policies) {
    const plaintext = [{ path: '/spec/containers/0/resources/requests/cpu', operator: 'replace', value: '1' }];
    made.state.policies = [policyOnPods({ plaintext })];
  }
  if (defaults !== undefined) {
    const range: LimitRange = {
      metadata: { name: 'defaults', namespace: 'member-shop' },
      spec: { limits: [{ type: 'Container', defaultRequest: defaults }] },
    };
    made.capacity.limitRangeHandler.added(range);
  }
  made.state.known = known;
  for (const pod of host) made.virtual.hostPodHandler.added(pod);
  for (const pod of member) made.capacity.podHandler.added(pod);
  const left = (): Record<string, string> => {
    const amounts = parseAmounts(made.virtual.offer()?.allocatable);
    for (const pod of host) if (holdsResources(pod)) addTo(amounts, podRequests(pod), -1n);
    return formatAmounts(amounts);
  };
  return { ...made, left };
}

const HEADROOM = { options: { pools: [{ ...POOL, headroom: parseAmounts({ cpu: '2' }) }] } };
const GROWS = {
  options: {
    clock: () => Date.parse('2026-01-01T00:00:10Z'),
    elastic: [
      {
        name: 'more',
        nodeLabels: { group: 'more' },
        taints: [],
        resources: { cpu: '8', pods: '10' },
        maxNodes: 1,
        leadTimeSeconds: 60,
      },
    ],
  },
};
const ELSEWHERE = { options: { pools: [{ ...POOL, nodeSelector: { kind: 'none' } }] } };
const CAP = { options: { pools: [{ ...POOL, caps: parseAmounts({ cpu: '4' }) }] } };

describe('what the host has left on a virtual node is the room that is left in the member', () => {
  it.each<[string, World, string]>([
    [
      'an override that asks for less',
      { host: [hostPod('p', { cpu: '4' }, MIRRORED)], member: [copy('p', 'a', { cpu: '1' })] },
      '7',
    ],
    [
      'an override that asks for more',
      { host: [hostPod('p', { cpu: '1' }, MIRRORED)], member: [copy('p', 'a', { cpu: '4' })] },
      '4',
    ],
    ['the same before the copy is there', { host: [hostPod('p', { cpu: '4' })], policies: true }, '7'],
    ['a default of the namespace', { host: [hostPod('p', {}, MIRRORED)], member: [copy('p', 'a', { cpu: '2' })] }, '6'],
    ['the same before the copy is there', { host: [hostPod('p', {})], defaults: { cpu: '2' } }, '6'],
    [
      'overhead that only the member adds',
      {
        host: [hostPod('p', { cpu: '1' }, MIRRORED)],
        member: [copy('p', 'a', { cpu: '1' }, { phase: 'Running' }, { overhead: { cpu: '500m' } })],
      },
      '6500m',
    ],
    [
      'overhead that only the host adds',
      {
        host: [hostPod('p', { cpu: '1' }, MIRRORED, { overhead: { cpu: '2' } })],
        member: [copy('p', 'a', { cpu: '1' })],
      },
      '7',
    ],
    [
      'a resize that the member has not granted yet',
      {
        host: [
          hostPod(
            'p',
            { cpu: '3' },
            {
              ...MIRRORED,
              containerStatuses: [
                {
                  name: 'c',
                  ready: true,
                  restartCount: 0,
                  image: 'i',
                  imageID: '',
                  resources: { requests: { cpu: '1' } },
                },
              ],
            },
          ),
        ],
        member: [copy('p', 'a', { cpu: '1' })],
      },
      '7',
    ],
    ['a pod on its way', { host: [hostPod('p', { cpu: '3' })] }, '5'],
    [
      'a pod whose copy waits for its node',
      {
        host: [hostPod('p', { cpu: '3' }, MIRRORED)],
        member: [copy('p', undefined, { cpu: '2' }, { phase: 'Pending' })],
      },
      '6',
    ],
    [
      'a pod that the member has no node for',
      { host: [hostPod('p', { cpu: '20' }, MIRRORED)], member: [copy('p', undefined, { cpu: '30' }, STUCK)] },
      '8',
    ],
    [
      'one that waits there for others to be evicted',
      {
        host: [hostPod('p', { cpu: '3' }, MIRRORED)],
        member: [copy('p', undefined, { cpu: '2' }, { ...STUCK, nominatedNodeName: 'a' })],
      },
      '6',
    ],
    [
      'a pod that can have no copy',
      { host: [{ ...hostPod('p', { cpu: '3' }), metadata: { name: 'p', namespace: 'other', uid: 'u' } }] },
      '8',
    ],
    ['a pod of which nobody knows yet what it becomes', { host: [hostPod('p', { cpu: '3' })], known: false }, '5'],
    [
      'a DaemonSet’s pod that is not to run',
      {
        host: [
          hostPod('p', { cpu: '3' }, { phase: 'Running', conditions: [{ type: MIRRORED_CONDITION, status: 'False' }] }),
        ],
      },
      '8',
    ],
    [
      'one that waits for that in a member that can get more nodes',
      {
        ...GROWS,
        host: [hostPod('p', { cpu: '3' }, MIRRORED), hostPod('q', { cpu: '8' }, MIRRORED)],
        member: [
          deleting(copy('q', 'a', { cpu: '8' })),
          copy('p', undefined, { cpu: '2' }, { ...STUCK, nominatedNodeName: 'a' }),
        ],
      },
      '8',
    ],
    [
      'one that waits for a node that the member can get',
      {
        ...GROWS,
        host: [hostPod('p', { cpu: '3' }, MIRRORED), hostPod('q', { cpu: '8' }, MIRRORED)],
        member: [copy('q', 'a', { cpu: '8' }), copy('p', undefined, { cpu: '2' }, STUCK)],
      },
      '6',
    ],
    [
      'a finished pod',
      {
        host: [hostPod('p', { cpu: '3' }, { ...MIRRORED, phase: 'Succeeded' })],
        member: [copy('p', 'a', { cpu: '3' }, { phase: 'Succeeded' })],
      },
      '8',
    ],
    [
      'a copy that has finished, of which the host does not know yet',
      { host: [hostPod('p', { cpu: '3' }, MIRRORED)], member: [copy('p', 'a', { cpu: '3' }, { phase: 'Failed' })] },
      '8',
    ],
    [
      'a pod that ends',
      { host: [deleting(hostPod('p', { cpu: '3' }, MIRRORED))], member: [deleting(copy('p', 'a', { cpu: '2' }))] },
      '6',
    ],
    ['one whose copy is gone already', { host: [deleting(hostPod('p', { cpu: '3' }, MIRRORED))] }, '8'],
    ['one that ends before it had a copy', { host: [deleting(hostPod('p', { cpu: '3' }))] }, '8'],
    ['a copy that is kept although its pod is gone', { member: [copy('p', 'a', { cpu: '3' })] }, '5'],
    [
      'headroom',
      { ...HEADROOM, host: [hostPod('p', { cpu: '3' }, MIRRORED)], member: [copy('p', 'a', { cpu: '1' })] },
      '5',
    ],
    ['a cap', { ...CAP, host: [hostPod('p', { cpu: '3' }, MIRRORED)], member: [copy('p', 'a', { cpu: '1' })] }, '3'],
    ['a cap, with a pod on its way', { ...CAP, host: [hostPod('p', { cpu: '3' })] }, '1'],
    [
      'a cap that is exceeded',
      { ...CAP, host: [hostPod('p', { cpu: '5' }, MIRRORED)], member: [copy('p', 'a', { cpu: '7' })] },
      '-3',
    ],
    ['a pod on its way to a node that is not of the pool', { ...ELSEWHERE, host: [hostPod('p', { cpu: '3' })] }, '0'],
  ])('%s', (_, plan, expected) => {
    expect(world(plan).left()['cpu'] ?? '0').toBe(expected);
  });

  it('whatever a scheduler is only thinking of', () => {
    const { virtual, request, left } = world({});
    virtual.reserve('uid-x', request(hostPod('x', { cpu: '3' })));
    expect(left()['cpu']).toBe('8');
  });

  it('and the fit test finds as much, where headroom and caps count', () => {
    const { virtual, request } = world({ ...CAP, host: [hostPod('p', { cpu: '3' })], policies: true });
    // As the member counts: 1 of 4. The next one finds the 3 that it asks for in the host, and leaves 2.
    expect(virtual.slots(request(hostPod('x', { cpu: '3' })), 9)).toBe(1);
    expect(virtual.slots(request(hostPod('x', { cpu: '1' })), 9)).toBe(3);
  });

  it('and nothing is left of pods when nobody tells of them any more', () => {
    const { virtual, capacity } = world({ host: [hostPod('p', { cpu: '3' })] });
    expect(capacity.size.reservations).toBe(1);
    virtual.end();
    expect(capacity.size.reservations).toBe(0);
    // Whoever goes through the pods that were known is late.
    virtual.noteBound(hostPod('p', { cpu: '3' }));
    expect(capacity.size.reservations).toBe(0);
  });

  it('and nothing of a pod that has finished before its copy was seen', () => {
    const { virtual, capacity } = world({ host: [hostPod('p', { cpu: '3' })] });
    virtual.hostPodHandler.updated(hostPod('p', { cpu: '3' }, MIRRORED));
    expect(capacity.size.reservations).toBe(1);
    virtual.hostPodHandler.updated(hostPod('p', { cpu: '3' }, { ...MIRRORED, phase: 'Failed' }));
    expect(capacity.size.reservations).toBe(0);
    expect(virtual.offer()?.allocatable['cpu']).toBe('8');
  });
});
