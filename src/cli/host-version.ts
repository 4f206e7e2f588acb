import { CliError } from './cli-error.ts';
import type { Viewer } from './viewer.ts';

/** Oldest host and member, by what the admission policies of manifests/ need. */
const OLDEST_MINOR = 30;

export interface ClusterVersion {
  /** `v1.36.3` */
  readonly text: string;
  readonly minor: number;
}

/** The version of a cluster. Throws CliError, also for one that is too old. */
export async function versionOf(cluster: Viewer): Promise<ClusterVersion> {
  const answer = await cluster.ask(
    'get the version',
    async (signal) => await cluster.client.request({ path: '/version', signal }),
  );
  const { gitVersion } = (answer ?? {}) as { gitVersion?: unknown };
  const text = typeof gitVersion === 'string' ? gitVersion : '';
  const minor = Number(/^v1\.(\d+)\./.exec(text)?.[1] ?? Number.NaN);
  if (Number.isNaN(minor))
    throw new CliError('what answers is no Kubernetes API server that is known here', {
      reason: `its version is ${text}`,
    });
  if (minor >= OLDEST_MINOR) return { text, minor };
  throw new CliError(`the cluster of context ${cluster.context} is too old`, {
    reason: `it has Kubernetes ${text}, and the policies that limit what Spillway may do need 1.${String(OLDEST_MINOR)}`,
    fix: 'upgrade it, or name another --context',
  });
}

/** Whether the API server has MutatingAdmissionPolicy, so that pods get what they need without a webhook. */
export async function hasMutatingPolicies(host: Viewer): Promise<boolean> {
  const path = '/apis/admissionregistration.k8s.io/v1';
  const answer = await host.ask(
    'see what the API server can do',
    async (signal) => await host.client.request({ path, signal }),
  );
  const { resources } = (answer ?? {}) as { resources?: unknown };
  return (
    Array.isArray(resources) &&
    resources.some((one: { name?: unknown } | null) => one?.name === 'mutatingadmissionpolicies')
  );
}
