import type { Pod } from './core-v1.ts';

/** Whether the pod has data in PersistentVolumeClaims, its own of generic ephemeral volumes among them. */
export function usesClaims({ spec }: { spec: Pick<Pod['spec'], 'volumes'> }): boolean {
  return (spec.volumes ?? []).some(
    ({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim !== undefined || ephemeral !== undefined,
  );
}
