import { isJsonObject } from '../kube/json-equal.ts';
import type { Container, Pod } from '../kube/core-v1.ts';

const FLAGS = ['hostPID', 'hostNetwork', 'hostIPC'] as const;

/** What containers may add by the Pod Security Standard `baseline`. */
const HARMLESS_CAPABILITIES: ReadonlySet<unknown> = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

/** By which fields a pod can reach beyond its own walls on the node that it runs on. */
export function nodePowersOf({ spec }: Pick<Pod, 'spec'>): string[] {
  const containers: Container[] = [
    ...spec.containers,
    ...(spec.initContainers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ];
  const some = (has: (context: Record<string, unknown>) => boolean): boolean =>
    containers.some(({ securityContext }) => securityContext !== undefined && has(securityContext));
  return [
    ...(some((context) => context['privileged'] === true) ? ['privileged'] : []),
    ...(some(addsCapabilities) ? ['capabilities'] : []),
    ...(some(({ procMount }) => procMount !== undefined && procMount !== 'Default') ? ['procMount'] : []),
    ...(some(isHostProcess) || isHostProcess(spec.securityContext ?? {}) ? ['hostProcess'] : []),
    ...FLAGS.filter((flag) => spec[flag] === true),
    ...((spec.volumes ?? []).some(({ hostPath }) => hostPath !== undefined) ? ['hostPath'] : []),
  ];
}

function addsCapabilities({ capabilities }: Record<string, unknown>): boolean {
  const added = isJsonObject(capabilities) ? capabilities['add'] : undefined;
  return Array.isArray(added) && added.some((one) => !HARMLESS_CAPABILITIES.has(one));
}

function isHostProcess({ windowsOptions }: Record<string, unknown>): boolean {
  return isJsonObject(windowsOptions) && windowsOptions['hostProcess'] === true;
}
