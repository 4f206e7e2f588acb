import type { Invariants } from './api/invariants.ts';
import type { RequestGuard } from './kube/client.ts';

const NODE = /^\/api\/v1\/nodes(?:\/[^/]+)?$/;

/**
 * Stands between everything and the host: a Node object that goes takes its pods with it (the garbage collector removes
 * pods of Nodes that do not exist), so nothing here may ever delete one (I17).
 */
export function hostGuard(invariants: Invariants): RequestGuard {
  return ({ method, path }) => {
    if (method === 'DELETE' && NODE.test(path)) throw invariants.violated('I17', 'deletion of a Node', { path });
  };
}
