/** The spec of a WorkloadRebalancer that nobody should be able to apply. */
export interface WrongRebalancer {
  readonly what: string;
  readonly wrong: object;
  /** The field, as the types name it. */
  readonly field: string;
  /** What the API server says. */
  readonly refusal: string;
}

const WORKLOAD = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' };
export const GOOD_REBALANCER = { workloads: [WORKLOAD], ttlSecondsAfterFinished: 0 };

const one = (more: object): object => ({ workloads: [{ ...WORKLOAD, ...more }] });

export const WRONG_REBALANCERS: readonly WrongRebalancer[] = [
  {
    what: 'no workloads',
    wrong: { workloads: undefined },
    field: 'spec.workloads',
    refusal: 'spec.workloads: Required value',
  },
  {
    what: 'an empty list of workloads',
    wrong: { workloads: [] },
    field: 'spec.workloads',
    refusal: 'spec.workloads: Invalid value: 0: spec.workloads in body should have at least 1 items',
  },
  {
    what: 'more workloads than it may have',
    wrong: { workloads: Array.from({ length: 257 }, (_, index) => ({ ...WORKLOAD, name: `web-${String(index)}` })) },
    field: 'spec.workloads',
    refusal: 'spec.workloads: Too many: 257: must have at most 256 items',
  },
  {
    what: 'a workload without a namespace',
    wrong: one({ namespace: undefined }),
    field: 'spec.workloads.0.namespace',
    refusal: 'spec.workloads[0].namespace: Required value',
  },
  {
    what: 'a namespace that cannot be one',
    wrong: one({ namespace: 'Shop/web' }),
    field: 'spec.workloads.0.namespace',
    refusal: 'spec.workloads[0].namespace: Invalid value: "Shop/web"',
  },
  {
    what: 'a workload without a name',
    wrong: one({ name: '' }),
    field: 'spec.workloads.0.name',
    refusal: 'spec.workloads[0].name: Invalid value: ""',
  },
  {
    what: 'a workload without a kind',
    wrong: one({ kind: undefined }),
    field: 'spec.workloads.0.kind',
    refusal: 'spec.workloads[0].kind: Required value',
  },
  {
    what: 'a dry run in words',
    wrong: { dryRun: 'yes' },
    field: 'spec.dryRun',
    refusal: 'spec.dryRun: Invalid value: "string": spec.dryRun in body must be of type boolean',
  },
  {
    what: 'a time below zero',
    wrong: { ttlSecondsAfterFinished: -1 },
    field: 'spec.ttlSecondsAfterFinished',
    refusal: 'spec.ttlSecondsAfterFinished: Invalid value: -1',
  },
  {
    what: 'a time in words',
    wrong: { ttlSecondsAfterFinished: '1h' },
    field: 'spec.ttlSecondsAfterFinished',
    refusal: 'spec.ttlSecondsAfterFinished: Invalid value: "string"',
  },
];
