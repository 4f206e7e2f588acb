import { apiVersionOf, type Resource } from '../../kube/resource.ts';
import { CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES, parseOverridePolicy } from '../../api/override-policy.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, parsePlacementPolicy } from '../../api/placement-policy.ts';
import { CLUSTER_TAINT_POLICIES, parseClusterTaintPolicy } from '../../api/cluster-taint-policy.ts';
import { parseWorkloadRebalancer, WORKLOAD_REBALANCERS } from '../../api/workload-rebalancer.ts';
import type { JsonRecord } from '../../kube/json-fields.ts';
import type { KubeObject } from '../../kube/object.ts';
import { compilePolicy } from '../../placement/policy-selection.ts';
import type { ManifestObject } from '../simulate/manifest-objects.ts';
import { Fields } from './fields.ts';
import { insteadOf, rebalancerSpec, taintPolicySpec } from './karmada-others.ts';
import { overrideSpec } from './karmada-overrides.ts';
import { placementSpec } from './karmada-placement.ts';
import {
  FEDERATED,
  federatedWorkload,
  placementOfFederated,
  placementOfPreference,
  targetKindOf,
  type FederatedWorkload,
} from './kubefed.ts';
import { type Remark, Remarks } from './remarks.ts';

/** What an object of Karmada or KubeFed becomes. */
export interface Translation {
  /** `PropagationPolicy shop/web` */
  readonly of: string;
  /** None: it has no counterpart; a remark says what there is instead. */
  readonly made: readonly KubeObject[];
  readonly remarks: readonly Remark[];
  /** Why the API server would refuse what was made, by field. */
  readonly problems: readonly string[];
}

/**
 * Objects of Karmada and KubeFed as ours, in the same order, and names of those that are neither. Each field is taken over, or named in a
 * remark. Pure.
 */
export function translations(objects: readonly ManifestObject[]): { translated: Translation[]; others: string[] } {
  const translated: Translation[] = [];
  const others: string[] = [];
  for (const object of objects) {
    const remarks = new Remarks();
    const made = madeOf(object, objects, remarks);
    if (made === undefined) others.push(nameOf(object));
    else translated.push({ of: nameOf(object), made, remarks: remarks.all, problems: made.flatMap(problemsOf) });
  }
  return { translated, others };
}

function nameOf({ kind, metadata: { namespace, name } }: ManifestObject): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

/** Undefined: it is of somebody else. */
function madeOf(object: ManifestObject, all: readonly ManifestObject[], remarks: Remarks): KubeObject[] | undefined {
  const group = object.apiVersion.split('/')[0] ?? '';
  const spec = new Fields(object['spec'], 'spec', remarks);
  switch (`${group}/${object.kind}`) {
    case 'policy.karmada.io/PropagationPolicy':
      return ours(PLACEMENT_POLICIES, object, placementSpec(spec, remarks));
    case 'policy.karmada.io/ClusterPropagationPolicy':
      return ours(CLUSTER_PLACEMENT_POLICIES, object, placementSpec(spec, remarks));
    case 'policy.karmada.io/OverridePolicy':
      return ours(OVERRIDE_POLICIES, object, overrideSpec(spec, remarks));
    case 'policy.karmada.io/ClusterOverridePolicy':
      return ours(CLUSTER_OVERRIDE_POLICIES, object, overrideSpec(spec, remarks));
    case 'policy.karmada.io/ClusterTaintPolicy':
      return ours(CLUSTER_TAINT_POLICIES, object, taintPolicySpec(spec, remarks));
    case 'apps.karmada.io/WorkloadRebalancer':
      return ours(WORKLOAD_REBALANCERS, object, rebalancerSpec(spec, remarks));
    case 'scheduling.kubefed.io/ReplicaSchedulingPreference': {
      const target = all.find((one) => isTargetOf(one, object));
      const workload = target === undefined ? undefined : workloadOf(target, new Remarks());
      return ours(PLACEMENT_POLICIES, object, placementOfPreference(object.metadata.name, spec, workload, remarks));
    }
    default:
      if (group === 'types.kubefed.io' && FEDERATED[object.kind] !== undefined)
        return ofFederated(object, all, remarks);
      return withoutCounterpart(object, remarks);
  }
}

function withoutCounterpart({ apiVersion, kind }: ManifestObject, remarks: Remarks): KubeObject[] | undefined {
  const instead = insteadOf(apiVersion, kind);
  if (instead === undefined) return undefined;
  if (instead.startsWith('is not needed')) remarks.differs('', instead);
  else remarks.lost('', instead);
  return [];
}

function isTargetOf(one: ManifestObject, preference: ManifestObject): boolean {
  return (
    one.apiVersion.startsWith('types.kubefed.io/') &&
    one.kind === targetKindOf(preference['spec']) &&
    one.metadata.name === preference.metadata.name &&
    one.metadata.namespace === preference.metadata.namespace
  );
}

function workloadOf(object: ManifestObject, remarks: Remarks): FederatedWorkload {
  return federatedWorkload(object, new Fields(object['spec'], 'spec', remarks), remarks);
}

function ofFederated(object: ManifestObject, all: readonly ManifestObject[], remarks: Remarks): KubeObject[] {
  const workload = workloadOf(object, remarks);
  const isDivided = all.some((one) => one.kind === 'ReplicaSchedulingPreference' && isTargetOf(object, one));
  const placement = isDivided ? undefined : placementOfFederated(workload, remarks);
  const { selector, overrideRules } = workload;
  const overrides = overrideRules.length === 0 ? undefined : { resourceSelectors: [selector], overrideRules };
  return [...ours(PLACEMENT_POLICIES, object, placement), ...ours(OVERRIDE_POLICIES, object, overrides)];
}

const FOREIGN_KEY = /(^|\.)(karmada|kubefed)\.io\/|^kubectl\.kubernetes\.io\//;

function ours(resource: Resource, { metadata }: ManifestObject, spec: JsonRecord | undefined): KubeObject[] {
  if (spec === undefined) return [];
  const own = (map: Readonly<Record<string, string>> | undefined): Record<string, string> | undefined => {
    const kept = Object.entries(map ?? {}).filter(([key]) => !FOREIGN_KEY.test(key));
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  };
  const { name, namespace } = metadata;
  const [labels, annotations] = [own(metadata.labels), own(metadata.annotations)];
  const made: KubeObject & { spec: JsonRecord } = {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      name,
      ...(resource.namespaced && namespace !== undefined ? { namespace } : {}),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec,
  };
  return [made];
}

type Checked = object | { readonly problems: readonly string[] };

/** Of each kind that is made, what the API server, or the manager afterwards, says of one. */
const CHECKS: Readonly<Record<string, (made: KubeObject) => Checked>> = {
  [PLACEMENT_POLICIES.kind]: placementPolicy,
  [CLUSTER_PLACEMENT_POLICIES.kind]: placementPolicy,
  [OVERRIDE_POLICIES.kind]: (made) => parseOverridePolicy('OverridePolicy', made),
  [CLUSTER_OVERRIDE_POLICIES.kind]: (made) => parseOverridePolicy('ClusterOverridePolicy', made),
  [CLUSTER_TAINT_POLICIES.kind]: parseClusterTaintPolicy,
  [WORKLOAD_REBALANCERS.kind]: parseWorkloadRebalancer,
};

function placementPolicy(made: KubeObject): Checked {
  const parsed = parsePlacementPolicy(made);
  return 'policy' in parsed ? compilePolicy(parsed.policy) : parsed;
}

function problemsOf(made: KubeObject): string[] {
  const { kind = '' } = made;
  const checked = CHECKS[kind]?.(made) ?? {};
  return 'problems' in checked ? checked.problems.map((problem) => `${kind}: ${problem}`) : [];
}
