import type { ContainerStatus } from '../kube/core-v1.ts';

/** Exit code for containers whose real one can no longer be learned; the kubelet uses the same for unknown ones. */
export const LOST_EXIT_CODE = 137;

/** A container whose end nobody was told of, as it is shown in a pod that has ended. */
export function lostContainer(status: ContainerStatus): ContainerStatus {
  if (status.state?.running === undefined) return { ...status, ready: false };
  const { startedAt } = status.state.running;
  const terminated = {
    exitCode: LOST_EXIT_CODE,
    reason: 'MemberStatusLost',
    message: 'The container ran in a member cluster and vanished there before its exit code could be read.',
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(status.containerID === undefined ? {} : { containerID: status.containerID }),
  };
  return { ...status, ready: false, started: false, state: { terminated } };
}
