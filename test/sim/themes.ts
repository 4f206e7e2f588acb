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
  outages: ['long-outage', 'create-replicaset', 'create-always', 'crash', 'owner-deletes', 'force-delete'],
  vanishing: ['long-rest', 'create-many', 'vanish', 'lie', 'crash', 'start', 'force-delete', 'compact'],
  watches: ['bad-watch', 'lie', 'compact', 'force-delete', 'delete-pods', 'owner-forces', 'create-statefulset'],
};
