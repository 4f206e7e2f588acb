import type { KubeClient } from './client.ts';
import { ApiError } from './errors.ts';

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** What somebody may do or not, as `resourceAttributes` of Kubernetes' access reviews; without a namespace: in all of them. */
export interface RightInQuestion {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
}

/** Whether the client has a right in its cluster. Throws what the API server answers, but where not even asking is allowed. */
export async function mayI(
  client: Pick<KubeClient, 'request'>,
  resourceAttributes: RightInQuestion,
  signal: AbortSignal,
): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  };
  try {
    const answer = await client.request({ method: 'POST', path: PATH, body, signal });
    return (answer as { status?: { allowed?: boolean } }).status?.allowed === true;
  } catch (error) {
    // Whoever may not even ask may not do it either.
    if (error instanceof ApiError && (error.code === 403 || error.code === 404)) return false;
    throw error;
  }
}
