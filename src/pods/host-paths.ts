import type { HostPathPolicy } from '../api/host-path.ts';
import { type JsonRecord, listOf, recordOf, textOf } from '../kube/json-fields.ts';

/** A hostPath volume that must not be in the member: which, and why, as the middle of a sentence. */
export interface HostPathProblem {
  volume: string;
  path: string;
  why: string;
}

/** A part of a path that leads out of a directory; nodes may be of an operating system that takes `\` for `/`. */
const UPWARDS = /(^|[/\\])[.][.]([/\\]|$)/;

/**
 * The first hostPath volume of a pod that is not allowed. Default deny: no policy, a path that is none, or that is not at
 * or below an allowed one by whole parts. Symbolic links are the node's: no text can tell where they lead. Pure.
 */
export function hostPathProblem(spec: JsonRecord, policy: HostPathPolicy | undefined): HostPathProblem | undefined {
  for (const item of listOf(spec['volumes'])) {
    const volume = recordOf(item);
    if (volume?.['hostPath'] === undefined) continue;
    const path = textOf(recordOf(volume['hostPath'])?.['path']) ?? '';
    const why = whyNot(path, policy);
    if (why !== undefined) return { volume: textOf(volume['name']) ?? '', path, why };
  }
  return undefined;
}

function whyNot(path: string, policy: HostPathPolicy | undefined): string | undefined {
  if (policy?.policy !== 'Allow') return 'hostPath volumes are refused there';
  if (!path.startsWith('/')) return 'only absolute paths can be allowed';
  if (UPWARDS.test(path)) return 'a path with ".." is never allowed';
  const parts = partsOf(path);
  const allowed = policy.allowedPrefixes.some((prefix) =>
    partsOf(prefix).every((part, index) => parts[index] === part),
  );
  return allowed ? undefined : 'that path is not among those that are allowed there';
}

/** Kubernetes takes `/a//b/./` for `/a/b`. */
function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}
