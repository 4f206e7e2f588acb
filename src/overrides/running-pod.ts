import { GROUP } from '../api/marks.ts';
import type { OverridePolicy } from '../api/override-policy.ts';
import type { Pod } from '../kube/core-v1.ts';
import {
  fieldsOf,
  entryOf,
  type JsonRecord,
  listOf,
  recordOf,
  rewriteField,
  rewriteItems,
  rewriteObject,
  without,
} from '../kube/json-fields.ts';
import { isOfClusterPolicy, type PlannedRule, policyInWords } from './planned-rules.ts';

/**
 * The rules for a pod that runs in a member already. Policies that are for running pods count as they are now, and not at
 * all when they are gone; all others as they were when the pod was created, or when they turned into policies for new
 * pods, after which nothing that happens to them is the pod's business. In the order they are applied.
 *
 * `following`: what is planned of policies for running pods. `policies`: all that may concern the pod.
 */
export function rulesForRunningPod(
  recorded: readonly PlannedRule[],
  following: readonly PlannedRule[],
  policies: readonly OverridePolicy[],
): readonly PlannedRule[] {
  const applyTo = new Map(policies.map((policy) => [policyInWords(policy), policy.spec.applyTo]));
  const kept = recorded.flatMap((rule): PlannedRule[] => {
    const now = applyTo.get(rule.policy) ?? (rule.applyTo === 'NewPods' ? 'NewPods' : undefined);
    if (now !== 'NewPods') return [];
    return [rule.applyTo === now ? rule : { ...rule, applyTo: now }];
  });
  return [...kept, ...following].sort(inOrder);
}

function inOrder(a: PlannedRule, b: PlannedRule): number {
  const [clusterA, clusterB] = [isOfClusterPolicy(a), isOfClusterPolicy(b)];
  if (clusterA !== clusterB) return clusterA ? -1 : 1;
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.policy !== b.policy) return a.policy < b.policy ? -1 : 1;
  return a.rule - b.rule;
}

/** Fields of a container that can change while it runs. */
const CONTAINER_FIELDS = ['image', 'resources'] as const;
const SPEC_FIELDS = ['tolerations', 'activeDeadlineSeconds', 'resources', 'ephemeralContainers'] as const;

/**
 * The host pod with everything that can change while a pod runs as it was rendered for the member: labels, annotations,
 * images, resources, tolerations. What is sent to a running member pod, and what it is said to have received, follows
 * from this pod, so that the host's own changes arrive with the overrides on them.
 */
export function podWithOverrides(hostPod: Pod, rendered: Pod): Pod {
  return rewriteObject(hostPod, (own) => withChangeableFieldsOf(own, fieldsOf(rendered)));
}

function withChangeableFieldsOf(own: JsonRecord, made: JsonRecord): JsonRecord {
  const metadata = recordOf(own['metadata']) ?? {};
  const madeMetadata = recordOf(made['metadata']) ?? {};
  let spec = recordOf(own['spec']) ?? {};
  const madeSpec = recordOf(made['spec']) ?? {};
  for (const list of ['initContainers', 'containers']) {
    const byName = new Map(listOf(madeSpec[list]).map((item) => [recordOf(item)?.['name'], recordOf(item)]));
    spec = rewriteField(spec, list, (items) =>
      rewriteItems(items, (container) => {
        const counterpart = byName.get(container['name']);
        return counterpart === undefined ? container : withFieldsOf(container, counterpart, CONTAINER_FIELDS);
      }),
    );
  }
  return {
    ...own,
    metadata: {
      ...metadata,
      labels: withoutMarks(recordOf(madeMetadata['labels'])),
      annotations: withoutMarks(recordOf(madeMetadata['annotations'])),
    },
    spec: withFieldsOf(spec, madeSpec, SPEC_FIELDS),
  };
}

function withFieldsOf(record: JsonRecord, from: JsonRecord, fields: readonly string[]): JsonRecord {
  let after = record;
  for (const field of fields) {
    const value = entryOf(from, field);
    if (value === entryOf(after, field)) continue;
    after = value === undefined ? without(after, [field]) : { ...after, [field]: value };
  }
  return after;
}

function withoutMarks(map: JsonRecord = {}): JsonRecord {
  return without(
    map,
    Object.keys(map).filter((key) => key.startsWith(`${GROUP}/`)),
  );
}
