/** The spec of a PlacementScore that nobody should be able to apply. */
export interface WrongScore {
  readonly what: string;
  readonly wrong: object;
  /** The field, as the types name it. */
  readonly field: string;
  /** What the API server says. */
  readonly refusal: string;
}

export const GOOD_SCORE = {
  clusterName: 'east',
  scores: [{ name: 'carbon', value: 40 }],
  validUntil: '2026-01-01T00:00:00Z',
};

export const WRONG_SCORES: readonly WrongScore[] = [
  {
    what: 'no cluster',
    wrong: { clusterName: undefined },
    field: 'spec.clusterName',
    refusal: 'spec.clusterName: Required value',
  },
  {
    what: 'no scores',
    wrong: { scores: [] },
    field: 'spec.scores',
    refusal: 'spec.scores: Invalid value: 0: spec.scores in body should have at least 1 items',
  },
  {
    what: 'a score that is too good',
    wrong: { scores: [{ name: 'carbon', value: 101 }] },
    field: 'spec.scores.0.value',
    refusal:
      'spec.scores[0].value: Invalid value: 101: spec.scores[0].value in body should be less than or equal to 100',
  },
  {
    what: 'half a score',
    wrong: { scores: [{ name: 'carbon', value: 0.5 }] },
    field: 'spec.scores.0.value',
    refusal: 'spec.scores[0].value: Invalid value: "float64": spec.scores[0].value in body must be of type int32',
  },
  {
    what: 'a name that is none',
    wrong: { scores: [{ name: 'CO 2', value: 1 }] },
    field: 'spec.scores.0.name',
    refusal: 'spec.scores[0].name: Invalid value: "CO 2": spec.scores[0].name in body should match',
  },
  {
    what: 'an end that is no time',
    wrong: { validUntil: 'tomorrow' },
    field: 'spec.validUntil',
    refusal: 'spec.validUntil: Invalid value: "tomorrow": spec.validUntil in body must be of type date-time',
  },
];
