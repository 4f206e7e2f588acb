import type { Invariants } from '../api/invariants.ts';
import type { RequestGuard } from '../kube/client.ts';
import { TransportError } from '../kube/errors.ts';
import { isJsonObject } from '../kube/json-equal.ts';

const NODE = /^\/api\/v1\/nodes(?:\/([^/]+))?$/;

/**
 * Stands between everything and the host. Nothing is sent but reads while another cluster answers there (I3); `problem`
 * says so in words. And a Node object that goes takes its pods with it (the garbage collector removes pods of Nodes that
 * do not exist), so none is ever deleted but one Node, by its UID and version, that `mayRemove` says is empty or given up (I17).
 */
export function hostGuard(
  invariants: Invariants,
  problem: () => string | undefined,
  mayRemove: (nodeName: string) => boolean,
): RequestGuard {
  return ({ method, path, body }) => {
    const detail = problem();
    // Counted when it was found out.
    if (detail !== undefined) throw new TransportError({ cluster: 'host', kind: 'aborted', method, path, detail });
    const node = method === 'DELETE' ? NODE.exec(path) : null;
    if (node === null) return;
    const { uid, resourceVersion } = preconditionsOf(body);
    const [, name] = node;
    if (name !== undefined && uid !== undefined && resourceVersion !== undefined && mayRemove(name)) return;
    throw invariants.violated('I17', 'deletion of a Node', { path });
  };
}

function preconditionsOf(body: unknown): { uid?: unknown; resourceVersion?: unknown } {
  const preconditions = isJsonObject(body) ? body['preconditions'] : undefined;
  return isJsonObject(preconditions) ? preconditions : {};
}
