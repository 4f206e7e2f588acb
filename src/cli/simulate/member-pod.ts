import { SERVICE_ACCOUNT_MODE, serviceAccountModeOf } from '../../api/service-account-mode.ts';
import { specOf, virtualNodesOf, type MemberCluster } from '../../api/member-cluster.ts';
import { memberNamespaceFor } from '../../api/namespace-mapping.ts';
import type { OverridePolicy } from '../../api/override-policy.ts';
import { BINDING_LABELS } from '../../kube/binding-labels.ts';
import type { Node, Pod } from '../../kube/core-v1.ts';
import type { Service } from '../../kube/service.ts';
import { nodeLabels } from '../../nodes/render-node.ts';
import type { OverrideSubject } from '../../overrides/selection.ts';
import { clusterOf } from '../../api/cluster.ts';
import { PodOverrides } from '../../pods/pod-overrides.ts';
import { serviceEnvInMode } from '../../pods/service-env.ts';
import { translatePod, type TranslateContext } from '../../pods/translate.ts';

/** What of the host decides what a pod becomes. */
export interface HostFacts {
  hostId: string;
  namespaceLabels: Readonly<Record<string, string>>;
  /** Of the pod's namespace. */
  services: readonly Service[];
  /** `default/kubernetes` */
  apiServer: Service | undefined;
  policies: readonly OverridePolicy[];
  environmentKeys: (kind: 'ConfigMap' | 'Secret', name: string) => Iterable<string>;
  nodes: readonly Node[] | undefined;
  /** The API server copies topology labels of the node when a pod is bound: from Kubernetes 1.35 on. */
  copiesTopology: boolean;
}

export type MemberPod = { pod: Pod } | { refused: string };

/** The pod as it is in the host once it is bound to a node with these labels. */
function bound(pod: Pod, nodeName: string, labels: Readonly<Record<string, string>>, copiesTopology: boolean): Pod {
  const copied = copiesTopology ? BINDING_LABELS.filter((key) => labels[key] !== undefined) : [];
  const topology = Object.fromEntries(copied.map((key) => [key, labels[key] ?? '']));
  const { metadata, spec } = pod;
  return {
    ...pod,
    metadata: { ...metadata, ...(copied.length === 0 ? {} : { labels: { ...metadata.labels, ...topology } }) },
    spec: { ...spec, nodeName },
  };
}

/**
 * Where the pod would get variables of Services, members that have Services of their own for these: only they know the addresses. In words;
 * undefined: there are none.
 */
export function addressesNotKnown(
  { spec }: Pod,
  services: readonly Service[],
  members: readonly MemberCluster[],
): string | undefined {
  const names = members.filter((one) => one.spec.services.mode !== 'None').map(({ metadata }) => metadata.name);
  const hasAddress = services.some(({ spec: own }) => !['', 'None'].includes(own?.clusterIP ?? ''));
  if (names.length === 0 || spec.enableServiceLinks === false || !hasAddress) return undefined;
  return (
    `in ${names.join(', ')}, Services have addresses of their own, which only that cluster knows: variables like WEB_SERVICE_HOST have those ` +
    'of this cluster here (docs/concepts/services.md)'
  );
}

/**
 * The pod as the manager would make it in a member behind one virtual node, by the functions that the manager uses. What is about the
 * moment of creation is left out: the resourceVersion of the host pod. Claims are not looked at.
 */
export async function memberPod(
  unbound: Pod,
  owners: OverrideSubject['identities'],
  member: MemberCluster,
  nodeName: string,
  host: HostFacts,
  signal: AbortSignal,
): Promise<MemberPod> {
  const { namespace = '', annotations } = unbound.metadata;
  const { name } = member.metadata;
  const place = memberNamespaceFor(member.spec.namespaces, namespace);
  if ('refused' in place) return { refused: `NamespaceNotAllowed: Cluster "${name}": ${place.refused}.` };
  const account = serviceAccountModeOf({
    pod: annotations?.[SERVICE_ACCOUNT_MODE],
    namespace,
    namespaceLabel: host.namespaceLabels[SERVICE_ACCOUNT_MODE],
    member: name,
    spec: member.spec.serviceAccount,
  });
  if ('refused' in account) return { refused: `${account.refused.reason}: ${account.refused.message}` };
  const pool = virtualNodesOf(member).find((one) => one.name === nodeName)?.nodeSelector ?? {};
  const excluded = member.spec.capacity.excludeNodes?.matchLabels;
  const labels =
    host.nodes?.find(({ metadata }) => metadata.name === nodeName)?.metadata.labels ??
    nodeLabels({ name: nodeName, member: name, spec: specOf(member, nodeName), pool: undefined });
  const hostPod = bound(unbound, nodeName, labels, host.copiesTopology);
  const context: TranslateContext = {
    hostId: host.hostId,
    nodeName,
    member: name,
    memberNamespace: place.namespace,
    serviceAccountMode: account.mode,
    serviceEnv: serviceEnvInMode(
      hostPod,
      account.mode,
      host.services,
      host.apiServer,
      member.spec.serviceAccount.apiServer,
    ),
    nodeLabels: labels,
    memberNamespaceOf: (other) => {
      const found = memberNamespaceFor(member.spec.namespaces, other);
      return 'namespace' in found ? found.namespace : undefined;
    },
    environmentKeys: host.environmentKeys,
    hostOnlyLabels: new Set(Object.keys(member.spec.labels)),
    poolSelector: pool,
    hostPath: member.spec.hostPath,
    podPriority: member.spec.podPriority,
    ...(excluded === undefined ? {} : { excludedNodes: excluded }),
  };
  const translation = translatePod(hostPod, context);
  if (translation.kind === 'refused') return { refused: `${translation.reason}: ${translation.message}` };
  const cluster = clusterOf(member);
  const overrides = new PodOverrides({
    port: {
      unknown: () => undefined,
      policies: () => host.policies,
      owners: () => owners,
      readOwners: async () => await Promise.resolve(owners),
      member: () => cluster,
      pool: () => pool,
    },
    translateContext: () => context,
    dependents: { track: () => undefined },
    events: { record: () => undefined },
  });
  const made = await overrides.forNewPod(hostPod, translation.pod, context, signal);
  if ('hold' in made) return { refused: `${made.hold.reason}: ${made.hold.message}` };
  return 'wait' in made ? { refused: made.wait } : { pod: made.pod };
}
