import { type JsonRecord, textOf } from '../../kube/json-fields.ts';
import { type Fields, given } from './fields.ts';
import type { Remarks } from './remarks.ts';
import { clustersIn, selectorsOfOverridden } from './selectors.ts';

/** Karmada's overriders, each with the fields of an entry. */
const OVERRIDERS: Readonly<Record<string, readonly string[]>> = {
  imageOverrider: ['predicate', 'component', 'operator', 'value'],
  commandOverrider: ['containerName', 'operator', 'value'],
  argsOverrider: ['containerName', 'operator', 'value'],
  labelsOverrider: ['operator', 'value'],
  annotationsOverrider: ['operator', 'value'],
  fieldOverrider: ['fieldPath', 'json', 'yaml'],
  plaintext: ['path', 'operator', 'value'],
};

/** The spec of an override policy of ours; undefined when it changes nothing that is in members. */
export function overrideSpec(spec: Fields, remarks: Remarks): JsonRecord | undefined {
  const selectors = selectorsOfOverridden(spec, remarks);
  const rules = spec.each('overrideRules').flatMap((rule) => rulesFrom(rule, remarks));
  // Deprecated there, and one more rule.
  rules.push(...rulesFrom(spec, remarks));
  if (selectors === undefined || rules.length === 0) {
    remarks.lost(spec.path, 'changes nothing that is in members');
    return undefined;
  }
  return { ...(selectors.length === 0 ? {} : { resourceSelectors: selectors }), overrideRules: rules };
}

function rulesFrom(rule: Fields, remarks: Remarks): JsonRecord[] {
  const target = rule.within('targetCluster');
  const targetCluster = target === undefined ? undefined : clustersIn(target);
  const found = rule.within('overriders');
  rule.end();
  if (found === undefined) return [];
  const overriders = given(
    Object.fromEntries(
      Object.entries(OVERRIDERS).map(([name, fields]) => [name, entriesFrom(found, name, fields, remarks)]),
    ),
  );
  found.end();
  return Object.keys(overriders).length === 0 ? [] : [given({ targetCluster, overriders })];
}

function entriesFrom(
  from: Fields,
  name: string,
  fields: readonly string[],
  remarks: Remarks,
): JsonRecord[] | undefined {
  const entries = from.each(name).flatMap((entry): JsonRecord[] => {
    const one = entry.same(...fields);
    entry.end();
    const path = textOf(one['path']) ?? '';
    if (name === 'plaintext' && path === '/spec/replicas') {
      remarks.lost(
        entry.path,
        'gives a cluster a number of its own: say it with replicaScheduling of a placement policy',
      );
      return [];
    }
    return [one];
  });
  return entries.length === 0 ? undefined : entries;
}
