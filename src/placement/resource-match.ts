import type { ResourceSelector } from '../api/selectors.ts';
import { labelSelectorOf, matchesLabels } from '../kube/label-selector.ts';
import type { TypedObject } from './owner-chain.ts';

/** How closely a selector speaks of an object: 3 by name, 2 by label, 1 by kind alone, 0 not at all. */
export type MatchRank = 0 | 1 | 2 | 3;

/** A selector as a test. With `within` it only speaks of objects in that namespace, whatever it says itself. */
export function compileSelector(
  selector: ResourceSelector,
  within: string | undefined,
): (object: TypedObject) => MatchRank {
  const { apiVersion, kind, namespace, name } = selector;
  const labels = selector.labelSelector === undefined ? undefined : labelSelectorOf(selector.labelSelector);
  return ({ apiVersion: version, kind: type, metadata }) => {
    if (version !== apiVersion || type !== kind) return 0;
    if (within !== undefined && metadata.namespace !== within) return 0;
    if (namespace !== undefined && namespace !== '' && metadata.namespace !== namespace) return 0;
    if (name !== undefined) return metadata.name === name ? 3 : 0;
    if (labels === undefined) return 1;
    return matchesLabels(labels, metadata.labels) ? 2 : 0;
  };
}
