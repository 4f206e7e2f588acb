/** What stands in a log line instead of a secret. */
const REDACTED = '[redacted]';

/** Compared in lower case and without `-` and `_`. */
const SECRET_KEYS = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'token',
  'bearertoken',
  'idtoken',
  'refreshtoken',
  'accesstoken',
  'password',
  'kubeconfig',
  'clientkey',
  'clientkeydata',
  'privatekey',
  'key.pem',
  'tls.key',
  'stringdata',
]);
const MAX_DEPTH = 8;

/**
 * Each ends at a quotation mark, so that a line of JSON stays one. The first part of a JWT is a short header: without a limit, a
 * long text in which many could begin would take time by the square of its length. Before them may be a letter: that of `\n`.
 */
const SECRET_TEXT =
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?(?:-----END [A-Z ]*PRIVATE KEY-----|(?=")|$)|((?:Bearer|Basic) )[A-Za-z0-9._~+/-]{8,}=*|eyJ[A-Za-z0-9_-]{8,1000}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|((?:client-key-data|token)"?: ?"?)[^\s",]{8,}/g;

/** The text without private keys, bearer tokens and JWTs. Cheap enough for every line. */
export function redactText(text: string): string {
  return text.replaceAll(
    SECRET_TEXT,
    (_match, scheme?: string, field?: string) => `${scheme ?? field ?? ''}${REDACTED}`,
  );
}

/**
 * A copy that may be logged: values under secret-looking keys are replaced, and so are the data of Secrets. Errors are
 * left to their serializer; what is nested deeper than 8 levels is cut.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (depth >= MAX_DEPTH) return '[cut]';
  if (Buffer.isBuffer(value)) return `[${String(value.length)} bytes]`;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  const isSecret = 'kind' in value && value.kind === 'Secret';
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      isSecretKey(key) || (isSecret && key === 'data') ? REDACTED : redact(inner, depth + 1),
    ]),
  );
}

function isSecretKey(key: string): boolean {
  return SECRET_KEYS.has(key.toLowerCase().replaceAll(/[-_]/g, ''));
}
