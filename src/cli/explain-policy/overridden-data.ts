import type { OverridePolicy } from '../../api/override-policy.ts';
import type { PersistentVolumeClaim } from '../../kube/volumes.ts';
import type { KubeObject } from '../../kube/object.ts';
import { CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, type Resource } from '../../kube/resource.ts';
import { applyRules } from '../../overrides/apply-overrides.ts';
import { planRules } from '../../overrides/planned-rules.ts';
import type { OverrideSubject } from '../../overrides/selection.ts';
import type { Cluster } from '../../api/cluster.ts';
import { traceRules, type TracedRule } from './rule-trace.ts';

type DataKind = 'ConfigMap' | 'PersistentVolumeClaim';

/** What comes along with pods and has policies of its own. Secrets are left out: nobody should have to read them to ask this. */
const DATA: ReadonlyMap<DataKind, Resource> = new Map([
  ['ConfigMap', CONFIG_MAPS],
  ['PersistentVolumeClaim', PERSISTENT_VOLUME_CLAIMS],
]);

export interface HostData {
  readonly kind: DataKind;
  readonly object: KubeObject;
}

/** ConfigMaps and claims, where selectors of the policy are for those kinds. `list`: none where they may not be listed. */
export async function hostData(
  { spec: { resourceSelectors } }: OverridePolicy,
  list: (resource: Resource) => Promise<KubeObject[]>,
): Promise<HostData[]> {
  const found: HostData[] = [];
  for (const [kind, resource] of DATA) {
    if (!resourceSelectors.some((one) => one.kind === kind)) continue;
    for (const object of await list(resource)) found.push({ kind, object });
  }
  return found;
}

/** By what policies choose it: its own name and labels, and no owners. */
export function subjectOfData({ kind, object: { metadata } }: HostData): OverrideSubject {
  const { namespace = '', name, labels = {} } = metadata;
  return { namespace, identities: [{ apiVersion: 'v1', kind, name, labels }] };
}

/** What policies make of its copy in a member, or of the claim that is made there. */
export function tracedData(
  data: HostData,
  policies: readonly OverridePolicy[],
  member: Cluster,
): { traced: TracedRule[]; refused: string | null } {
  const context = { subject: subjectOfData(data), member };
  const plan = planRules(context.subject, policies, member);
  if ('unknown' in plan) return { traced: [], refused: null };
  const object = inMember(data);
  const outcome = 'refused' in plan ? plan : applyRules(object, plan.rules, context);
  const refused = 'refused' in outcome ? outcome.refused.message : null;
  return { traced: traceRules(object, policies, context), refused };
}

/** Without any policy: what others say of it stays behind. Rules see the class that a claim has in the host. */
function inMember({ kind, object }: HostData): KubeObject {
  const { name, namespace = '' } = object.metadata;
  const typed = { apiVersion: 'v1', kind, metadata: { name, namespace } };
  if (kind === 'ConfigMap') return { ...object, ...typed };
  const { accessModes, resources, volumeMode, storageClassName } = (object as PersistentVolumeClaim).spec;
  const spec = { accessModes, resources, volumeMode, storageClassName };
  const asked = Object.entries(spec).filter(([, value]) => value !== undefined);
  return { ...typed, spec: Object.fromEntries(asked) } as KubeObject;
}
