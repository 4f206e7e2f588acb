import { type JsonRecord, listOf, recordOf } from '../../kube/json-fields.ts';
import { listInWords } from '../../placement/placement-refusal.ts';
import type { Fields } from './fields.ts';
import type { Remarks } from './remarks.ts';

/**
 * `activationPreference`: without `Lazy` Karmada divides anew at each edit. Of the rules that move pods here each does a part of that, and acts also
 * where nothing was edited, so they are named and not written: only people know whether their pods are to be moved then.
 */
export function activationRemark(spec: Fields, placement: JsonRecord, remarks: Remarks): void {
  if (spec.take('activationPreference') === 'Lazy') return;
  const rules = ['activation: Eager (out of clusters that it does not choose any more)'];
  const isStatic = hasStaticWeights(placement['replicaScheduling']);
  if (isStatic) rules.push('divisionDrift (by edited weights)');
  // Beside static weights Karmada passes them over.
  if (!isStatic && listOf(placement['spreadConstraints']).length > 0)
    rules.push('spreadViolation (by edited spreadConstraints)');
  const home = hasTiers(placement)
    ? '. To an earlier tier nothing brings them back beside a division by room: kubectl spillway move does'
    : '';
  remarks.differs(
    spec.of('activationPreference'),
    `an edited policy moves nothing that runs, as with Lazy. Karmada divides anew at each edit; here pods are moved then by ${listInWords(rules)} of failover, ` +
      `one at a time, and also when labels or members have changed${home}`,
  );
}

/** Karmada takes weights that are not said for equal ones, and those of a list for what they are, unless room decides. */
export function hasStaticWeights(replicaScheduling: unknown): boolean {
  const division = recordOf(replicaScheduling);
  if (division === undefined || division['replicaDivisionPreference'] === 'Aggregated') return false;
  return recordOf(division['weightPreference'])?.['dynamicWeight'] === undefined;
}

function hasTiers(placement: JsonRecord): boolean {
  return listOf(placement['clusterAffinities']).some((group) => recordOf(group)?.['overflowAffinities'] !== undefined);
}
