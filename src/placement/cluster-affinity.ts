import type { ClusterAffinity } from '../api/selectors.ts';
import { labelSelectorOf, matchesLabels } from '../kube/label-selector.ts';
import type { Cluster } from '../api/cluster.ts';

/** Why a cluster is not meant, for people; undefined when it is. */
export type WhyNot = (cluster: Cluster) => string | undefined;

type FieldRequirement = NonNullable<ClusterAffinity['fieldSelector']>['matchExpressions'][number];

/**
 * A cluster affinity as a test, by Karmada's rules: `exclude` first, then everything that is given must hold; an affinity
 * without anything matches every cluster, `local` included.
 *
 * @throws SelectorError when the label selector is none.
 */
export function compileAffinity(affinity: ClusterAffinity): WhyNot {
  const { fieldSelector, clusterNames = [], exclude = [] } = affinity;
  const labels = affinity.labelSelector === undefined ? undefined : labelSelectorOf(affinity.labelSelector);
  const [named, excluded] = [new Set(clusterNames), new Set(exclude)];
  return (cluster) => {
    if (excluded.has(cluster.name)) return 'the policy excludes it';
    if (named.size > 0 && !named.has(cluster.name)) return 'the policy does not name it';
    if (labels !== undefined && !matchesLabels(labels, cluster.labels)) return 'the policy asks for other labels';
    const field = fieldSelector?.matchExpressions.find((requirement) => !fieldMatches(requirement, cluster));
    return field === undefined ? undefined : fieldInWords(field, cluster);
  };
}

/** The values of a field of a cluster; zones can be several, all others are one or none. */
export function fieldValues(cluster: Cluster, field: 'provider' | 'region' | 'zone'): readonly string[] {
  if (field === 'zone') return cluster.zones;
  const value = field === 'provider' ? cluster.provider : cluster.region;
  return value === undefined ? [] : [value];
}

/** In: some value of the cluster is listed. NotIn: none is, which holds for a cluster without the field. */
function fieldMatches({ key, operator, values }: FieldRequirement, cluster: Cluster): boolean {
  const listed = fieldValues(cluster, key).some((value) => values.includes(value));
  return operator === 'In' ? listed : !listed;
}

function fieldInWords({ key, operator, values }: FieldRequirement, cluster: Cluster): string {
  const actual = fieldValues(cluster, key).join(', ') || 'not known';
  const wanted = operator === 'In' ? values.join(' or ') : `other than ${values.join(', ')}`;
  return `the policy asks for ${key} ${wanted}, its ${key} is ${actual}`;
}
