import { LOCAL } from '../../api/cluster-tiers.ts';
import { type JsonRecord, listOf, textOf } from '../../kube/json-fields.ts';
import type { Fields } from './fields.ts';
import type { Remarks } from './remarks.ts';

/** Kinds that make pods, by group. */
const WITH_PODS: Readonly<Record<string, readonly string[]>> = {
  '': ['Pod', 'ReplicationController'],
  apps: ['Deployment', 'StatefulSet', 'ReplicaSet'],
  batch: ['Job', 'CronJob'],
};
/** Groups of Kubernetes itself whose kinds make none. Kinds of all other groups may. */
const WITHOUT_PODS =
  /(^|\.)k8s\.io$|^(autoscaling|policy|extensions|events|cert-manager\.io|monitoring\.coreos\.com|policy\.karmada\.io)$/;
const REFERRED_TO = ['ConfigMap', 'Secret', 'PersistentVolumeClaim'];

/**
 * Selectors of objects whose pods a placement policy is for; others are left out, with a remark. Undefined: none is left.
 */
export function selectorsOfWorkloads(from: Fields, remarks: Remarks): JsonRecord[] | undefined {
  const kept = from.each('resourceSelectors').flatMap((selector): JsonRecord[] => {
    const one = selectorIn(selector);
    const { group, kind } = kindOf(one);
    if (group === 'apps' && kind === 'DaemonSet') {
      remarks.lost(
        selector.path,
        'DaemonSets run in members as spec.daemonSets of each MemberCluster says, by no policy',
      );
      return [];
    }
    if (makesPods(group, kind) === false) {
      remarks.differs(selector.path, `${kind} stays in the host, and goes along where pods need it: left out`);
      return [];
    }
    if (makesPods(group, kind) === undefined) {
      remarks.differs(selector.path, `is kept, for the case that ${kind} makes pods; leave it out if it does not`);
    }
    return [one];
  });
  return kept.length === 0 ? undefined : kept;
}

/** Selectors of an override policy, which may also mean what pods refer to. Undefined: it named some, and none is left. */
export function selectorsOfOverridden(from: Fields, remarks: Remarks): JsonRecord[] | undefined {
  const all = from.each('resourceSelectors');
  const kept = all.flatMap((selector): JsonRecord[] => {
    const one = selectorIn(selector);
    const { group, kind } = kindOf(one);
    const isCopied = group === '' && REFERRED_TO.includes(kind);
    if (isCopied || makesPods(group, kind) !== false) return [one];
    remarks.lost(selector.path, `no ${kind} is copied as it is: only pods and what they refer to are in members`);
    return [];
  });
  return all.length > 0 && kept.length === 0 ? undefined : kept;
}

function selectorIn(selector: Fields): JsonRecord {
  const one = selector.same('apiVersion', 'kind', 'namespace', 'name', 'labelSelector');
  selector.end();
  return one;
}

function kindOf({ apiVersion, kind }: JsonRecord): { group: string; kind: string } {
  const version = textOf(apiVersion) ?? '';
  return { group: version.includes('/') ? (version.split('/')[0] ?? '') : '', kind: textOf(kind) ?? '' };
}

/** Undefined: nobody knows. */
function makesPods(group: string, kind: string): boolean | undefined {
  const known = WITH_PODS[group];
  if (known !== undefined) return known.includes(kind);
  return WITHOUT_PODS.test(group) ? false : undefined;
}

const AFFINITY = ['clusterNames', 'exclude', 'labelSelector', 'fieldSelector'] as const;

/** Clusters as an override or a weight means them. */
export function clustersIn(from: Fields): JsonRecord {
  const clusters = from.same(...AFFINITY);
  from.end();
  return clusters;
}

/** Clusters that pods may go to. Karmada has no nodes of its own, so where none is named the host is not meant. */
export function placesIn(from: Fields, ...more: string[]): JsonRecord {
  const { exclude, ...others } = from.same(...AFFINITY, ...more);
  return membersOnly({ ...others, ...(exclude === undefined ? {} : { exclude }) });
}

export function membersOnly(affinity: JsonRecord): JsonRecord {
  if (listOf(affinity['clusterNames']).length > 0) return affinity;
  return { ...affinity, exclude: [...listOf(affinity['exclude']), LOCAL] };
}
