import { cleanText } from './clean-text.ts';
import { TransportError, type TransportErrorKind } from './errors.ts';

const BY_CODE: ReadonlyMap<string, TransportErrorKind> = new Map([
  ['ECONNREFUSED', 'refused'],
  ['EHOSTUNREACH', 'refused'],
  ['ENETUNREACH', 'refused'],
  ['EADDRNOTAVAIL', 'refused'],
  ['ENOTFOUND', 'dns'],
  ['EAI_AGAIN', 'dns'],
  ['EAI_FAIL', 'dns'],
  ['ETIMEDOUT', 'timeout'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
  ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
  ['UND_ERR_BODY_TIMEOUT', 'timeout'],
  ['UND_ERR_ABORTED', 'aborted'],
  ['ABORT_ERR', 'aborted'],
  ['EPROTO', 'tls'],
  ['ERR_PROXY', 'proxy'],
]);

/** OpenSSL's verification results, as Node names them, beside the ERR_TLS_ and ERR_SSL_ families. */
const TLS_CODE =
  /^ERR_(TLS|SSL|OSSL)_|^CERT_|^CRL_|SELF_SIGNED_CERT|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$|^HOSTNAME_MISMATCH$/;

/** Of the words of an error of the network, in bytes. */
const LONGEST_WORDS = 500;

/** Names what broke from the error that undici, net or tls gave. */
export function transportError(
  where: { cluster: string; method: string; path: string },
  cause: unknown,
): TransportError {
  if (cause instanceof TransportError) {
    return cause;
  }
  const root = rootCause(cause);
  const code = codeOf(root);
  const kind = kindOf(root, code);
  // A certificate's names, among others, are the server's own words.
  const words = cleanText(root instanceof Error ? root.message : String(root), LONGEST_WORDS);
  const detail = `${PHRASES[kind]}: ${words}${code !== '' && !words.includes(code) ? ` (${code})` : ''}`;
  return new TransportError({ ...where, kind, detail, cause });
}

const PHRASES: Record<TransportErrorKind, string> = {
  timeout: 'no answer in time',
  refused: 'the API server cannot be reached',
  reset: 'the connection broke',
  dns: "the API server's name cannot be resolved",
  tls: 'no trusted TLS connection',
  proxy: 'there is no way to the API server',
  aborted: 'the request was cancelled',
  malformed: 'the answer makes no sense',
};

function kindOf(error: unknown, code: string): TransportErrorKind {
  const known = BY_CODE.get(code);
  if (known !== undefined) {
    return known;
  }
  if (TLS_CODE.test(code)) {
    return 'tls';
  }
  if (code.startsWith('HPE_') || code.startsWith('UND_ERR_RES_')) {
    return 'malformed';
  }
  return error instanceof Error && error.name === 'AbortError' ? 'aborted' : 'reset';
}

/** Dialling several addresses fails with an AggregateError; its first member says as much as all of them. */
export function rootCause(error: unknown): unknown {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return rootCause(error.errors[0]);
  }
  if (error instanceof Error && codeOf(error) === '' && error.cause instanceof Error) {
    return rootCause(error.cause);
  }
  return error;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
