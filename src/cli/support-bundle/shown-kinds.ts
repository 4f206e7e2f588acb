import { CLUSTER_TAINT_POLICIES } from '../../api/cluster-taint-policy.ts';
import { GROUP, MEMBER_LABEL } from '../../api/marks.ts';
import { MEMBER_CLUSTERS } from '../../api/member-cluster.ts';
import { CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES } from '../../api/override-policy.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../../api/placement-policy.ts';
import { PLACEMENT_SCORES } from '../../api/placement-score.ts';
import { WORKLOAD_MIGRATIONS } from '../../api/workload-migration.ts';
import { WORKLOAD_PLACEMENTS } from '../../api/workload-placement.ts';
import { WORKLOAD_REBALANCERS } from '../../api/workload-rebalancer.ts';
import { DEPLOYMENTS, EVENTS, LEASES, NODES, PODS, type Resource } from '../../kube/resource.ts';
import type { Allowed } from './allowed.ts';

/** Objects of one kind, and what of each goes into a bundle. */
export interface ShownKind {
  /** Name of the file. */
  readonly file: string;
  /** In words, as `the members`. */
  readonly what: string;
  readonly resource: Resource;
  /** Of the namespace of Spillway only. */
  readonly own?: boolean;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Beside {@link METADATA}. */
  readonly shows: { readonly [field: string]: Allowed };
}

/** No annotations: whoever writes one may put anything into it. Labels are ours, or those that nodes have. */
const METADATA: Allowed = {
  name: 'value',
  namespace: 'value',
  uid: 'value',
  generation: 'value',
  creationTimestamp: 'value',
  deletionTimestamp: 'value',
  deletionGracePeriodSeconds: 'value',
  finalizers: 'value',
  ownerReferences: { kind: 'value', name: 'value', uid: 'value', controller: 'value' },
  labels: {
    type: 'value',
    'kubernetes.io/hostname': 'value',
    'topology.kubernetes.io/region': 'value',
    'topology.kubernetes.io/zone': 'value',
    'app.kubernetes.io/name': 'value',
    'app.kubernetes.io/component': 'value',
    'app.kubernetes.io/version': 'value',
    [MEMBER_LABEL]: 'value',
  },
};
const OBJECT = { kind: 'value', namespace: 'value', name: 'value', uid: 'value', fieldPath: 'value' } as const;
const CONTAINER_STATE = {
  waiting: { reason: 'value', message: 'value' },
  running: { startedAt: 'value' },
  terminated: { exitCode: 'value', signal: 'value', reason: 'value', startedAt: 'value', finishedAt: 'value' },
} as const;
/** No command, arguments or environment. */
const CONTAINER = { name: 'value', image: 'value', resources: 'all', ports: 'all' } as const;
const EVENT = {
  involvedObject: OBJECT,
  related: OBJECT,
  type: 'value',
  reason: 'value',
  message: 'value',
  count: 'value',
  firstTimestamp: 'value',
  lastTimestamp: 'value',
  eventTime: 'value',
  reportingComponent: 'value',
  source: { component: 'value' },
} as const;
const WHOLE = { spec: 'all', status: 'all' } as const;
/** What they put into pods may be a secret: variables, arguments, JSON of any kind. */
const OVERRIDES = {
  spec: { resourceSelectors: 'all', overrideRules: { targetCluster: 'all' } },
  status: 'all',
} as const;

const ours = (resource: Resource, what: string, shows: ShownKind['shows'] = WHOLE): ShownKind => ({
  file: `${GROUP}/${resource.plural}.json`,
  what,
  resource,
  shows,
});

/** All that is read of objects. Secrets and ConfigMaps are not among them. */
export const SHOWN_KINDS: readonly ShownKind[] = [
  ours(MEMBER_CLUSTERS, 'the members'),
  ours(PLACEMENT_POLICIES, 'placement policies'),
  ours(CLUSTER_PLACEMENT_POLICIES, 'placement policies of the cluster'),
  ours(OVERRIDE_POLICIES, 'override policies, without what they change', OVERRIDES),
  ours(CLUSTER_OVERRIDE_POLICIES, 'override policies of the cluster, without what they change', OVERRIDES),
  ours(CLUSTER_TAINT_POLICIES, 'taint policies'),
  ours(WORKLOAD_PLACEMENTS, 'where workloads are'),
  ours(PLACEMENT_SCORES, 'scores of placements'),
  ours(WORKLOAD_REBALANCERS, 'rebalancings'),
  ours(WORKLOAD_MIGRATIONS, 'migrations'),
  {
    file: 'nodes.json',
    what: 'virtual nodes',
    resource: NODES,
    labelSelector: MEMBER_LABEL,
    shows: { spec: { unschedulable: 'value', providerID: 'value', taints: 'all' }, status: 'all' },
  },
  {
    file: 'spillway/leases.json',
    what: 'who does what',
    resource: LEASES,
    own: true,
    shows: { spec: 'all' },
  },
  {
    file: 'spillway/deployments.json',
    what: 'what Spillway runs as',
    resource: DEPLOYMENTS,
    own: true,
    shows: {
      spec: { replicas: 'value', strategy: 'all', template: { spec: { containers: CONTAINER } } },
      status: 'all',
    },
  },
  {
    file: 'spillway/pods.json',
    what: 'pods in the namespace of Spillway',
    resource: PODS,
    own: true,
    shows: {
      spec: { nodeName: 'value', serviceAccountName: 'value', containers: CONTAINER },
      status: {
        phase: 'value',
        reason: 'value',
        message: 'value',
        startTime: 'value',
        conditions: 'all',
        containerStatuses: {
          name: 'value',
          image: 'value',
          imageID: 'value',
          ready: 'value',
          started: 'value',
          restartCount: 'value',
          state: CONTAINER_STATE,
          lastState: CONTAINER_STATE,
        },
      },
    },
  },
  {
    file: 'spillway/events.json',
    what: 'Events in the namespace of Spillway',
    resource: EVENTS,
    own: true,
    shows: EVENT,
  },
  {
    file: 'events.json',
    what: 'Events of Spillway',
    resource: EVENTS,
    fieldSelector: 'source=spillway',
    shows: EVENT,
  },
];

/** What of an object of the kind goes into a bundle. */
export function allowedOf({ shows }: ShownKind): Allowed {
  return { apiVersion: 'value', kind: 'value', metadata: METADATA, ...shows };
}
