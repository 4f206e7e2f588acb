import { AFTER_LIMIT } from '../kube/limit-error.ts';
import { someOf } from '../kube/some-of.ts';

/** What is to be said of the exchange of Services on the MemberCluster. */
export interface ExchangeFinding {
  status: 'True' | 'False';
  reason:
    | 'Exchanged'
    | 'NotExchanged'
    | 'NetworkIsolated'
    | 'SharedCluster'
    | 'KindsMissing'
    | 'OtherImplementation'
    | 'ExchangeRightMissing'
    | 'NamespaceRightMissing'
    | 'CacheLimit'
    | 'ImportTaken'
    | 'ImportRefused';
  message: string;
}

export interface ExchangeFacts {
  readonly member: string;
  /** As spec.services.multiCluster says. */
  readonly wanted: boolean;
  readonly isIsolated: boolean;
  /** Another MemberCluster stands for the same cluster. */
  readonly isShared: boolean;
  /** What another implementation has written, in each of the two clusters. */
  readonly foreign: { host: string | undefined; member: string | undefined };
  /** Why something cannot be read or written, in words of the cluster. */
  readonly problems: { host: string | undefined; member: string | undefined };
  /** Which limit of memory what the member shows has met. */
  readonly limit: string | undefined;
  /** What the member said where a right to write is missing, by its namespaces. */
  readonly refusals: ReadonlyMap<string, string>;
  readonly synced: boolean;
  /** Things of ours stand in the member still. */
  readonly remains: number;
  /** Why ServiceImports do not stand in the member, by their keys there. */
  readonly refused: ReadonlyMap<string, { reason: 'ImportTaken' | 'ImportRefused' | 'CacheLimit'; message: string }>;
}

/** What API servers say of a kind that they do not serve. */
const UNKNOWN_KIND = /\b404\b|could not find the requested resource/;

/** Whether a cluster that answers says that it does not serve a kind, or that we may not read it: waiting does not help. */
export function isRefusedForGood(words: string | undefined): boolean {
  return words !== undefined && (UNKNOWN_KIND.test(words) || /\b403\b|is forbidden/.test(words));
}

/** The condition `ServicesExchanged` of a MemberCluster; undefined while there is nothing to say. */
export function exchangeFinding(facts: ExchangeFacts): ExchangeFinding | undefined {
  const { member, wanted, isIsolated, isShared, foreign, problems, limit, refusals, synced, remains, refused } = facts;
  const no = (reason: ExchangeFinding['reason'], message: string): ExchangeFinding => ({
    status: 'False',
    reason,
    message,
  });
  if (!wanted) {
    return remains > 0 ? undefined : no('NotExchanged', 'Services are not exchanged with the member.');
  }
  if (isIsolated) {
    const message = `Services are not exchanged with the member, as its pods are reached from nowhere else (spec.network: Isolated). Set spec.services.multiCluster: None, or spec.network: Flat if they are.`;
    return no('NetworkIsolated', message);
  }
  if (isShared) {
    const message =
      'Services are not exchanged with the member, as another MemberCluster stands for the same cluster. Delete one of the two, or set spec.services.multiCluster: None.';
    return no('SharedCluster', message);
  }
  for (const [where, file] of [
    ['host', 'manifests/multi-cluster/host.yaml'],
    ['member', 'manifests/member/multi-cluster.yaml'],
  ] as const) {
    const cluster = where === 'host' ? 'the host' : `cluster "${member}"`;
    const by = foreign[where];
    if (by !== undefined) {
      const message = `Services are not exchanged with the member, as another implementation of the Multi-Cluster Services API is in charge in ${cluster} (${by}). Take it away, or set spec.services.multiCluster: None.`;
      return no('OtherImplementation', message);
    }
    const words = problems[where];
    if (words === undefined) continue;
    if (where === 'member' && limit !== undefined) {
      return no('CacheLimit', `Services are not exchanged with the member: ${limit}. ${AFTER_LIMIT}`);
    }
    if (UNKNOWN_KIND.test(words)) {
      const message = `Services are not exchanged with the member, as ${cluster} does not serve ServiceExports and ServiceImports (multicluster.x-k8s.io/v1beta1). Apply manifests/multi-cluster/crds.yaml there. It is tried again by itself.`;
      return no('KindsMissing', message);
    }
    const message = `Services are not exchanged with the member: ${cluster} refuses it (${words}). Apply ${file} there, or set spec.services.multiCluster: None. It is tried again by itself.`;
    return no('ExchangeRightMissing', message);
  }
  const [refusal] = sorted(refusals);
  if (refusal !== undefined) {
    const message =
      `In these namespaces of the member Services of other clusters are not brought up to date, or ServiceExports are not told, as cluster ` +
      `"${member}" refuses it: ${named(refusals)} (${refusal[1]}). Its owner applies manifests/member/multi-cluster.yaml, or binds ClusterRole ` +
      'spillway-imports there. It is tried again by itself.';
    return no('NamespaceRightMissing', message);
  }
  const [first] = sorted(refused);
  if (first !== undefined) {
    const { reason, message: words } = first[1];
    const message = `Of the Services of other clusters these do not stand in the member as they should: ${named(refused)}. ${words}`;
    return no(reason, message);
  }
  if (!synced) return undefined;
  return {
    status: 'True',
    reason: 'Exchanged',
    message: 'What is exported in the member and elsewhere is told to all.',
  };
}

function sorted<T>(some: ReadonlyMap<string, T>): [string, T][] {
  return [...some].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function named(some: ReadonlyMap<string, unknown>): string {
  return someOf([...some.keys()].toSorted());
}
