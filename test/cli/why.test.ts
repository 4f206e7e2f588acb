import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseMemberCluster, type MemberCluster } from '../../src/api/member-cluster.ts';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import { explain } from '../../src/cli/why/explain.ts';
import { explanationText } from '../../src/cli/why/explanation-text.ts';
import { heldDeletions } from '../../src/cli/why/held-deletions.ts';
import type { PodFacts } from '../../src/cli/why/pod-facts.ts';
import { REASON_HELP } from '../../src/cli/why/reason-help.ts';
import { decisionWords, schedulerWords } from '../../src/cli/why/scheduler-words.ts';
import type { Condition, Node, Pod, Taint } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { compilePolicy, type CompiledPolicy } from '../../src/placement/policy-selection.ts';
import { hostPod } from '../fixtures/pods.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const at = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1000).toISOString();

const condition = (type: string, status: Condition['status'], reason: string, message = ''): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: at(30),
});

function member(name: string, spec: object = {}, status: object = {}): MemberCluster {
  const raw: KubeObject & { spec: object; status: object } = {
    metadata: { name },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...spec },
    status: {
      conditions: [condition('Ready', 'True', 'Ready'), condition('Reachable', 'True', 'ProbeSucceeded')],
      ...status,
    },
  };
  const parsed = parseMemberCluster(raw);
  if (!('member' in parsed)) throw new Error(parsed.problems.join());
  return parsed.member;
}

const VIRTUAL: Taint = { key: 'spillway.dev/virtual-node', value: 'true', effect: 'NoSchedule' };

function node(name: string, taints: Taint[] = [VIRTUAL], conditions: Condition[] = []): Node {
  return {
    metadata: {
      name,
      labels: { 'spillway.dev/member': name, 'kubernetes.io/hostname': name, type: 'virtual-kubelet' },
    },
    spec: { providerID: `spillway://${name}/${name}`, taints },
    status: { conditions: [condition('Ready', 'True', 'KubeletReady'), ...conditions] },
  };
}

function policy(clusterNames: readonly string[]): CompiledPolicy {
  const raw: KubeObject & { spec: object } = {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }], placement: { clusterAffinity: { clusterNames } } },
  };
  const parsed = parsePlacementPolicy(raw);
  const compiled = 'policy' in parsed ? compilePolicy(parsed.policy) : parsed;
  if ('problems' in compiled) throw new Error(compiled.problems.join());
  return compiled;
}

const TOLERATES = [{ key: VIRTUAL.key, operator: 'Exists' as const }];
const unscheduled = (message: string): Condition => condition('PodScheduled', 'False', 'Unschedulable', message);

function waiting(spec: Partial<Pod['spec']>, ...conditions: Condition[]): Pod {
  const pod = hostPod({
    metadata: { creationTimestamp: at(60) },
    spec: { tolerations: TOLERATES, ...spec },
    status: { phase: 'Pending', conditions },
  });
  delete pod.spec.nodeName;
  return pod;
}

function bound(status: Pod['status'], metadata: Partial<Pod['metadata']> = {}): Pod {
  return hostPod({
    metadata: { creationTimestamp: at(60), ...metadata },
    spec: { tolerations: TOLERATES },
    status: { ...status, conditions: [condition('PodScheduled', 'True', ''), ...(status?.conditions ?? [])] },
  });
}

function running(spec: Partial<Pod['spec']> = {}): Pod {
  const pod = bound({ phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] });
  return { ...pod, spec: { ...pod.spec, ...spec } };
}

/** Made with that node, as the API server remembers it. */
function named(nodeName: string, subresource?: string): Pod {
  const pod = running({ nodeName });
  const managedFields = [
    { manager: 'kubelet', operation: 'Update', fieldsV1: { 'f:status': {} }, subresource: 'status' },
    { manager: 'kubectl-create', operation: 'Update', fieldsV1: { 'f:spec': { 'f:nodeName': {} } }, subresource },
    null,
  ];
  const metadata: object = { ...pod.metadata, managedFields };
  return { ...pod, metadata: metadata as Pod['metadata'] };
}

/** Of a pod with a controller. */
function chainOf(pod: Pod): PodFacts['chain'] {
  const of = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'web', namespace: 'shop', uid: 'set' } };
  return [{ ...pod, apiVersion: 'v1', kind: 'Pod' }, of];
}

const MIRRORED = condition(
  'spillway.dev/Mirrored',
  'True',
  'Created',
  'member=east namespace=shop name=web-0 uid=1 overrides=OverridePolicy/shop/mirror',
);

function facts(pod: Pod, more: Partial<PodFacts> = {}): PodFacts {
  return {
    pod,
    chain: [{ ...pod, apiVersion: 'v1', kind: 'Pod' }],
    now: NOW,
    events: [],
    namespaceLabels: {},
    members: [member('east'), member('west')],
    nodes: [node('east'), node('west')],
    policies: [],
    placement: null,
    schedulerAnswers: true,
    memberServed: true,
    gang: undefined,
    ...more,
  };
}

const held = (reason: string, message: string): Pod =>
  bound({
    phase: 'Pending',
    reason,
    message,
    conditions: [condition('spillway.dev/Mirrored', 'False', reason, message)],
  });
const container = (reason: string, message: string, more: object = {}): Pod =>
  bound({
    phase: 'Pending',
    conditions: [MIRRORED],
    containerStatuses: [
      {
        name: 'app',
        image: 'shop/web:v9',
        imageID: '',
        ready: false,
        restartCount: 0,
        state: { waiting: { reason, message } },
        ...more,
      },
    ],
  });
const gangPod = (name: string): Pod => {
  const pod = waiting({ schedulingGates: [{ name: 'spillway.dev/gang' }] });
  pod.metadata = {
    ...pod.metadata,
    name,
    labels: { 'spillway.dev/gang': 'train' },
    annotations: { 'spillway.dev/gang-size': '3' },
  };
  return pod;
};
const FIRST_TAINTED = unscheduled(
  '0/2 nodes are available: 2 node(s) had untolerated taint(s). preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.',
);
const unreadyEast: Node = {
  ...node('east'),
  status: { conditions: [condition('Ready', 'Unknown', 'MemberUnreachable')] },
};
const lostEast = member(
  'east',
  {},
  {
    conditions: [
      condition('Ready', 'False', 'Timeout'),
      condition('Reachable', 'False', 'Timeout', 'No answer within 5 s.'),
    ],
  },
);

const refusedEast = member(
  'east',
  {},
  {
    conditions: [
      condition('Ready', 'False', 'Unauthorized'),
      condition('CredentialsValid', 'False', 'Unauthorized', '401.'),
      condition('Reachable', 'False', 'Unauthorized', '401.'),
    ],
  },
);

interface Situation {
  facts: PodFacts;
  answer: RegExp;
  /** Of the scheduler here. */
  says?: RegExp;
  /** The step at which it is stuck. */
  stuck?: string;
  help?: RegExp;
  places?: Record<string, RegExp>;
  page?: string;
}

const event = (reason: string, message: string) => ({
  metadata: { name: reason },
  involvedObject: {},
  reason,
  message,
  lastTimestamp: at(30),
});

const SITUATIONS: Record<string, Situation> = {
  'no toleration': {
    facts: facts(waiting({ tolerations: [] }, FIRST_TAINTED)),
    answer:
      /^It has waited for 60s for a place. What keeps it from east, west: the pod does not tolerate spillway.dev\/virtual-node/,
    stuck: 'host scheduler',
    help: /add a toleration for spillway.dev\/virtual-node/,
    page: 'guides/admission.md',
  },
  'the policy forbids a member': {
    facts: facts(waiting({}, FIRST_TAINTED), {
      policies: [policy(['west'])],
      nodes: [node('east'), node('west', [{ key: 'gpu', effect: 'NoSchedule' }, VIRTUAL])],
    }),
    answer: /none of 2 clusters takes it now/,
    places: { east: /^the policy does not name it$/, west: /does not tolerate taint gpu:NoSchedule/ },
    help: /change PlacementPolicy web/,
  },
  'no room, told by Spillway, with numbers': {
    facts: facts(
      waiting(
        {},
        unscheduled(
          '0/5 nodes are available: 1 member east: 3 nodes: insufficient cpu, 1 node: cordoned (no node has 16 cpu free (largest free slot 8 cpu)), ' +
            '1 member west: no node has 16 cpu free (largest free slot 4 cpu), 3 Insufficient cpu. preemption: not eligible.',
        ),
      ),
    ),
    answer: /none of 2 clusters/,
    places: {
      east: /^3 nodes: insufficient cpu, 1 node: cordoned .*largest free slot 8 cpu\)\)$/,
      west: /^no node has 16 cpu free \(largest free slot 4 cpu\)$/,
    },
    help: /ask for less, or make room/,
    page: 'concepts/capacity.md',
  },
  'no room, which the scheduler found itself': {
    facts: facts(
      waiting(
        { containers: [{ name: 'app', resources: { requests: { cpu: '16' } } }] },
        unscheduled('0/2 nodes are available: 2 Insufficient cpu.'),
      ),
      {
        members: [member('east', {}, { largestFreeSlot: { cpu: '8', memory: '8Gi' } })],
        nodes: [node('east')],
      },
    ),
    answer: /What keeps it from east: no node has 16 cpu free \(largest free slot 8 cpu\)/,
  },
  'a quota in the member, told by Spillway': {
    facts: facts(
      waiting(
        {},
        unscheduled('0/1 nodes are available: 1 member east: quota compute of namespace shop is used up: cpu 4 of 4.'),
      ),
      { members: [member('east')] },
    ),
    answer: /from east: quota compute of namespace shop is used up/,
    help: /raise the ResourceQuota/,
  },
  'a taint of the virtual node': {
    facts: facts(waiting({}, FIRST_TAINTED), {
      nodes: [node('east', [VIRTUAL, { key: 'team', value: 'a', effect: 'NoSchedule' }])],
      members: [member('east')],
    }),
    answer: /does not tolerate taint team=a:NoSchedule/,
    help: /add a toleration for team/,
  },
  'a taint of the cluster': {
    facts: facts(waiting({}, FIRST_TAINTED), {
      policies: [policy(['east'])],
      members: [member('east', { clusterTaints: [{ key: 'frozen', effect: 'NoSchedule' }] })],
    }),
    answer: /cluster taint frozen:NoSchedule/,
    help: /clusterTolerations/,
  },
  'a node selector that nothing satisfies': {
    facts: facts(waiting({ nodeSelector: { disk: 'ssd' } }, FIRST_TAINTED)),
    answer: /What keeps it from east, west: the node selector or node affinity of the pod leaves it out/,
  },
  'nothing lets it leave the host': {
    facts: facts(
      waiting({ tolerations: [{ operator: 'Exists' }] }, unscheduled('0/1 nodes are available: 1 Insufficient cpu.')),
      { members: [member('east')] },
    ),
    answer: /from east: nothing says that the pod may leave this cluster/,
    help: /burst=enabled/,
  },
  'a member that takes no new pods': {
    facts: facts(waiting({}, FIRST_TAINTED), { members: [member('east', { unschedulable: true })] }),
    answer: /it takes no new pods/,
    help: /kubectl spillway uncordon east/,
  },
  'a member that cannot be reached': {
    facts: facts(waiting({}, FIRST_TAINTED), {
      members: [lostEast],
      nodes: [node('east', [VIRTUAL, { key: 'spillway.dev/member-unreachable', effect: 'NoSchedule' }])],
    }),
    answer: /from east: it cannot be reached: No answer within 5 s/,
    help: /kubectl spillway clusters east/,
  },
  'a member that is not ready, as its Node says': {
    facts: facts(waiting({}, FIRST_TAINTED), {
      members: [member('east')],
      nodes: [node('east', [VIRTUAL, { key: 'spillway.dev/member-not-ready', effect: 'NoSchedule' }])],
    }),
    answer: /from east: it is not ready: it does not serve, or cannot be asked/,
    page: 'concepts/failover.md#which-members-are-lost',
  },
  'no scheduler component runs': {
    facts: facts(waiting({}, FIRST_TAINTED), { policies: [policy(['east'])], schedulerAnswers: false }),
    answer: /place|PlacementPolicy/,
    help: /components: \[members, scheduler\]/,
    page: 'guides/scheduling.md',
  },
  'the scheduler does not ask Spillway': {
    facts: facts(running(), { policies: [policy(['west'])], chain: chainOf(running()) }),
    answer: /^It runs in member east, and all is well/,
    says: /^default-scheduler bound it .* default-scheduler has not asked Spillway about this workload\.$/,
    help: /needs the extender in its configuration/,
  },
  'a pod without a controller, of which nothing is ever written, where its policy would not have it': {
    facts: facts(running({ schedulerName: 'own' }), { policies: [policy(['west'])] }),
    answer: /^It runs in member east, and all is well/,
    says: /^own bound it to virtual node east, .* it would not go there now \(.*\): the policy was changed since, or own did not ask Spillway\.$/,
    help: /^nobody makes a pod without a controller anew, so nothing moves it: delete it, and make it again/,
    page: 'guides/scheduling.md#whether-anybody-asks',
  },
  'the same on a node of the host': {
    facts: facts(running({ nodeName: 'local-0' }), { policies: [policy(['west'])] }),
    answer: /^It runs on node local-0, and all is well/,
    says: /^default-scheduler bound it to node local-0 of this cluster itself\. By its policy it would not go there now/,
    help: /^nobody makes a pod without a controller anew/,
  },
  'a pod without a controller where its policy has it': {
    facts: facts(running(), { policies: [policy(['east'])] }),
    answer: /^It runs in member east, and all is well/,
    says: /^default-scheduler bound it to virtual node east, which stands for member east\.$/,
  },
  'a pod without a controller that waits, of which no word of the scheduler is of Spillway': {
    facts: facts(waiting({ schedulerName: 'own' }, unscheduled('0/3 nodes are available: 3 Insufficient cpu.')), {
      policies: [policy(['east'])],
    }),
    answer: /./,
    says: /^own has found no node for it\. .* Whether own asks Spillway about it cannot be seen, as nothing is written of pods without a controller\. It looks again/,
    help: /see that own is a scheduler that asks Spillway: column Effective of kubectl get placementpolicies -A/,
    page: 'guides/scheduling.md#whether-anybody-asks',
  },
  'a pod that was made with the virtual node in it': {
    facts: facts(named('east'), { policies: [policy(['west'])] }),
    answer: /^It runs in member east, and all is well/,
    says: /^It was made with spec\.nodeName, for virtual node east, which stands for member east: no scheduler was asked, .* PlacementPolicy web had no effect on it\.$/,
    help: /^leave spec\.nodeName out, and make the pod anew/,
    page: 'guides/scheduling.md',
  },
  'a pod whose binding is remembered': {
    facts: facts(named('east', 'binding')),
    answer: /^It runs in member east, and all is well/,
    says: /^default-scheduler bound it to virtual node east/,
  },
  'a pod that was made with a node of the host in it': {
    facts: facts(named('local-0')),
    answer: /^It runs on node local-0, and all is well/,
    says: /^It was made with spec\.nodeName, for node local-0 of this cluster itself: no scheduler was asked, and nobody looked whether it has room there\.$/,
  },
  'no scheduler of that name': {
    facts: facts(waiting({ schedulerName: 'spillway-scheduler' })),
    answer: /No scheduler has said anything of it in 60s: is spillway-scheduler running/,
    stuck: 'host scheduler',
  },
  'gates of others': {
    facts: facts(waiting({ schedulingGates: [{ name: 'example.com/quota' }] })),
    answer: /^It is behind scheduling gate example.com\/quota, which is not of Spillway/,
    stuck: 'gates',
  },
  'an incomplete gang': {
    facts: facts(gangPod('train-0'), { gang: [gangPod('train-0'), gangPod('train-1')] }),
    answer: /^Gang train is incomplete: 2 of 3 pods are there/,
    stuck: 'gates',
    page: 'concepts/gangs.md',
  },
  'a gang that no place takes': {
    facts: facts(gangPod('a'), {
      gang: ['a', 'b', 'c'].map(gangPod),
      events: [
        {
          metadata: { name: 'e' },
          involvedObject: {},
          reason: 'GangWaiting',
          message: 'no place takes all 3: east 2, west 0',
        },
      ],
    }),
    answer: /^All 3 pods of gang train .*no place takes all 3: east 2, west 0/,
  },
  'a missing Secret': {
    facts: facts(held('MandatorySecretNotFound', 'Secret shop/key does not exist in this cluster.')),
    answer: /^Held back \(MandatorySecretNotFound\): Secret shop\/key does not exist/,
    stuck: 'Spillway',
    help: /create the Secret/,
  },
  'a name that is taken': {
    facts: facts(held('NameTaken', 'Cluster "east" has a pod shop/web-0 that is not ours.')),
    answer: /NameTaken/,
    stuck: 'Spillway',
    help: /rename the pod/,
  },
  'a former pod of that name that does not go': {
    facts: facts(held('FormerPodLeaving', 'Cluster "east" still has a former pod shop/web-0.')),
    answer: /FormerPodLeaving/,
    stuck: 'Spillway',
    help: /node that is dead, or a finalizer/,
  },
  'a quota that the member refused it for': {
    facts: facts(held('MemberQuotaExceeded', 'Cluster "east": exceeded quota: compute.')),
    answer: /exceeded quota: compute/,
    help: /raise the ResourceQuota/,
  },
  'its virtual node failed with the member before anything was made there': {
    facts: facts(bound({ phase: 'Pending' }), {
      nodes: [unreadyEast],
    }),
    answer: /^(?!.*No manager serves)/,
  },
  'a virtual node that failed with its member, and that Kubernetes has tainted, too': {
    facts: facts(waiting({}, FIRST_TAINTED), {
      members: [member('east')],
      nodes: [
        node('east', [
          { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
          VIRTUAL,
          { key: 'spillway.dev/member-unreachable', effect: 'NoSchedule' },
        ]),
      ],
    }),
    answer: /from east: it cannot be reached/,
  },
  'no manager runs': {
    facts: facts(bound({ phase: 'Pending' }), {
      nodes: [{ ...node('east'), status: { conditions: [condition('Ready', 'Unknown', 'NodeStatusUnknown')] } }],
    }),
    answer: /^No manager serves virtual node east/,
  },
  'a virtual node that failed with its member, and whose manager died since': {
    facts: facts(bound({ phase: 'Pending' }), { nodes: [unreadyEast], memberServed: false }),
    answer: /^No manager serves virtual node east, so nothing was made in member east/,
    help: /some manager has to run/,
  },
  'the same, of which the viewer may not read the Lease': {
    facts: facts(bound({ phase: 'Pending' }), { nodes: [unreadyEast], memberServed: undefined }),
    answer: /^(?!.*No manager serves)/,
  },
  'it is held back for its member, and the manager died since': {
    facts: facts(held('MemberUnreachable', 'Cluster "east" does not answer.'), {
      nodes: [unreadyEast],
      memberServed: false,
    }),
    answer:
      /^Held back \(MemberUnreachable\): Cluster "east" does not answer\. No manager serves virtual node east now\./,
    help: /some manager has to run/,
  },
  'it runs in a member that is lost, and the manager died since': {
    facts: facts(
      bound({
        phase: 'Running',
        conditions: [MIRRORED, condition('Ready', 'False', 'MemberUnreachable', 'Cluster "east" is silent.')],
      }),
      { nodes: [unreadyEast], memberServed: false },
    ),
    answer: /as old as the last contact\. No manager serves virtual node east now\./,
    help: /some manager has to run/,
  },
  'no room on the nodes of the member': {
    facts: facts(
      bound({
        phase: 'Pending',
        conditions: [
          MIRRORED,
          condition(
            'spillway.dev/MemberScheduled',
            'False',
            'Unschedulable',
            'cluster "east": 0/2 nodes are available: 2 Insufficient cpu.',
          ),
        ],
      }),
    ),
    answer: /^The scheduler of east finds no node for it: cluster "east": 0\/2 nodes/,
    stuck: 'member scheduler',
  },
  'an image that cannot be pulled': {
    facts: facts(container('ImagePullBackOff', 'Back-off pulling image "shop/web:v9"')),
    answer: /^The kubelet of east says: container app waits \(ImagePullBackOff\): Back-off pulling image/,
    stuck: 'kubelet',
    help: /check image shop\/web:v9/,
  },
  'a container that ends again and again': {
    facts: facts(
      container('CrashLoopBackOff', 'back-off 40s', {
        restartCount: 4,
        lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } },
      }),
    ),
    answer: /ended 4 times, last with exit code 137 \(OOMKilled\)/,
    help: /kubectl logs --previous/,
  },
  'a volume that cannot be mounted': {
    facts: facts(bound({ phase: 'Pending', conditions: [MIRRORED] }), {
      events: [{ metadata: { name: 'e' }, involvedObject: {}, reason: 'FailedMount', message: 'no such volume' }],
    }),
    answer: /cannot start it yet: no such volume/,
  },
  'it runs in a member that is lost': {
    facts: facts(
      bound({
        phase: 'Running',
        conditions: [
          MIRRORED,
          condition(
            'Ready',
            'False',
            'MemberUnreachable',
            'Cluster "east" has not answered since noon; the pod may still be running there.',
          ),
        ],
      }),
    ),
    answer: /^It is shop\/web-0 .*in member east, which cannot be reached\. Cluster "east" has not answered since noon/,
    stuck: 'Spillway',
  },
  'it runs well': {
    facts: facts(bound({ phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] })),
    answer: /^It runs in member east, and all is well\.$/,
  },
  'it runs, and is not ready': {
    facts: facts(
      bound({
        phase: 'Running',
        conditions: [
          MIRRORED,
          condition('Ready', 'False', 'ContainersNotReady', 'containers with unready status: [app]'),
        ],
      }),
    ),
    answer: /not ready: containers with unready status: \[app\]/,
  },
  'its policy chooses no cluster that is there': {
    facts: facts(waiting({}, FIRST_TAINTED), { policies: [policy(['moon'])] }),
    answer: /^PlacementPolicy web speaks about it: none of the clusters there are\. No cluster may take the pod until/,
    stuck: 'policy',
    help: /^correct which clusters PlacementPolicy web chooses/,
  },
  'the member refuses the credentials': {
    facts: facts(held('MemberUnreachable', 'Cluster "east" does not answer. Nothing needs to be done.'), {
      members: [refusedEast],
    }),
    answer:
      /^Held back \(MemberUnreachable\): nothing can be made in member east: its credentials are of no use \(Unauthorized\)/,
    stuck: 'Spillway',
    help: /^put a kubeconfig that works into Secret spillway-system\/east/,
  },
  'it runs in a member that refuses the credentials': {
    facts: facts(bound({ phase: 'Running', conditions: [MIRRORED] }), {
      members: [refusedEast],
      nodes: [node('east', [VIRTUAL], [condition('spillway.dev/MemberReachable', 'False', 'Unauthorized', '401.')])],
    }),
    answer: /which cannot be reached: its credentials are of no use \(Unauthorized\): 401\. The pod may run on/,
    help: /^put a kubeconfig that works/,
  },
  'nothing was made yet in a member that cannot be trusted': {
    facts: facts(bound({ phase: 'Pending' }), {
      members: [
        member('east', {}, { conditions: [condition('Reachable', 'False', 'TLSVerifyFailed', 'Another CA.')] }),
      ],
    }),
    answer: /^Nothing can be made in member east: it cannot be reached: Another CA\.$/,
    help: /^see who answers at the address/,
  },
  'a member with room refuses the credentials': {
    facts: facts(waiting({}, FIRST_TAINTED), { members: [refusedEast] }),
    answer: /its credentials are of no use/,
    places: { east: /^its credentials are of no use \(Unauthorized\): 401\.$/ },
    help: /^put a kubeconfig that works/,
  },
  'it has finished': {
    facts: facts(bound({ phase: 'Succeeded', conditions: [MIRRORED] })),
    answer: /^It has finished: all its containers ended with exit code 0\.$/,
  },
  'it vanished in the member': {
    facts: facts(
      bound({
        phase: 'Failed',
        reason: 'MemberPodLost',
        message: 'The pod vanished in cluster "east".',
        conditions: [MIRRORED],
      }),
    ),
    answer: /^It has failed \(MemberPodLost\): The pod vanished in cluster "east"\.$/,
    help: /its controller replaces it/,
    page: 'invariants.md',
  },
  'it is being deleted for long': {
    facts: facts(
      bound(
        { phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] },
        { deletionTimestamp: at(120), deletionGracePeriodSeconds: 30 },
      ),
    ),
    answer: /^It is being deleted, and its grace of 30 s has been over for 2m/,
    stuck: 'deletion',
  },
  'its copy is not deleted in the member': {
    facts: facts(
      bound(
        { phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] },
        { deletionTimestamp: at(600), deletionGracePeriodSeconds: 30 },
      ),
      {
        events: [
          {
            ...event('MemberPodNotDeleted', 'Cluster "east" still has shop/web-0: finalizer example.com/hold.'),
            lastTimestamp: at(60),
          },
        ],
      },
    ),
    answer: /^It is being deleted\. Cluster "east" still has shop\/web-0: finalizer example\.com\/hold\.$/,
    page: 'concepts/virtual-nodes.md#copies-that-do-not-go',
    stuck: 'deletion',
  },
  'its copy was not deleted in the member, which is told no more': {
    facts: facts(
      bound(
        { phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] },
        { deletionTimestamp: at(6_000), deletionGracePeriodSeconds: 30 },
      ),
      { events: [{ ...event('MemberPodNotDeleted', 'Cluster "east" still has it.'), lastTimestamp: at(1_600) }] },
    ),
    answer: /^It is being deleted, and its grace of 30 s has been over/,
    stuck: 'deletion',
  },
  'a pod of a DaemonSet': {
    facts: facts(
      bound({
        phase: 'Running',
        reason: 'DaemonSetIgnored',
        message: 'Pods of DaemonSets do not run in cluster "east".',
        conditions: [
          condition('spillway.dev/Mirrored', 'False', 'DaemonSetIgnored', 'x'),
          condition('Ready', 'True', ''),
        ],
      }),
    ),
    answer: /counts as ready and does not run in member east/,
  },
};

describe('why', () => {
  it.each(Object.entries(SITUATIONS))('%s', (_name, { facts: known, answer, says, stuck, help, places, page }) => {
    const found = explain(known);
    expect(found.answer).toMatch(answer);
    if (says !== undefined) expect(found.steps.find(({ by }) => by === 'host scheduler')?.says).toMatch(says);
    if (stuck !== undefined)
      expect(found.steps.find(({ state }) => state === 'waits' || state === 'failed')?.by).toBe(stuck);
    if (help !== undefined) expect(found.help.join('\n')).toMatch(help);
    if (page !== undefined) expect(found.pages).toContain(page);
    for (const [cluster, words] of Object.entries(places ?? {})) {
      expect(found.places.find((one) => one.cluster === cluster)?.says).toMatch(words);
    }
  });

  it('says nothing of the copy in a lost member but that it may run on', () => {
    const says = 'cluster "east" does not answer: Timeout. It takes no new pods until it does; running ones stay';
    const lost = condition('spillway.dev/MemberReachable', 'False', 'ProbeFailed', says);
    const nodes = [node('east', [VIRTUAL], [lost])];
    const { steps, answer } = explain(facts(bound({ phase: 'Running', conditions: [MIRRORED] }), { nodes }));
    expect(answer).toContain(
      'which cannot be reached. Cluster "east" does not answer: Timeout. It takes no new pods until it does; running ones stay. The pod may run on;',
    );
    expect(steps.slice(-2)).toEqual([
      { by: 'member scheduler', state: 'unknown', says: 'It was made there: what became of it is not known now.' },
      { by: 'kubelet', state: 'unknown', says: 'Whether it runs is not known now.' },
    ]);
  });

  it('does not say that all is well with a pod that is to go', () => {
    const mark = { hash: 'h', replicaSet: 'web-h', uid: 'set', at: at(60), ready: 1 };
    const told = (more: Partial<PodFacts>, released?: object): string => {
      const annotations = released === undefined ? {} : { 'spillway.dev/released': JSON.stringify(released) };
      const pod = bound({ phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] }, { annotations });
      const labels = { app: 'web' };
      return explain(facts({ ...pod, metadata: { ...pod.metadata, labels, ownerReferences: [] } }, more)).answer;
    };
    const drained = event('DrainedPodHeld', 'it stays there for now: a budget');
    expect(told({})).toBe('It runs in member east, and all is well.');
    expect(told({ events: [drained] })).toBe('It runs in member east, though it was to be moved.');
    // It would have been told again.
    expect(told({ events: [{ ...drained, lastTimestamp: at(1600) }] })).toMatch(/all is well/);
    expect(told({}, mark)).toBe('It runs in member east, until another pod is Ready in its place.');
    expect(told({}, { ...mark, lost: true })).toMatch(/and waits beside the pod that was made in its place\.$/);
  });

  it('is a few lines that lead to the end', () => {
    expect(explanationText(explain(facts(held('NameTaken', 'Cluster "east" has a pod\nof that name.')))))
      .toBe(`shop/web-0 (Pending): Held back (NameTaken): Cluster "east" has a pod of that name.

  ok     policy            No policy speaks about it and its namespace has no label spillway.dev/burst=enabled: it stays on the nodes of this cluster unless it asks for virtual nodes itself.
  ok     host scheduler    default-scheduler bound it to virtual node east, which stands for member east.
  stuck  Spillway          Held back (NameTaken): Cluster "east" has a pod of that name.
  next   member scheduler  The pod is not in the member yet.
  next   kubelet           Nothing was started.

What helps:
  - rename the pod, or use another namespace mapping: the member has a pod of that name that is not ours

See: docs/concepts/virtual-nodes.md
`);
  });

  const moves = (last: number, pod: string, from = 'west'): PodFacts['placement'] => ({
    metadata: { name: 'deployment-web' },
    spec: { workload: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u' } },
    status: {
      moves: [{ strategy: 'MemberLost', from, count: 2, since: at(last + 9), last: at(last), pod, message: 'lost' }],
    },
  });
  it('tells what was moved when the pod came, and what keeps it from being moved', () => {
    const running = bound({ phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] });
    const told = (more: Partial<PodFacts>): string | undefined =>
      explain(facts(running, more)).steps.find(({ by }) => by === 'descheduler')?.says;
    expect(told({})).toBeUndefined();
    expect(told({ placement: moves(61, 'web-9') })).toBe(
      '2 pods of its workload were moved out of member west, the last one 61s ago (MemberLost): lost.',
    );
    expect(told({ placement: moves(61, 'web-9', 'several clusters') })).toMatch(/moved out of several clusters, the/);
    // Long before it was made, or the pod itself.
    expect(told({ placement: moves(4000, 'web-9') })).toBeUndefined();
    expect(told({ placement: moves(10, 'web-0') })).toBeUndefined();
    expect(told({ events: [event('TaintedPodHeld', 'it stays there for now: it has no controller')] })).toBe(
      'It was to be moved, and 30s ago: it stays there for now: it has no controller.',
    );
  });

  it('says of a pod that is being deleted neither that it was kept, nor that moves are stopped', () => {
    const known = { events: [event('DrainedPodHeld', 'it stays there for now: a budget')], movesStopped: 'INC-7' };
    const told = (metadata: object): string | undefined =>
      explain(facts(bound({ phase: 'Running' }, metadata), known)).steps.find(({ by }) => by === 'descheduler')?.says;
    expect(told({})).toMatch(
      /^Spillway does not move it out of its member: all moves .* It was to be moved, and 30s ago/,
    );
    expect(told({ deletionTimestamp: at(5) })).toBeUndefined();
  });

  it('tells of a released pod what it waits for', () => {
    const mark = { hash: 'h', replicaSet: 'web-h', uid: 'set', at: at(60), ready: 1 };
    const said = (released: object): string | undefined => {
      const pod = bound({ phase: 'Running' });
      const annotations = { 'spillway.dev/released': JSON.stringify(released) };
      const labels = Object.fromEntries(Object.entries(pod.metadata.labels ?? {}).filter(([key]) => !/hash/.test(key)));
      const metadata = { ...pod.metadata, labels, annotations, ownerReferences: [] };
      return explain(facts({ ...pod, metadata })).steps.find(({ by }) => by === 'descheduler')?.says;
    };
    expect(said(mark)).toMatch(/^It is to go: it runs on until another pod is Ready/);
    expect(said({ ...mark, lost: true })).toMatch(
      /^Its member was lost, .* onHeal of its policy says which of the two stays\.$/,
    );
    // By such a mark nobody takes it for released.
    expect(said({ ...mark, at: 'yesterday' })).toBeUndefined();
  });

  it('tells of a released pod that stays what is against its end, and since when', () => {
    const mark = JSON.stringify({ hash: 'h', replicaSet: 'web-h', uid: 'set', at: at(7_200), ready: 1 });
    const pod = bound({ phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] });
    const metadata = {
      ...pod.metadata,
      labels: {},
      annotations: { 'spillway.dev/released': mark },
      ownerReferences: [],
    };
    const words =
      'another pod is Ready in its place, but it cannot be ended: its disruption budget allows no eviction now';
    const told = { ...event('ReleasedPodStays', words), firstTimestamp: at(2_520), lastTimestamp: at(60) };
    const found = explain(facts({ ...pod, metadata }, { events: [told] }));
    const says = `It stays as it is, for 42m now: ${words}.`;
    expect(found.answer).toBe(says);
    expect(found.steps.find(({ by }) => by === 'descheduler')).toMatchObject({ state: 'waits', says });
    expect(found.help[0]).toMatch(
      /tried again by itself; or kubectl delete pod web-0 -n shop, which asks no disruption/,
    );
    // It would have been told again.
    const old = explain(facts({ ...pod, metadata }, { events: [{ ...told, lastTimestamp: at(1_600) }] }));
    expect(old.answer).toBe('It runs in member east, until another pod is Ready in its place.');
    // It goes by now.
    const going = { ...metadata, deletionTimestamp: at(1) };
    const step = explain(facts({ ...pod, metadata: going }, { events: [told] })).steps.find(
      ({ by }) => by === 'descheduler',
    );
    expect(step?.says).toMatch(/^It is to go: /);
  });

  it('says that Spillway may see less of owners than whoever asks', () => {
    const unread = event('OwnerNotReadable', 'labels of Rollout web may not be read');
    const { steps } = explain(facts(bound({ phase: 'Running' }), { events: [unread] }));
    expect(steps.find(({ by }) => by === 'policy')?.says).toMatch(
      / Spillway itself sees less than you: labels of Rollout web may not be read$/,
    );
  });

  it('tells what a pod was made without', () => {
    const running = bound({ phase: 'Running', conditions: [MIRRORED, condition('Ready', 'True', '')] });
    const { steps } = explain(
      facts(running, { events: [event('OptionalConfigMapNotFound', 'ConfigMap a is not there.')] }),
    );
    expect(steps.find(({ by }) => by === 'Spillway')?.says).toMatch(
      /without something optional: ConfigMap a is not there\.$/,
    );
  });

  it('says of a pod that is gone that its copy may run on where deletions are held', () => {
    const keeping = (status: Condition['status']): KubeObject[] => [
      member(
        'east',
        {},
        { conditions: [condition('DeletionsAllowed', status, 'DeletionBreakerOpen', '9 pods are kept.')] },
      ),
    ];
    expect(heldDeletions(keeping('True'))).toBeUndefined();
    expect(heldDeletions(keeping('False'))?.reason).toMatch(/member east \(DeletionBreakerOpen\): 9 pods are kept\.$/);
  });

  it('says what it may not know, and nothing wrong', () => {
    const blind = facts(waiting({}, FIRST_TAINTED), {
      events: undefined,
      namespaceLabels: undefined,
      members: undefined,
      nodes: undefined,
      policies: undefined,
      placement: undefined,
      schedulerAnswers: undefined,
      memberServed: undefined,
    });
    const found = explain(blind);
    expect(found.steps[0]).toMatchObject({ by: 'policy', state: 'unknown' });
    expect(found.answer).toMatch(/default-scheduler has found no node for it.*2 node\(s\) had untolerated taint\(s\)/);
    expect(found.places).toEqual([]);
    const running = explain({ ...blind, pod: bound({ phase: 'Running' }) });
    expect(running.steps.at(-1)).toMatchObject({ by: 'kubelet', state: 'unknown' });
  });
});

it('names the PriorityClass that the copy has in the member', () => {
  const words = 'member=east namespace=shop name=web-0 uid=1';
  const told = (more: string): string | undefined =>
    explain(facts(bound({ phase: 'Running', conditions: [{ ...MIRRORED, message: `${words}${more}` }] }))).steps.find(
      ({ by }) => by === 'Spillway',
    )?.says;
  expect(told('')).toBe('It was made in member east as shop/web-0.');
  expect(told(' priorityClass=burst-high')).toBe(
    'It was made in member east as shop/web-0 with PriorityClass burst-high.',
  );
  expect(told(' overrides=OverridePolicy/shop/mirror priorityClass=burst-high')).toBe(
    'It was made in member east as shop/web-0 with PriorityClass burst-high (changed by OverridePolicy/shop/mirror).',
  );
});

describe('words', () => {
  it('of the scheduler are taken apart', () => {
    const words = schedulerWords(
      '0/6 nodes are available: 1 local: the policy excludes it, 1 member east: 2 nodes: too many pods, 1 node: cordoned, 1 node(s) had untolerated taint(s), 3 Insufficient memory. no new claims to deallocate, preemption: 0/6 nodes are available: 6 No preemption victims found for incoming pod.',
    );
    expect(words).toEqual({
      clusters: [
        { cluster: 'local', says: 'the policy excludes it' },
        { cluster: 'east', says: '2 nodes: too many pods, 1 node: cordoned' },
      ],
      own: ['1 node(s) had untolerated taint(s)', '3 Insufficient memory'],
    });
    expect(schedulerWords('')).toEqual({ clusters: [], own: [] });
  });

  it('of a decision, too', () => {
    expect(decisionWords('member east: seat 3 of 5; it is near; local: no node has 4 cpu free')).toEqual([
      { cluster: 'east', says: 'seat 3 of 5; it is near' },
      { cluster: 'local', says: 'no node has 4 cpu free' },
    ]);
  });
});

describe('advice', () => {
  const page = readFileSync('docs/reference/events.md', 'utf8');
  const table = page.slice(page.indexOf('| reason | what happened'), page.indexOf('### What the member says'));
  /** What can stand in condition Mirrored or in the status of a pod; the others are Events, or on other conditions. */
  const rows = table
    .split('\n')
    .filter((row) => row.startsWith('| `') && !/^\| [^|]*\| (on condition|an Event)/.test(row));
  const reasons = rows
    .flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([A-Z][A-Za-z]+)`/g)].map(([, reason = '']) => reason))
    .filter(
      (reason) =>
        !['DeletedInMember', 'PodFailed', 'Created', 'Creating', 'MemberUpdateRefused', 'MemberUpdateDelayed'].includes(
          reason,
        ),
    );

  it('is there for every reason of the page', () => {
    expect(reasons.length).toBeGreaterThan(40);
    expect(reasons.filter((reason) => !REASON_HELP.has(reason))).toEqual([]);
    expect([...REASON_HELP.keys()].filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
  });

  it('names pages that are there', () => {
    const pages = [...REASON_HELP.values()].map((one) => one.page?.split('#')[0]);
    for (const one of new Set(pages)) expect(() => readFileSync(`docs/${one ?? ''}`)).not.toThrow();
  });
});
