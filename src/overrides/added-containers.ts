import type { OverridePolicy } from '../api/override-policy.ts';
import { recordOf } from '../kube/json-fields.ts';

const LISTS = /^\/spec\/(containers|initContainers)(\/|$)/;

/** Names of containers that policies put into pods. */
export function addedContainers(policies: Iterable<OverridePolicy>): ReadonlySet<unknown> {
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
