/** What a ServiceAccount's token says of itself. Nothing of it is verified: the API server does that. */
export interface TokenClaims {
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Longer than any API server makes them: what it may cost is bounded. */
const LONGEST_TOKEN = 16 * 1024;
/** No Date is later, in ms since the epoch. */
const LAST_DATE = 8.64e15;
/** Kubernetes' own names: DNS labels and subdomains. */
const SUBJECT = /^system:serviceaccount:([a-z0-9][-a-z0-9]{0,62}):([a-z0-9][-.a-z0-9]{0,252})$/;

/** Undefined for what is no token of a ServiceAccount, or one that never ends. */
export function tokenClaims(token: string): TokenClaims | undefined {
  const [, payload = ''] = token.split('.');
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  if (typeof claims !== 'object' || claims === null) return undefined;
  const { sub, iat, exp } = claims as Record<string, unknown>;
  if (typeof sub !== 'string' || typeof iat !== 'number' || typeof exp !== 'number' || exp <= iat) return undefined;
  if (exp * 1000 > LAST_DATE) return undefined;
  const [, namespace, name] = SUBJECT.exec(sub) ?? [];
  if (namespace === undefined || name === undefined) return undefined;
  return { namespace, name, issuedAt: iat * 1000, expiresAt: exp * 1000 };
}

/** What is asked of and answered by `serviceaccounts/NAME/token` (authentication.k8s.io/v1 TokenRequest). */
export function tokenRequestFor(expirationSeconds: number): object {
  return { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } };
}

/** The token in an answer. Throws when there is none. */
export function tokenIn(answer: unknown): string {
  const { status } = (answer ?? {}) as { status?: { token?: unknown } | null };
  const token = status?.token;
  if (typeof token !== 'string' || token.length > LONGEST_TOKEN || !/^[\x21-\x7e]+$/.test(token))
    throw new Error('it answered without a token');
  return token;
}
