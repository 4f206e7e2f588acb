import { OWNER_KINDS } from '../kube/owner-kinds.ts';
import type { Resource } from '../kube/resource.ts';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';

/** kubectl's own. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  deploy: 'deployments',
  rs: 'replicasets',
  sts: 'statefulsets',
  rc: 'replicationcontrollers',
};
/** Pods of DaemonSets are for their nodes, and each Job of a CronJob is a workload of its own. */
const KINDS = OWNER_KINDS.filter(({ kind }) => kind !== 'DaemonSet' && kind !== 'CronJob');

/** `deployment/web`, `deploy/web` or `deployments.apps/web`, as kubectl takes it. Throws CliError. */
export function workloadNamed(text: string): { resource: Resource; name: string } {
  const [type = '', name = '', more] = text.split('/');
  const [plural = '', group] = type.toLowerCase().split(/\.(.*)/s, 2);
  const resource = KINDS.find(
    (one) =>
      [one.kind.toLowerCase(), one.plural].includes(SHORT_NAMES[plural] ?? plural) &&
      (group === undefined || group === one.group || group === `${one.version}.${one.group}`),
  );
  if (resource !== undefined && name !== '' && more === undefined) return { resource, name };
  throw new CliError(`${text} is not the name of a workload`, {
    exitCode: EXIT.usage,
    fix: `name it like deployment/web; kinds are ${KINDS.map(({ kind }) => kind.toLowerCase()).join(', ')}`,
  });
}
