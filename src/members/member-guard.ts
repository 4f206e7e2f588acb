import type { Invariants } from '../api/invariants.ts';
import { HOST_LABEL } from '../api/marks.ts';
import type { RequestGuard } from '../kube/client.ts';
import { TransportError } from '../kube/errors.ts';
import { isJsonObject } from '../kube/json-equal.ts';
import { isReview } from '../kube/reviews.ts';

export interface MemberGuardOptions {
  member: string;
  hostId: string;
  /** The member is known to be the pinned cluster. */
  identityOk: () => boolean;
  /** This replica may act for the member. */
  leaseHeld: () => boolean;
  /** Why nothing may be written anywhere because of the host, or undefined. */
  hostProblem: () => string | undefined;
  invariants: Invariants;
}

/** A collection: `/api/v1/pods`, `/api/v1/namespaces/a/pods`, `/apis/apps/v1/...`. What follows a name is a subresource. */
const COLLECTION = /^\/api(?:s\/[^/]+)?\/[^/]+\/(?:namespaces\/[^/]+\/)?[^/]+$/;
/** An object of a collection, and none of its subresources. A namespace's subresources look like collections. */
const OBJECT = /^\/api(?:s\/[^/]+)?\/[^/]+\/(?:namespaces\/[^/]+\/[^/]+\/[^/]+|(?!namespaces\/[^/]+\/)[^/]+\/[^/]+)$/;

/**
 * Stands between everything and a member: whatever is sent there, but reads, passes here. The cluster has to be the
 * pinned one and so has the host (I3), what is made has to carry our label (I15), and this replica has to hold the
 * member's lease, because much may have happened since that was decided upon.
 */
export function memberGuard(options: MemberGuardOptions): RequestGuard {
  const { member, hostId, identityOk, leaseHeld, hostProblem, invariants } = options;
  return ({ method, path, body }) => {
    const where = { member, method, path };
    if (!identityOk())
      throw invariants.violated('I3', 'a write to a cluster that is not known to be the member', where);
    const problem = hostProblem();
    if (problem !== undefined) {
      // Counted when it was found out.
      throw new TransportError({ cluster: member, kind: 'aborted', method, path, detail: `not sent: ${problem}` });
    }
    if (!leaseHeld() && method !== 'CONNECT') {
      // No violation: the lease may end at any moment, and this is the check for that.
      const detail = 'not sent: the lease of the member is not held any more';
      throw new TransportError({ cluster: member, kind: 'aborted', method, path, detail });
    }
    if (method === 'POST' && COLLECTION.test(path) && !isReview(path) && labelOf(body) !== hostId) {
      throw invariants.violated('I15', 'an object without our label', where);
    }
    if (method === 'PUT' && OBJECT.test(path) && labelOf(body) !== hostId) {
      throw invariants.violated('I15', 'a replacement without our label', where);
    }
    if (method === 'PATCH' && takesLabel(body, hostId)) {
      throw invariants.violated('I15', 'a patch that takes our label away', where);
    }
  };
}

/** For who only observes a member: whatever would be sent there, but reads, is not. */
export function observerGuard(member: string): RequestGuard {
  return ({ method, path }) => {
    const detail = 'not sent: this replica observes the member and does not act for it';
    throw new TransportError({ cluster: member, kind: 'aborted', method, path, detail });
  };
}

/** By a merge patch, a strategic merge patch, or a list of operations (RFC 6902). */
function takesLabel(patch: unknown, hostId: string): boolean {
  if (Array.isArray(patch)) return patch.some((operation) => touchesLabel(operation));
  if (!isJsonObject(patch) || !('metadata' in patch)) return false;
  const { metadata } = patch;
  if (!isJsonObject(metadata) || '$patch' in metadata) return true;
  if (!('labels' in metadata)) return false;
  const { labels } = metadata;
  if (!isJsonObject(labels)) return true;
  return HOST_LABEL in labels ? labels[HOST_LABEL] !== hostId : '$patch' in labels;
}

/** No operation of ours has anything to do with it. */
function touchesLabel(operation: unknown): boolean {
  if (!isJsonObject(operation)) return true;
  const label = `/metadata/labels/${HOST_LABEL.replaceAll('/', '~1')}`;
  const paths = operation['op'] === 'move' ? [operation['path'], operation['from']] : [operation['path']];
  return (
    operation['op'] !== 'test' && paths.some((path) => typeof path !== 'string' || `${label}/`.startsWith(`${path}/`))
  );
}

function labelOf(body: unknown): unknown {
  if (!isJsonObject(body) || !isJsonObject(body['metadata']) || !isJsonObject(body['metadata']['labels']))
    return undefined;
  return body['metadata']['labels'][HOST_LABEL];
}
