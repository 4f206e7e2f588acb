import { isTakenLabel, MOST_STATE_RULES } from '../../api/state-preservation.ts';
import type { JsonRecord } from '../../kube/json-fields.ts';
import { parseJsonPath } from '../../kube/json-path.ts';
import type { Fields } from './fields.ts';
import type { Remarks } from './remarks.ts';

/**
 * `statePreservation` of a part of `failover`: the rules that mean something here; undefined: none.
 *
 * @param whose pods that are given what the one before showed.
 */
export function statePreservation(part: Fields | undefined, whose: string, remarks: Remarks): JsonRecord | undefined {
  const from = part?.within('statePreservation');
  if (from === undefined) return undefined;
  const rules = new Map<unknown, JsonRecord>();
  for (const rule of from.each('rules')) {
    const { aliasLabelName, jsonPath } = rule.same('aliasLabelName', 'jsonPath');
    rule.end();
    const why = whyNot(aliasLabelName, jsonPath);
    if (why === undefined) rules.set(aliasLabelName, { aliasLabelName, jsonPath });
    else remarks.lost(rule.path, why);
  }
  from.end();
  const kept = [...rules.values()];
  if (kept.length === 0) return undefined;
  if (kept.length > MOST_STATE_RULES)
    remarks.lost(from.of('rules'), `all after the first ${MOST_STATE_RULES} are left out`);
  remarks.differs(
    from.path,
    'its paths are read from the status of the pod that is moved, and not from that of its workload, which stays on this cluster with all its status; the labels are on the pod that comes in its place, ' +
      `${whose}. A path that finds nothing hands nothing on, and holds up no move`,
  );
  return { rules: kept.slice(0, MOST_STATE_RULES) };
}

function whyNot(label: unknown, path: unknown): string | undefined {
  if (typeof label !== 'string' || typeof path !== 'string') return 'is no rule and is left out';
  if (isTakenLabel(label))
    return `${label} is a label of Kubernetes, of a controller of it, or of Spillway, which are not handed on`;
  if (parseJsonPath(path) !== undefined) return undefined;
  return `${path} is not read here, and is left out: of JSONPath fields, indexes, [*] and filters with == are, as in {.conditions[?(@.type=="Saved")].message}`;
}
