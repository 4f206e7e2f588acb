import type { Container, Pod } from '../kube/core-v1.ts';

const FLAGS = ['hostPID', 'hostNetwork', 'hostIPC'] as const;

/** By which fields a pod can reach beyond its own walls on the node that it runs on. */
export function nodePowersOf({ spec }: Pick<Pod, 'spec'>): string[] {
  const containers: Container[] = [
    ...spec.containers,
    ...(spec.initContainers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ];
  return [
    ...(containers.some(({ securityContext }) => securityContext?.['privileged'] === true) ? ['privileged'] : []),
    ...FLAGS.filter((flag) => spec[flag] === true),
    ...((spec.volumes ?? []).some(({ hostPath }) => hostPath !== undefined) ? ['hostPath'] : []),
  ];
}
