import type { Invariants } from './api/invariants.ts';
import type { RequestGuard } from './kube/client.ts';
import { TransportError } from './kube/errors.ts';

const NODE = /^\/api\/v1\/nodes(?:\/[^/]+)?$/;

/**
 * Stands between everything and the host. Nothing is sent but reads while another cluster answers there (I3); `problem`
 * says so in words. And a Node object that goes takes its pods with it (the garbage collector removes pods of Nodes that
 * do not exist), so nothing here may ever delete one (I17).
 */
export function hostGuard(invariants: Invariants, problem: () => string | undefined): RequestGuard {
  return ({ method, path }) => {
    const detail = problem();
    // Counted when it was found out.
    if (detail !== undefined) throw new TransportError({ cluster: 'host', kind: 'aborted', method, path, detail });
    if (method === 'DELETE' && NODE.test(path)) throw invariants.violated('I17', 'deletion of a Node', { path });
  };
}
