import { LOCAL } from '../../api/cluster-tiers.ts';
import { clusterOf, localCluster, type Cluster } from '../../api/cluster.ts';
import type { CompiledPlacement } from '../../placement/compiled-placement.ts';
import { selectPolicy, type PolicySource, type Rules } from '../../placement/policy-selection.ts';
import type { Step } from './explanation.ts';
import { eventOf, type PodFacts } from './pod-facts.ts';

const PLACEMENT = 'concepts/placement.md';

/** The rules of a pod as the viewer can know them. */
export interface KnownRules {
  /** Undefined: none, or not known. */
  rules: Rules | undefined;
  source: PolicySource | undefined;
  step: Step;
}

/** Which policy speaks about the pod: worked out as the scheduler component does it, or read from what that has written. */
export function knownRules(facts: PodFacts): KnownRules {
  const { chain, policies, namespaceLabels, placement } = facts;
  if (policies === undefined || namespaceLabels === undefined) {
    const source = placement?.status?.policy;
    const says =
      source === undefined
        ? 'Which policy speaks about it is not known to you: you may not read policies and namespaces.'
        : `${sourceInWords(source)} speaks about it.`;
    return {
      rules: undefined,
      source,
      step: { by: 'policy', state: source === undefined ? 'unknown' : 'ok', says, page: PLACEMENT },
    };
  }
  const { chosen, problem } = selectPolicy(chain, policies, namespaceLabels);
  const unread = eventOf(facts.events, 'OwnerNotReadable')?.message;
  const passedOver =
    (problem === undefined ? '' : ` An annotation was passed over: ${problem}.`) +
    (unread === undefined ? '' : ` Spillway itself sees less than you: ${unread}`);
  if (chosen === undefined) {
    const says =
      'No policy speaks about it and its namespace has no label spillway.dev/burst=enabled: it stays on the nodes of this cluster unless ' +
      `it asks for virtual nodes itself.${passedOver}`;
    return { rules: undefined, source: undefined, step: { by: 'policy', state: 'ok', says } };
  }
  const clusters = clustersOf(facts);
  const choosesNone = clusters.every((one) => whyNotChosen(chosen.placement, one) !== undefined);
  const says = `${sourceInWords(chosen.source)} speaks about it: ${wishes(chosen.placement, clusters)}.${passedOver}`;
  const isWaiting = (facts.pod.spec.nodeName ?? '') === '' && facts.members !== undefined;
  const step: Step =
    choosesNone && isWaiting
      ? {
          by: 'policy',
          state: 'failed',
          says: `${says} No cluster may take the pod until the policy is changed or a cluster comes that it chooses.`,
          help: `correct which clusters ${sourceInWords(chosen.source)} chooses: of those there are, none`,
          page: PLACEMENT,
        }
      : { by: 'policy', state: 'ok', says, page: PLACEMENT };
  return { rules: chosen, source: chosen.source, step };
}

export function sourceInWords({ kind, name }: PolicySource): string {
  switch (kind) {
    case 'Annotation':
      return `Annotation ${name} of its workload`;
    case 'Namespace':
      return `Label spillway.dev/burst=enabled of namespace ${name}`;
    default:
      return `${kind} ${name}`;
  }
}

/** `local` and the members, as policies see them. */
function clustersOf({ members }: Pick<PodFacts, 'members'>): Cluster[] {
  return [localCluster(), ...(members ?? []).map(clusterOf)];
}

/** `first local, then east and west`. */
function wishes({ groups }: CompiledPlacement, clusters: readonly Cluster[]): string {
  const inWords = groups.map(({ name, tiers }) => {
    const taken = new Set<string>();
    const steps = tiers.map(({ whyNot }) => {
      const names = clusters.filter((one) => !taken.has(one.name) && whyNot(one) === undefined).map((one) => one.name);
      for (const one of names) taken.add(one);
      return names.length === 0
        ? 'none of the clusters there are'
        : names.map((one) => (one === LOCAL ? 'this cluster itself' : one)).join(' or ');
    });
    const order = steps.length === 1 ? (steps[0] ?? '') : `first ${steps.join(', then ')}`;
    return groups.length === 1 ? order : `group ${name ?? ''}: ${order}`;
  });
  return inWords.join('; or, where that has no room, ');
}

/** Why the rules do not choose a cluster; undefined: they do. */
export function whyNotChosen({ groups }: CompiledPlacement, cluster: Cluster): string | undefined {
  const tiers = groups.flatMap((group) => group.tiers);
  if (tiers.some(({ whyNot }) => whyNot(cluster) === undefined)) return undefined;
  return tiers[0]?.whyNot(cluster) ?? 'the policy does not choose it';
}
