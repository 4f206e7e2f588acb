import type { Cluster } from '../api/cluster.ts';
import type { OverridePolicy } from '../api/override-policy.ts';
import type { ClusterAffinity } from '../api/selectors.ts';
import { listOf, recordOf, textOf } from '../kube/json-fields.ts';
import { someOf } from '../kube/some-of.ts';
import { compileAffinity } from '../placement/cluster-affinity.ts';
import type { AlikePods, AlikePodsIn } from './alike-pods.ts';
import { choiceOf, type ChoosesAny, type IdentitiesOf } from './policy-choice.ts';

/** Overriders that name a container, or may. */
const NAMING = ['commandOverrider', 'argsOverrider', 'envOverrider', 'resourcesOverrider'] as const;
/** So many are told of a policy with their paths, one of each rule at least; of the others how many there are. */
const MOST_TOLD = 10;
const THERE_ARE = ', there are ';

/** What is known of the pods that a policy may choose. */
export interface KnownPods {
  readonly members: readonly Cluster[];
  readonly alikeIn: AlikePodsIn;
  readonly identitiesOf: IdentitiesOf;
  /** Containers that policies put into pods, as one may add what another one changes. */
  readonly added: ReadonlySet<unknown>;
  /** What was said of the policy before: it stays where not all pods are known. */
  readonly before: readonly string[];
}

interface NamingRule {
  readonly path: string;
  readonly targetCluster: ClusterAffinity | undefined;
  readonly named: readonly { readonly path: string; readonly name: string }[];
}

/**
 * The containers that rules of the policy name, and that no pod has which they are for. While there is none of these pods, nothing is said.
 * How many are told of a rule depends on the policy alone: replicas that know the pods of different rules have to agree in the end.
 */
export function containerWarnings(policy: OverridePolicy, known: KnownPods): string[] {
  const rules = namingRules(policy, known.added);
  const most = Math.max(1, Math.floor(MOST_TOLD / rules.length));
  const before = new Map(known.before.map((words) => [openingOf(words), words]));
  const choosesAny = choiceOf(policy, known.identitiesOf);
  const namespace = policy.kind === 'OverridePolicy' ? policy.metadata.namespace : undefined;
  return rules.flatMap((rule) => {
    const { there, isUnknown } = containersFor(rule, namespace, choosesAny, known);
    const missing = rule.named.filter(({ name }) => !there.has(name));
    if (missing.length === 0) return [];
    const openings = missing.map(({ path, name }) => `${path}: no pod that it is for has a container "${name}"`);
    const rest = `${rule.path}: of containers that no pod has which it is for`;
    if (isUnknown) return [...openings, rest].flatMap((opening) => before.get(opening) ?? []);
    if (there.size === 0) return [];
    const others = someOf([...there].sort());
    const more = missing.length - most;
    return [
      ...openings.slice(0, most).map((opening) => `${opening}${THERE_ARE}${others}`),
      ...(more > 0 ? [`${rest}${THERE_ARE}${String(more)} more`] : []),
    ];
  });
}

/** Rules that name containers, but for those that are added. */
function namingRules({ spec }: OverridePolicy, added: KnownPods['added']): NamingRule[] {
  return spec.overrideRules.flatMap(({ overriders, targetCluster }, rule) => {
    const path = `spec.overrideRules[${String(rule)}].overriders`;
    const named = NAMING.flatMap((kind) =>
      listOf(overriders[kind]).flatMap((overrider, index) => {
        const name = textOf(recordOf(overrider)?.['containerName']);
        if (name === undefined || added.has(name)) return [];
        return [{ path: `${path}.${kind}[${String(index)}].containerName`, name }];
      }),
    );
    return named.length === 0 ? [] : [{ path, targetCluster, named }];
  });
}

/** Names of containers of the pods that the rule is for: of all these pods, or as far as all that it names are among them. */
function containersFor(
  { targetCluster, named }: NamingRule,
  namespace: string | undefined,
  choosesAny: ChoosesAny,
  { members, alikeIn }: KnownPods,
): { there: ReadonlySet<string>; isUnknown: boolean } {
  const whyNot = targetCluster === undefined ? () => undefined : compileAffinity(targetCluster);
  const there = new Set<string>();
  const wanted = new Set(named.map(({ name }) => name));
  const addsNothing = ({ containers }: AlikePods): boolean => containers.every((one) => there.has(one));
  const doubtful: AlikePods[] = [];
  let isUnknown = false;
  for (const member of members) {
    if (whyNot(member) !== undefined) continue;
    const groups = alikeIn(member.name, namespace);
    if (groups === undefined) isUnknown = true;
    for (const group of groups ?? []) {
      // What they have is looked at first: whom a pod belongs to may have to be read.
      if (addsNothing(group)) continue;
      const isChosen = choosesAny(group);
      if (isChosen === undefined) doubtful.push(group);
      if (isChosen !== true) continue;
      for (const one of group.containers) {
        there.add(one);
        wanted.delete(one);
      }
      if (wanted.size === 0) return { there, isUnknown: false };
    }
  }
  return { there, isUnknown: isUnknown || !doubtful.every(addsNothing) };
}

/** What says of which container, or of which rule, the words are: how many there are, and which, may be told otherwise. */
function openingOf(words: string): string {
  const end = words.indexOf(THERE_ARE);
  return end < 0 ? words : words.slice(0, end);
}
