import type { RequestGuard } from '../kube/client.ts';
import { UnsentError } from '../kube/errors.ts';
import { isReview } from '../kube/reviews.ts';

/**
 * Stands between who acts by a lease (a virtual node, who moves pods) and the host, before {@link hostGuard}: whatever is sent, but reads, has waited for its turn and
 * for a connection, and the lease may have gone to another replica meanwhile, which acts by now.
 */
export function leaseGuard(guard: RequestGuard, leaseHeld: () => boolean): RequestGuard {
  return (request) => {
    const { method, path } = request;
    if (!leaseHeld() && !isReview(path)) {
      const detail = 'not sent: the lease is not held any more';
      throw new UnsentError({ cluster: 'host', kind: 'aborted', method, path, detail });
    }
    guard(request);
  };
}
