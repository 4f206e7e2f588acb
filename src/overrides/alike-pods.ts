import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { NAMED_CONTAINERS } from './edit-containers.ts';

/** Pods of a member, or of one namespace of them; undefined: not (all) known here. */
export type PodsIn = (member: string, namespace: string | undefined) => Iterable<Pod> | undefined;

/** Pods that have not finished, and whose containers have the same names. */
export interface AlikePods {
  readonly containers: readonly string[];
  readonly pods: readonly Pod[];
}

export type AlikePodsIn = (member: string, namespace: string | undefined) => readonly AlikePods[] | undefined;

/** For one look at many policies: the pods of a place are gone through once, whoever asks, and are then those of that time. */
export function alikePods(podsIn: PodsIn): AlikePodsIn {
  const known = new Map<string, readonly AlikePods[] | undefined>();
  return (member, namespace) => {
    const place = `${member}/${namespace ?? ''}`;
    if (!known.has(place)) known.set(place, alike(podsIn(member, namespace)));
    return known.get(place);
  };
}

function alike(pods: Iterable<Pod> | undefined): AlikePods[] | undefined {
  if (pods === undefined) return undefined;
  const groups = new Map<string, { containers: readonly string[]; pods: Pod[] }>();
  for (const pod of pods) {
    if (isFinished(pod)) continue;
    const containers = containersOf(pod).toSorted();
    const names = containers.join('/');
    const group = groups.get(names);
    if (group === undefined) groups.set(names, { containers, pods: [pod] });
    else group.pods.push(pod);
  }
  return [...groups.values()];
}

function containersOf({ spec }: Pod): string[] {
  return NAMED_CONTAINERS.flatMap((list) => (spec[list] ?? []).map(({ name }) => name));
}
