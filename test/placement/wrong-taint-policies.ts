/** The spec of a ClusterTaintPolicy that nobody should be able to apply. */
export interface WrongTaintPolicy {
  readonly what: string;
  readonly wrong: object;
  /** What the API server says. */
  readonly refusal: string;
}

export const GOOD_TAINT_POLICY = {
  targetClusters: { clusterNames: ['east'] },
  addOnConditions: [{ conditionType: 'Ready', operator: 'NotIn', statusValues: ['True'] }],
  addAfterSeconds: 60,
  removeOnConditions: [{ conditionType: 'Ready', operator: 'In', statusValues: ['True'] }],
  taints: [{ key: 'example.com/not-ready', effect: 'NoExecute' }],
};
const [condition] = GOOD_TAINT_POLICY.addOnConditions;
const [taint] = GOOD_TAINT_POLICY.taints;

export const WRONG_TAINT_POLICIES: readonly WrongTaintPolicy[] = [
  {
    what: 'no taints',
    wrong: { taints: [] },
    refusal: 'spec.taints: Invalid value: 0: spec.taints in body should have at least 1 items',
  },
  {
    what: 'no conditions',
    wrong: { addOnConditions: [], removeOnConditions: [] },
    refusal: 'spec.addOnConditions: Required value: must say when taints are added or removed',
  },
  {
    what: 'an unknown operator',
    wrong: { addOnConditions: [{ ...condition, operator: 'Exists' }] },
    refusal: 'spec.addOnConditions[0].operator: Unsupported value: "Exists"',
  },
  {
    what: 'no values',
    wrong: { addOnConditions: [{ ...condition, statusValues: [] }] },
    refusal: 'spec.addOnConditions[0].statusValues: Invalid value: 0',
  },
  {
    what: 'a value that no condition has',
    wrong: { removeOnConditions: [{ ...condition, statusValues: ['true'] }] },
    refusal: 'spec.removeOnConditions[0].statusValues[0]: Unsupported value: "true"',
  },
  {
    what: 'a time below zero',
    wrong: { addAfterSeconds: -1 },
    refusal: 'spec.addAfterSeconds: Invalid value: -1',
  },
  {
    what: 'an effect that taints of clusters do not have',
    wrong: { taints: [{ ...taint, effect: 'PreferNoSchedule' }] },
    refusal: 'spec.taints[0].effect: Unsupported value: "PreferNoSchedule"',
  },
  {
    what: 'two taints of one key and effect',
    wrong: { taints: [taint, taint] },
    refusal: 'spec.taints[1]: Duplicate value',
  },
];
