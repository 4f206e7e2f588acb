/** The spec of a WorkloadMigration that nobody should be able to apply. */
export interface WrongMigration {
  readonly what: string;
  readonly wrong: object;
  /** The field, as the types name it; undefined: only the API server says it. */
  readonly field?: string;
  /** What the API server says. */
  readonly refusal: string;
}

const WORKLOAD = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
export const GOOD_MIGRATION = { workloads: [WORKLOAD], from: 'east', to: 'west' };

const one = (more: object): object => ({ workloads: [{ ...WORKLOAD, ...more }] });

export const WRONG_MIGRATIONS: readonly WrongMigration[] = [
  {
    what: 'neither workloads nor all',
    wrong: { workloads: undefined },
    refusal: 'spec: Invalid value: must name workloads, or say all: true, and not both',
  },
  {
    what: 'workloads and all',
    wrong: { all: true },
    refusal: 'spec: Invalid value: must name workloads, or say all: true, and not both',
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
    what: 'a workload without a kind',
    wrong: one({ kind: undefined }),
    field: 'spec.workloads.0.kind',
    refusal: 'spec.workloads[0].kind: Required value',
  },
  {
    what: 'a workload whose name cannot be one',
    wrong: one({ name: 'Web/one' }),
    field: 'spec.workloads.0.name',
    refusal: 'spec.workloads[0].name: Invalid value: "Web/one"',
  },
  {
    what: 'no member to leave',
    wrong: { from: undefined },
    field: 'spec.from',
    refusal: 'spec.from: Required value',
  },
  {
    what: 'the nodes of the host to leave',
    wrong: { from: 'local' },
    refusal: 'spec.from: Invalid value: from must be a member, not local',
  },
  {
    what: 'the same cluster to leave and to go to',
    wrong: { to: 'east' },
    refusal: 'spec.to: Invalid value: to must be another cluster than from',
  },
  {
    what: 'another word for pods that are never moved',
    wrong: { unmovable: 'Force' },
    field: 'spec.unmovable',
    refusal: 'spec.unmovable: Unsupported value: "Force": supported values: "Refuse", "Leave"',
  },
  {
    what: 'a time below zero',
    wrong: { ttlSecondsAfterFinished: -1 },
    field: 'spec.ttlSecondsAfterFinished',
    refusal: 'spec.ttlSecondsAfterFinished: Invalid value: -1',
  },
];
