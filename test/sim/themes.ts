import type { StepKind } from './steps.ts';

/** Steps that together lead somewhere: a history that has a theme takes these far more often. */
export const THEMES: Readonly<Record<string, readonly StepKind[]>> = {
  names: ['edit-pools', 'real-node', 'pod-on-real-node', 'node-deleted', 'create-replicaset', 'crash', 'start'],
  pools: ['edit-pools', 'edit-mapping', 'create-statefulset', 'create-replicaset', 'delete-pod', 'crash-soon', 'start'],
  mappings: ['edit-mapping', 'create-never', 'create-always', 'late', 'lost-answers', 'crash-soon', 'start'],
  creations: [
    'create-and-delete',
    'create-never',
    'create-job',
    'delete-pod',
    'slow-creations',
    'late',
    'lost-answers',
  ],
  memory: [
    'refused-writes',
    'create-never',
    'create-job',
    'owner-forces',
    'owner-deletes',
    'cut-watches',
    'lie',
    'compact',
  ],
  crashes: ['create-never', 'create-job', 'create-statefulset', 'crash-soon', 'start', 'owner-forces', 'owner-deletes'],
  twins: ['partition', 'connecting', 'create-never', 'delete-pod', 'start', 'stop'],
  swaps: ['swap', 'connecting', 'slow', 'create-never', 'create-always', 'delete-pod', 'rotate'],
  refusals: ['come-in-an-hour', 'refusals', 'cut-watches', 'compact', 'create-never', 'delete-pod'],
  hostile: [
    'nonsense',
    'wrong-shape',
    'escapes',
    'own-condition',
    'bad-watch',
    'cut-watches',
    'create-always',
    'create-job',
  ],
  moves: [
    'cut',
    'taint-member',
    'taint-by-policy',
    'create-replicaset',
    'create-statefulset',
    'create-job',
    'long-rest',
    'crash',
    'start',
  ],
  fencing: [
    'power-failure',
    'wrong-word',
    'create-statefulset',
    'create-job',
    'create-replicaset',
    'long-rest',
    'crash',
    'start',
    'delete-pod',
  ],
  illness: ['pods-fall-ill', 'create-replicaset', 'create-statefulset', 'long-rest', 'cut', 'crash', 'start'],
  outages: ['long-outage', 'create-replicaset', 'create-always', 'crash', 'owner-deletes', 'force-delete'],
  vanishing: ['long-rest', 'create-many', 'vanish', 'lie', 'crash', 'start', 'force-delete', 'compact'],
  dependents: [
    'create-dependent',
    'edit-dependent',
    'delete-dependent',
    'create-referring',
    'stranger-dependent',
    'owner-deletes-dependent',
    'edit-mapping',
    'crash-soon',
    'start',
  ],
  watches: ['bad-watch', 'lie', 'compact', 'force-delete', 'delete-pods', 'owner-forces', 'create-statefulset'],
};

/** The same for what comes in histories of its own alone: steps of weight 0. */
export const RARE_THEMES: Readonly<Record<string, readonly StepKind[]>> = {
  gangs: [
    'create-gang',
    'create-gang-job',
    'gang-and-outage',
    'last-of-gang-fails',
    'partition',
    'refused-writes',
    'owner-deletes',
    'delete-pod',
    'crash',
    'start',
  ],
  migrations: [
    'migrate',
    'end-migration',
    'create-replicaset',
    'create-statefulset',
    'create-job',
    'long-rest',
    'cut',
    'owner-deletes',
    'crash',
    'start',
  ],
  rehearsals: [
    'rehearse',
    'taint-member',
    'cut',
    'pods-fall-ill',
    'create-replicaset',
    'create-statefulset',
    'long-rest',
    'crash',
    'start',
  ],
  tenants: [
    'create-resident',
    'cheat',
    'made-up-owners',
    'limited-and-slow',
    'reserve',
    'scale-without-end',
    'take-restrictions-away',
    'tolerate-more',
    'tolerate-everything',
    'slow',
    'delete-pod',
    'scale',
    'crash',
    'start',
  ],
};

/**
 * Of a calm world in which room is short: nothing else happens there, so that what goes wrong is nobody's fault but that of whoever places
 * pods.
 */
export const CROWDED_THEMES: Readonly<Record<string, readonly StepKind[]>> = {
  crowded: [
    'crowd',
    'crowd-with-gates',
    'crowd-with-gpus',
    'grow-and-shrink',
    'owner-takes-room',
    'let-go',
    'scale',
    'rest',
    'crash',
    'start',
  ],
  nominated: ['crowd', 'free-elsewhere', 'owner-takes-room', 'let-go', 'scale', 'rest'],
};

/** Of later seeds alone ({@link FIRST_LATER}): what earlier ones do stays as it is. */
export const LATER_THEMES: Readonly<Record<string, readonly StepKind[]>> = {
  rollouts: [
    'create-deployment',
    'roll-out',
    'scale-deployment',
    'delete-deployment',
    'create-statefulset',
    'update-statefulset',
    'cut',
    'pods-fall-ill',
    'long-rest',
    'crash',
    'start',
  ],
  rules: [
    'edit-policy',
    'delete-policy',
    'create-deployment',
    'create-replicaset',
    'create-statefulset',
    'scale',
    'cut',
    'long-rest',
    'crash',
    'start',
  ],
};
/** The first seed of which some have themes of {@link LATER_THEMES}. */
export const FIRST_LATER = 1_000_001;

export const ALL_THEMES: Readonly<Record<string, readonly StepKind[]>> = {
  ...THEMES,
  ...RARE_THEMES,
  ...CROWDED_THEMES,
  ...LATER_THEMES,
};
