import { describe, expect, it } from 'vitest';
import { MEMBER_CONSTRAINTS_ANNOTATION, MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { NodeSelector, Pod, PodSpec } from '../../src/kube/core-v1.ts';
import { formatAmounts } from '../../src/kube/amounts.ts';
import { memberNode } from '../fixtures/member-nodes.ts';
import { memberFit, policyOnPods } from '../fixtures/member-room.ts';

function hostPod(name: string, spec: Partial<PodSpec> = {}, more: Partial<Pod> = {}): Pod {
  return {
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, labels: { app: 'web' } },
    spec: {
      containers: [{ name: 'c', image: 'app:1', resources: { requests: { cpu: '4' } } }],
      volumes: [{ name: `kube-api-access-${name}`, projected: {} }],
      ...spec,
    },
    ...more,
  };
}

function room() {
  const made = memberFit();
  made.capacity.nodeHandler.added(memberNode('a', { labels: { disk: 'ssd' } }));
  made.capacity.nodeHandler.added(memberNode('b'));
  return made;
}

describe('VirtualNodeFit', () => {
  it('asks about the pod as it will be in the member, without what speaks of virtual nodes', () => {
    const { virtual, request } = room();
    const asked = request(hostPod('p', { nodeSelector: { type: 'virtual-kubelet', disk: 'ssd' } }));
    expect(asked.namespace).toBe('member-shop');
    expect(virtual.fits(asked)).toEqual({ fits: true, nodes: 1 });
    expect(virtual.request({ ...hostPod('p'), metadata: { name: 'p', namespace: 'kube-system' } })).toEqual({
      refused: 'its namespace has no place there',
    });
  });

  it('knows what was set down for the nodes of the member, pod by pod', () => {
    const { virtual, request } = room();
    const annotated = (constraints: string): Pod => {
      const pod = hostPod('p');
      return { ...pod, metadata: { ...pod.metadata, annotations: { [MEMBER_CONSTRAINTS_ANNOTATION]: constraints } } };
    };
    const constrained = (disk: string): Pod => annotated(JSON.stringify({ nodeSelector: { disk } }));
    expect(virtual.fits(request(hostPod('p')))).toEqual({ fits: true, nodes: 2 });
    expect(virtual.fits(request(constrained('ssd')))).toEqual({ fits: true, nodes: 1 });
    expect(virtual.fits(request(constrained('tape')))).toMatchObject({ fits: false });
    expect(virtual.request(annotated('{'))).toHaveProperty('refused');
  });

  it.each([[[]], [[policyOnPods({ labelsOverrider: [{ operator: 'add', value: { a: 'b' } }] })]]])(
    'refuses a pod that asks more of nodes and other pods than is worked out, with policies %j',
    (policies) => {
      const { virtual, state } = room();
      state.policies = policies;
      const values = Array.from({ length: 300 }, (_, i) => `n${String(i)}`);
      const nodeSelectorTerms = [{ matchExpressions: [{ key: 'disk', operator: 'NotIn', values }] }];
      const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
      const pod = hostPod('p');
      const annotations = { [MEMBER_CONSTRAINTS_ANNOTATION]: JSON.stringify({ nodeAffinity }) };
      expect(virtual.request({ ...pod, metadata: { ...pod.metadata, annotations } })).toEqual({
        refused:
          'its node selector, tolerations, required affinity and topology spread constraints have 302 requirements and values together; virtual nodes take pods with 256 at most',
      });
    },
  );

  it.each([
    ['topologySpreadConstraints', {}],
    ['affinity', { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } }],
  ])('refuses a pod of which policies make none that can be read: %s', (field, value) => {
    const { virtual, state } = room();
    state.policies = [policyOnPods({ plaintext: [{ path: `/spec/${field}`, operator: 'add', value }] })];
    expect(virtual.request(hostPod('p'))).toEqual({
      refused: 'its override policies make no pod that can be read: a field of it has a value of the wrong type',
    });
  });

  it('takes the overhead of the runtime class from the host', () => {
    const { request } = room();
    const asked = request(hostPod('p', { runtimeClassName: 'heavy', overhead: { cpu: '250m' } }));
    expect(formatAmounts(asked.requests)).toMatchObject({ cpu: '4250m' });
  });

  it.each([[[]], [[policyOnPods({ labelsOverrider: [{ operator: 'add', value: { a: 'b' } }] })]]])(
    'asks for the quota of the class that the copy has, with policies %j',
    (policies) => {
      const { virtual, request, state, capacity } = room();
      capacity.quotaHandler.added({
        metadata: { name: 'few', namespace: 'member-shop' },
        spec: {
          scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['burst-high'] }] },
        },
        status: { hard: { pods: '0' }, used: {} },
      });
      state.policies = policies;
      const critical = hostPod('p', { priorityClassName: 'critical', priority: 9 });
      expect(virtual.fits(request(critical))).toEqual({ fits: true, nodes: 2 });
      state.podPriority = { classes: [{ host: 'critical', member: 'burst-high' }] };
      // The MemberCluster was edited.
      state.facts = {};
      expect(virtual.fits(request(critical))).toMatchObject({ fits: false });
      expect(virtual.fits(request(hostPod('q')))).toEqual({ fits: true, nodes: 2 });
    },
  );

  it('answers pods of one template with one request', () => {
    const { request, state } = room();
    const first = request(hostPod('p1'));
    expect(request(hostPod('p2'))).toBe(first);
    expect(request(hostPod('p3', { nodeSelector: { disk: 'ssd' } }))).not.toBe(first);
    state.facts = {};
    expect(request(hostPod('p2'))).not.toBe(first);
    expect(request(hostPod('p2')).key).toBe(first.key);
  });

  it('asks only nodes that the volumes of its claims can be used on', () => {
    const { virtual, request, state } = room();
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    const only = (key: string, value: string): NodeSelector => ({
      nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }],
    });
    const free = request(hostPod('free', { volumes }));
    expect(virtual.fits(free)).toEqual({ fits: true, nodes: 2 });
    state.places.set('bound', [only('disk', 'ssd')]);
    state.places.set('torn', [only('disk', 'ssd'), only('kubernetes.io/hostname', 'b')]);
    // Pods of one template, with claims of their own.
    expect(virtual.fits(request(hostPod('bound', { volumes })))).toEqual({ fits: true, nodes: 1 });
    expect(virtual.fits(request(hostPod('torn', { volumes })))).toEqual({
      fits: false,
      reasons: [{ text: 'a volume of the pod is elsewhere', nodes: 2 }],
    });
    expect(request(hostPod('free', { volumes }))).toBe(free);
  });

  it('judges pods by the paths of the node that they ask for, one by one', () => {
    const { virtual, request } = room();
    const withPath = (path: string): Pod => hostPod('p', { volumes: [{ name: 'files', hostPath: { path } }] });
    expect(virtual.fits(request(withPath('/var/log')))).toEqual({ fits: true, nodes: 2 });
    expect(virtual.request(withPath('/etc'))).toEqual({ refused: expect.stringContaining('"/etc"') as string });
    expect(virtual.request(withPath('/var/log/../../etc'))).toHaveProperty('refused');
    expect(virtual.request(withPath('/var/log/app'))).toHaveProperty('key');
  });

  it('applies overrides before it asks', () => {
    const plaintext = [{ path: '/spec/containers/0/resources/requests/cpu', operator: 'replace', value: '6' }];
    const { virtual, request, state } = room();
    const before = request(hostPod('p'));
    expect(virtual.slots(before, 9)).toBe(4);
    state.policies = [policyOnPods({ plaintext })];
    const asked = request(hostPod('p'));
    expect(formatAmounts(asked.requests)).toMatchObject({ cpu: '6' });
    expect(virtual.slots(asked, 9)).toBe(2);
    state.known = false;
    expect(virtual.request(hostPod('p'))).toEqual({ unknown: 'the override policies have not been read yet' });
  });

  it('counts as the host does, too, where overrides lower what a pod asks for', () => {
    const lowered = [{ path: '/spec/containers/0/resources/requests/cpu', operator: 'replace', value: '1' }];
    const { request, state } = room();
    const host = request(hostPod('p'));
    state.policies = [policyOnPods({ plaintext: lowered })];
    const asked = request(hostPod('p'));
    expect(asked.hostCount?.get('cpu')).toBe(host.requests.get('cpu'));
    expect(asked.key).not.toBe(host.key);
  });

  it('asks for images as they will be in the member', () => {
    const { virtual, state } = room();
    expect(virtual.images(hostPod('p'))).toBe(0);
    state.policies = [
      policyOnPods({ imageOverrider: [{ component: 'Registry', operator: 'add', value: 'registry.example' }] }),
    ];
    expect(virtual.images(hostPod('p'))).toBe(100);
  });

  it('lists the images of a pod once for all members', () => {
    let reads = 0;
    const container = Object.defineProperty({ name: 'c' }, 'image', {
      get: () => {
        reads += 1;
        return 'registry.example/app:1';
      },
    });
    const pod = hostPod('p', { containers: [container] });
    const members = [memberFit({}, 'east'), memberFit({}, 'west')];
    for (const { request } of members) request(pod);
    reads = 0;
    expect(members.map(({ virtual }) => virtual.images(pod))).toEqual([100, 100]);
    expect(reads).toBe(1);
  });

  const heldFor = (reason: string, since: number, deletionTimestamp?: string): Pod => {
    const lastTransitionTime = new Date(since).toISOString();
    const conditions = [{ type: MIRRORED_CONDITION, status: 'False' as const, reason, lastTransitionTime }];
    const pod = hostPod('p', { nodeName: 'east' }, { status: { conditions } });
    return deletionTimestamp === undefined ? pod : { ...pod, metadata: { ...pod.metadata, deletionTimestamp } };
  };

  it.each([
    ['MemberUnreachable', [3, 3, 3]],
    ['MemberUnavailable', [3, 3, 4]],
    ['CreationUnanswered', [3, 3, 4]],
    ['FormerPodLeaving', [3, 3, 4]],
    ['DependentsPending', [3, 3, 4]],
    ['ClaimPending', [3, 3, 4]],
    ['MandatorySecretNotFound', [4, 4, 4]],
    ['MemberQuotaExceeded', [4, 4, 4]],
    ['DaemonSetIgnored', [4, 4, 4]],
  ])('keeps the room of a pod that is held back by what passes by itself, for five minutes: %s', (reason, left) => {
    const { virtual, request, state } = room();
    virtual.hostPodHandler.added(hostPod('p', { nodeName: 'east' }));
    virtual.hostPodHandler.updated(heldFor(reason, state.now));
    const other = request(hostPod('other'));
    const began = state.now;
    const slots = [0, 299_999, 300_000].map((ms) => {
      state.now = began + ms;
      return virtual.slots(other, 9);
    });
    expect(slots).toEqual(left);
  });

  it('keeps it no longer when another process begins, nor of a pod that is gone', () => {
    const { virtual, request, state } = room();
    virtual.hostPodHandler.added(heldFor('MemberUnavailable', state.now - 300_000));
    expect(virtual.slots(request(hostPod('other')), 9)).toBe(4);
    virtual.hostPodHandler.updated(heldFor('MemberUnavailable', state.now));
    virtual.hostPodHandler.deleted(hostPod('p'));
    state.now += 300_000;
    expect(virtual.slots(request(hostPod('other')), 9)).toBe(4);
  });

  it.each([
    ['CreationUnanswered', 3],
    ['MemberUnavailable', 3],
    ['FormerPodLeaving', 4],
  ])('keeps that of a pod that is being deleted while its creation may be carried out: %s', (reason, left) => {
    const { virtual, request, state } = room();
    virtual.hostPodHandler.added(heldFor(reason, state.now, '2026-01-01T00:00:00Z'));
    expect(virtual.slots(request(hostPod('other')), 9)).toBe(left);
  });

  it('reserves for pods that are bound until the member has been shown them', () => {
    const { virtual, capacity, request } = room();
    const pod = hostPod('p', { nodeName: 'east' });
    const slots = (): number => virtual.slots(request(hostPod('other')), 9);
    expect(slots()).toBe(4);
    virtual.hostPodHandler.added(pod);
    virtual.hostPodHandler.updated(pod);
    expect(slots()).toBe(3);
    virtual.reserve('uid-p', request(pod));
    virtual.release('uid-p');
    expect(slots()).toBe(3);
    virtual.hostPodHandler.deleted(pod);
    expect(slots()).toBe(4);
    const creating = [{ type: MIRRORED_CONDITION, status: 'Unknown' as const }];
    virtual.hostPodHandler.added(hostPod('p', { nodeName: 'east' }, { status: { conditions: creating } }));
    expect(slots()).toBe(3);
    virtual.hostPodHandler.deleted(pod);
    const conditions = [{ type: MIRRORED_CONDITION, status: 'True' as const }];
    virtual.hostPodHandler.added(hostPod('p', { nodeName: 'east' }, { status: { conditions } }));
    virtual.hostPodHandler.added(hostPod('q', { nodeName: 'east' }, { status: { phase: 'Failed' } }));
    expect(slots()).toBe(4);
    expect(capacity.size.reservations).toBe(0);
  });
});
