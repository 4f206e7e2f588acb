import type { Cluster } from '../api/cluster.ts';
import type { OverridePolicy } from '../api/override-policy.ts';
import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { listOf, recordOf, textOf } from '../kube/json-fields.ts';
import { someOf } from '../kube/some-of.ts';
import { compileAffinity } from '../placement/cluster-affinity.ts';
import { NAMED_CONTAINERS } from './edit-containers.ts';
import { type OverrideSubject, selectPolicies } from './selection.ts';

/** Overriders that name a container, or may. */
const NAMING = ['commandOverrider', 'argsOverrider', 'envOverrider', 'resourcesOverrider'] as const;
const LISTS = /^\/spec\/(containers|initContainers)(\/|$)/;

/** What is known of the pods that a policy may choose. */
export interface KnownPods {
  readonly members: readonly Cluster[];
  /** Those of a member, or of one namespace of them; undefined: not (all) known here. */
  readonly podsIn: (member: string, namespace: string | undefined) => Iterable<Pod> | undefined;
  /** Undefined: not known yet. */
  readonly identitiesOf: (pod: Pod) => OverrideSubject['identities'] | undefined;
  /** All policies, as one may add the container that another one changes. */
  readonly policies: Iterable<OverridePolicy>;
  /** What was said of the policy before: it stays where not all pods are known. */
  readonly before: readonly string[];
}

interface NamedContainer {
  readonly path: string;
  readonly rule: number;
  readonly name: string;
}

/** The containers that rules of the policy name, and that no pod has which they are for. While there is none of these pods, nothing is said. */
export function containerWarnings(policy: OverridePolicy, known: KnownPods): string[] {
  const named = namedContainers(policy);
  if (named.length === 0) return [];
  const added = addedContainers(known.policies);
  return named.flatMap((one) => {
    if (added.has(one.name)) return [];
    const opening = `${one.path}: no pod that it is for has a container "${one.name}"`;
    const others = otherContainers(policy, one, known);
    if (others === 'unknown') return known.before.filter((words) => words.startsWith(opening));
    return others.size === 0 ? [] : [`${opening}, there are ${someOf([...others].sort())}`];
  });
}

function namedContainers({ spec }: OverridePolicy): NamedContainer[] {
  return spec.overrideRules.flatMap(({ overriders }, rule) =>
    NAMING.flatMap((kind) =>
      listOf(overriders[kind]).flatMap((overrider, index) => {
        const name = textOf(recordOf(overrider)?.['containerName']);
        const path = `spec.overrideRules[${String(rule)}].overriders.${kind}[${String(index)}].containerName`;
        return name === undefined ? [] : [{ path, rule, name }];
      }),
    ),
  );
}

/** Names of the containers of pods that the rule is for: none if one of them is called as it says, or if there are no such pods. */
function otherContainers(
  policy: OverridePolicy,
  { rule, name }: NamedContainer,
  { members, podsIn, identitiesOf }: KnownPods,
): ReadonlySet<string> | 'unknown' {
  const target = policy.spec.overrideRules[rule]?.targetCluster;
  const whyNot = target === undefined ? () => undefined : compileAffinity(target);
  const others = new Set<string>();
  let isUnknown = false;
  for (const member of members) {
    if (whyNot(member) !== undefined) continue;
    const pods = podsIn(member.name, policy.kind === 'OverridePolicy' ? policy.metadata.namespace : undefined);
    if (pods === undefined) isUnknown = true;
    for (const pod of pods ?? []) {
      if (isFinished(pod)) continue;
      const names = containersOf(pod);
      const isNamed = names.includes(name);
      // What it has is looked at first: whom a pod belongs to may have to be read.
      if (!isNamed && names.every((one) => others.has(one))) continue;
      const isChosen = chooses(policy, pod, identitiesOf(pod));
      if (isChosen === undefined) isUnknown = true;
      else if (isChosen && isNamed) return new Set();
      else if (isChosen) for (const one of names) others.add(one);
    }
  }
  return isUnknown ? 'unknown' : others;
}

function chooses(
  policy: OverridePolicy,
  { metadata: { namespace = '' } }: Pod,
  identities: OverrideSubject['identities'] | undefined,
): boolean | undefined {
  if (identities === undefined) return undefined;
  const selection = selectPolicies({ namespace, identities }, [policy]);
  return 'unknown' in selection ? undefined : selection.selected.length > 0;
}

function containersOf({ spec }: Pod): string[] {
  return NAMED_CONTAINERS.flatMap((list) => (spec[list] ?? []).map(({ name }) => name));
}

/** Containers that policies put into pods. */
function addedContainers(policies: Iterable<OverridePolicy>): ReadonlySet<unknown> {
  const added = new Set<unknown>();
  for (const { spec } of policies) {
    for (const { overriders } of spec.overrideRules) {
      const patched = (overriders.plaintext ?? []).filter(({ path }) => LISTS.test(path));
      const given = [...(overriders.initContainersOverrider ?? []), ...patched].flatMap(({ value }) =>
        Array.isArray(value) ? (value as readonly unknown[]) : [value],
      );
      for (const container of given) added.add(recordOf(container)?.['name']);
    }
  }
  return added;
}
