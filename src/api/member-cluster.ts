import { z } from 'zod';
import type { Taint } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import { clusterTaint, type ClusterTaint, isSameTaint } from './cluster-taint.ts';
import { hostPath } from './host-path.ts';
import { GROUP, OWN_VERSION, VIRTUAL_NODE_TAINT } from './marks.ts';
import { memberClusterStatus } from './member-cluster-status.ts';
import type { MemberClusterStatus } from './member-cluster-status.ts';
import { namespaces } from './member-namespaces.ts';
import { capacity, daemonSets, MAX_POOL_NAME, taints, virtualNodes } from './member-nodes.ts';
import { services } from './member-services.ts';
import { parseObject } from './parse-object.ts';
import { podPriority } from './pod-priority.ts';
import { SERVICE_ACCOUNT_MODE, SERVICE_ACCOUNT_MODES } from './service-account-mode.ts';
import { storage } from './storage.ts';
import { cel, dnsLabel, dnsSubdomain, labelMap, labelValue, listMap } from './schema-parts.ts';

export const MEMBER_CLUSTERS = resourceOf(OWN_VERSION, 'MemberCluster', 'memberclusters', false);

/** With `-` and the longest name of a pool ({@link MAX_POOL_NAME}), a node name still fits the 63 characters of a label. */
const MAX_MEMBER_NAME = 40;

const secretRef = z
  .object({
    namespace: dnsLabel().describe(
      'Namespace of the Secret in the host cluster. The manifests let the manager read Secrets in spillway-system; another namespace needs a Role of its own.',
    ),
    name: dnsSubdomain().describe('Name of the Secret.'),
    key: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[-._a-zA-Z0-9]+$/)
      .default('kubeconfig')
      .describe('Key of the Secret whose value is the kubeconfig.'),
  })
  .describe('The Secret that holds the kubeconfig of the member. It is followed: new credentials are used at once.');

const serviceAccountMode = z.enum(SERVICE_ACCOUNT_MODES);
const serviceAccount = z
  .object({
    mode: serviceAccountMode
      .default('None')
      .describe(
        'Mode of pods that ask for none. None: they get no token. Member: they run as the service account of the same name ' +
          'in the member. Host: they get tokens of their own service account for the API server of the host.',
      ),
    allowed: z
      .array(serviceAccountMode)
      .max(3)
      .default([])
      .describe(
        `More modes that pods may ask for by annotation ${SERVICE_ACCOUNT_MODE}, or namespaces by a label of that name. None always is.`,
      ),
    apiServer: z
      .object({
        host: z
          .string()
          .min(1)
          .max(253)
          .regex(/^[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?$/)
          .describe('DNS name or IP address. The certificate of the API server has to be valid for it.'),
        port: z.int().min(1).max(65535).default(443).describe('Port.'),
      })
      .exactOptional()
      .describe(
        'Where pods in this member reach the API server of the host. They find it in KUBERNETES_SERVICE_HOST and _PORT. For mode Host.',
      ),
  })
  .prefault({})
  .meta({
    description: 'What the service account of a pod becomes in the member.',
    ...cel({
      // The default of the whole object is judged before those of its fields are filled in.
      rule: "has(self.apiServer) || !((has(self.mode) && self.mode == 'Host') || (has(self.allowed) && self.allowed.exists(m, m == 'Host')))",
      message: 'mode Host needs the address of the API server of the host',
      fieldPath: '.apiServer',
      reason: 'FieldValueRequired',
    }),
  });

const credentials = z
  .object({ secretRef })
  .describe(
    'How to reach the member: a kubeconfig with its server, its CA and a client certificate or a token, all inline. ' +
      'Exec plugins, auth providers, file paths and insecure-skip-tls-verify are refused. ' +
      'A proxy-url in it (http, https, socks5) is honoured for all connections to the member.',
  );

/** They are not on the Node: a scheduler would let only pods through that tolerate them themselves, which says nothing of policies. */
const clusterTaints = z
  .array(clusterTaint)
  .max(32)
  .default([])
  .meta({
    description:
      'Taints of the member as a whole, which only clusterTolerations of placement policies tolerate: pods without a policy that does, ' +
      'do not go there, whatever they tolerate themselves. Needs the scheduler extender. ClusterTaintPolicies may add others, in status.taints.',
    ...listMap('key', 'effect'),
  });

/** Node labels that follow from other fields or from the member's nodes. */
const OWN_NODE_LABELS = ['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch', 'type'];
const labels = labelMap({
  rule: `self.all(k, !k.startsWith('${GROUP}/') && !(k in ${JSON.stringify(OWN_NODE_LABELS).replaceAll('"', "'")}))`,
  message: `labels of ${GROUP} and ${OWN_NODE_LABELS.join(', ')} are set by Spillway itself`,
})
  .default({})
  .describe('More labels for the virtual nodes.');

const seconds = (min: number, max: number, value: number, description: string) =>
  z.int().min(min).max(max).default(value).meta({ description, unit: 'seconds' });
const times = (value: number, description: string) =>
  z.int().min(1).max(100).default(value).meta({ description, unit: 'probes' });

const probe = z
  .object({
    periodSeconds: seconds(
      1,
      3600,
      10,
      'Time between two probes of the API server of the member; while it is out of reach 2 s at the most.',
    ),
    timeoutSeconds: seconds(1, 300, 5, 'A probe without an answer in this time has failed.'),
    failureThreshold: times(3, 'Failed probes in a row that make the member unreachable.'),
    successThreshold: times(1, 'Good probes in a row that make it reachable again.'),
    podsUnreadyAfterSeconds: seconds(
      0,
      86_400,
      60,
      'Pods of a member that stays unreachable for longer are shown as not ready. They are not deleted for it; those of ReplicaSets may be replaced later, as the rules of failover say.',
    ),
    nodesReady: z
      .enum(['WhileServed', 'WhileReachable'])
      .default('WhileServed')
      .describe(
        'When condition Ready of the virtual nodes is True. WhileServed: as long as a replica of the manager serves them, whatever becomes of the member, so that Kubernetes never deletes its pods for that. ' +
          'WhileReachable: only while the member is reachable, too. Once it has not been for podsUnreadyAfterSeconds, Ready is Unknown where the member may be lost, and False where it answers and cannot serve, so that ' +
          'Kubernetes taints the node, and deletes its pods after their tolerationSeconds (300 by default), all at once, with no place elsewhere looked for and no disruption budget asked. Nor do its pods outlive a time without a manager then.',
      ),
  })
  .prefault({})
  .describe('When the member counts as unreachable, and what is shown for that in the host.');

const memberClusterSpec = z
  .object({
    credentials,
    region: labelValue()
      .min(1)
      .exactOptional()
      .describe('Region of the member. The virtual nodes carry it as label topology.kubernetes.io/region.'),
    zones: z.array(labelValue().min(1)).max(16).default([]).meta({
      description: 'Zones of the member. If there is one, the virtual nodes carry it as topology.kubernetes.io/zone.',
      'x-kubernetes-list-type': 'set',
    }),
    provider: labelValue()
      .min(1)
      .exactOptional()
      .describe('Who runs the member, such as a cloud. For policies and people.'),
    labels,
    taintMode: z
      .enum(['NoSchedule', 'PreferNoSchedule', 'None'])
      .default('NoSchedule')
      .describe(
        `Effect of the taint ${VIRTUAL_NODE_TAINT} on the virtual nodes, which keeps away pods that do not ask for them. ` +
          'None: no such taint, so every pod of the host may run in the member.',
      ),
    taints,
    clusterTaints,
    virtualNodes,
    capacity,
    namespaces,
    daemonSets: daemonSets().default('Ignore'),
    unschedulable: z
      .boolean()
      .default(false)
      .describe('Take no new pods: the virtual nodes are cordoned. Running pods stay.'),
    probe,
    network: z
      .enum(['Flat', 'Isolated'])
      .default('Flat')
      .describe(
        'Flat: pod addresses of the member are reachable from the host and are shown. ' +
          'Isolated: they are not; pods show no address, so Services of the host send them nothing.',
      ),
    podEvents: z
      .enum(['Problems', 'All'])
      .default('Problems')
      .describe(
        'Which Events of the member about pods appear on the host pods. Problems: warnings, and the few others that explain ' +
          'something; a pod that starts well causes none. All: those of every start too, as on a node of the host, at the ' +
          'price of several writes for each pod.',
      ),
    disruptionBudgets: z
      .enum(['Mirror', 'Ignore'])
      .default('Mirror')
      .describe(
        'PodDisruptionBudgets of the host, for evictions made in the member. Mirror: the pods that they cover have budgets there ' +
          'too, and all members together never grant more evictions than the host does. Ignore: the member evicts as it likes.',
      ),
    podPriority,
    services,
    serviceAccount,
    storage,
    hostPath,
  })
  .describe('What the administrator wants of this member.');

/** The whole kind, in the shape the CRD generator reads; `metadata` is Kubernetes' own. */
export const memberClusterSchema = z
  .object({ spec: memberClusterSpec, status: memberClusterStatus.exactOptional() })
  .meta({
    description: 'MemberCluster is a Kubernetes cluster that lends its capacity to this one, as virtual nodes.',
    ...cel(
      {
        rule: `self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= ${String(MAX_MEMBER_NAME)}`,
        message: `must be a DNS label (no dots) of at most ${String(MAX_MEMBER_NAME)} characters, as nodes are named after it`,
        fieldPath: '.metadata.name',
      },
      {
        rule: "self.metadata.name != 'local'",
        message: "must not be local, which stands for the host's own nodes",
        fieldPath: '.metadata.name',
      },
    ),
  });

export type MemberClusterSpec = z.output<typeof memberClusterSpec>;
export interface MemberCluster extends KubeObject {
  spec: MemberClusterSpec;
  status?: MemberClusterStatus;
}

type ReadMemberCluster = { member: MemberCluster } | { problems: string[] };

/** Objects of caches do not change, and several ask for the same one, some every few seconds. */
const known = new WeakMap<KubeObject, ReadMemberCluster>();

/**
 * A MemberCluster as the API server sent it, with every default filled in; see {@link parseObject}. Of the same object it is the
 * same one again.
 */
export function parseMemberCluster(raw: KubeObject): ReadMemberCluster {
  let read = known.get(raw);
  if (read === undefined) {
    const parsed = parseObject(raw, { spec: memberClusterSpec, status: memberClusterStatus });
    read = 'object' in parsed ? { member: parsed.object } : parsed;
    known.set(raw, read);
  }
  return read;
}

/** A virtual node as its MemberCluster wants it. */
export interface WantedNode {
  name: string;
  /** Labels that choose the member's nodes behind it. */
  nodeSelector: Record<string, string>;
  /** The administrator's taints for it, each key and effect once. */
  taints: Taint[];
}

/** The virtual nodes a member wants. */
export function virtualNodesOf(member: MemberCluster): WantedNode[] {
  const { name } = member.metadata;
  const { virtualNodes, taints } = member.spec;
  if (virtualNodes.length === 0) return [{ name, nodeSelector: {}, taints }];
  return virtualNodes.map((pool) => ({
    name: `${name}-${pool.name}`,
    nodeSelector: pool.nodeSelector,
    taints: [
      ...taints.filter(({ key, effect }) => !pool.taints.some((one) => one.key === key && one.effect === effect)),
      ...pool.taints,
    ],
  }));
}

/** Taints of the member as a whole: those that people gave it, and those of policies. Of a key and effect one. */
export function clusterTaintsOf({ spec, status }: MemberCluster): (ClusterTaint & { policy?: string })[] {
  const others = (status?.taints ?? []).filter((one) => !spec.clusterTaints.some((own) => isSameTaint(own, one)));
  return [
    ...spec.clusterTaints,
    ...others.map(({ key, value, effect, policy }) => ({
      key,
      ...(value === undefined ? {} : { value }),
      effect,
      policy,
    })),
  ];
}

/** Somebody deleted it: its virtual nodes retire, and when nothing of it is left it goes. */
export function isLeaving({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** The virtual nodes that are to take pods: none of a member that leaves. */
export function wantedNodesOf(member: MemberCluster): WantedNode[] {
  return isLeaving(member) ? [] : virtualNodesOf(member);
}

/** In a member that leaves, Services stay only for pods that are there still. */
export function wantedServicesOf(member: MemberCluster): MemberClusterSpec['services'] {
  const { services } = member.spec;
  return isLeaving(member) ? { ...services, namespaces: [] } : services;
}

/** Whether Services are exchanged with it, as far as its spec says. */
export function exchangesServices(member: MemberCluster): boolean {
  return !isLeaving(member) && member.spec.services.multiCluster === 'Exchange';
}

/** The spec as it is for one virtual node, with the taints of its pool; for one that is not wanted any more with those of all. */
export function specOf(member: MemberCluster, nodeName: string): MemberClusterSpec {
  const wanted = virtualNodesOf(member).find(({ name }) => name === nodeName);
  return wanted === undefined ? member.spec : { ...member.spec, taints: wanted.taints };
}

/** Whether a virtual node of that name could be, or have been, one of the member's. */
export function isNodeNameOf(member: string, nodeName: string): boolean {
  if (nodeName === member) return true;
  const pool = nodeName.startsWith(`${member}-`) ? nodeName.slice(member.length + 1) : '';
  return pool.length <= MAX_POOL_NAME && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(pool);
}

/** What becomes of pods of DaemonSets on a virtual node of the member. */
export function daemonSetsOn(member: MemberCluster, nodeName: string): 'Ignore' | 'Run' {
  const { virtualNodes, daemonSets } = member.spec;
  const pool = virtualNodes.find(({ name }) => `${member.metadata.name}-${name}` === nodeName);
  return pool?.daemonSets ?? daemonSets;
}
