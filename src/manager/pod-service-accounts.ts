import { SERVICE_ACCOUNT_MODE, serviceAccountModeOf } from '../api/service-account-mode.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import type { PodTokens } from '../dependents/pod-tokens.ts';
import type { NamespaceModes } from '../host/namespace-modes.ts';
import type { ServiceAccountsPort } from '../pods/pod-ports.ts';

/** The service accounts of a virtual node's pods: in which mode each is, and its tokens. */
export function podServiceAccounts(o: {
  modes: Pick<NamespaceModes, 'unknown' | 'labelOf'>;
  tokens: Pick<PodTokens, 'require'>;
  member: () => MemberCluster;
}): ServiceAccountsPort {
  return { modeOf: serviceAccountModes(o), requireTokens: (hostPod) => o.tokens.require(hostPod) };
}

/** In which mode a pod is in a member, or why that cannot be told. */
export function serviceAccountModes(o: {
  modes: Pick<NamespaceModes, 'unknown' | 'labelOf'>;
  member: () => MemberCluster;
}): ServiceAccountsPort['modeOf'] {
  return (hostPod) => {
    const unknown = o.modes.unknown();
    if (unknown !== undefined) return whileUnknown(unknown.problem);
    const { namespace = '', annotations } = hostPod.metadata;
    const { metadata, spec } = o.member();
    const answer = serviceAccountModeOf({
      pod: annotations?.[SERVICE_ACCOUNT_MODE],
      namespace,
      namespaceLabel: o.modes.labelOf(namespace),
      member: metadata.name,
      spec: spec.serviceAccount,
    });
    return 'refused' in answer ? { hold: answer.refused } : answer;
  };
}

function whileUnknown(problem: string | undefined): ReturnType<ServiceAccountsPort['modeOf']> {
  if (problem === undefined) return { wait: 'the labels of namespaces have not been read yet' };
  const message =
    `The namespaces of this cluster, whose labels say what service accounts of pods become in members, cannot be read: ${problem}. ` +
    'It is tried again by itself; the right to read them is in manifests/rbac.yaml.';
  return { hold: { reason: 'NamespacesNotRead', message } };
}
