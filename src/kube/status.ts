/** What the API server says when it refuses (meta/v1 Status), as far as it is read here. */
export interface Status {
  kind: 'Status';
  apiVersion?: string;
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: StatusDetails;
}

export interface StatusDetails {
  retryAfterSeconds?: number;
  /** At most {@link MOST_CAUSES}. */
  causes?: { reason: string }[];
}

/** Kubernetes' own reasons are CamelCase words; nothing else is compared with one or shown as one. */
const REASON = /^[A-Za-z][A-Za-z0-9_,:]{0,127}$/;
/** A message is kept up to this many characters: what it is compared with comes early, and people read less. */
const LONGEST_MESSAGE = 16_384;
/** Of what is wrong, one by one, with an object that is refused. */
const MOST_CAUSES = 16;

/**
 * The Status in an answer, if it is one: fields of another type than theirs count as absent, whoever sent them. The message
 * stays as it came, so that what nobody may read can be found in it; whoever shows it cleans it (see clean-text.ts).
 */
export function asStatus(value: unknown): Status | undefined {
  if (!isRecord(value) || value['kind'] !== 'Status') return undefined;
  const { apiVersion, status, message, reason, code, details } = value;
  const read = isRecord(details) ? detailsOf(details) : {};
  return {
    kind: 'Status',
    ...(typeof apiVersion === 'string' ? { apiVersion: apiVersion.slice(0, 64) } : {}),
    ...(typeof status === 'string' ? { status: status.slice(0, 64) } : {}),
    ...(typeof message === 'string' ? { message: message.slice(0, LONGEST_MESSAGE) } : {}),
    ...(typeof reason === 'string' && REASON.test(reason) ? { reason } : {}),
    ...(isHttpStatus(code) ? { code } : {}),
    ...(Object.keys(read).length === 0 ? {} : { details: read }),
  };
}

function detailsOf({ retryAfterSeconds: seconds, causes }: Record<string, unknown>): StatusDetails {
  const reasons = (Array.isArray(causes) ? causes.slice(0, MOST_CAUSES) : []).flatMap((cause: unknown) => {
    const reason = isRecord(cause) ? cause['reason'] : undefined;
    return typeof reason === 'string' && REASON.test(reason) ? [{ reason }] : [];
  });
  return {
    ...(typeof seconds === 'number' ? { retryAfterSeconds: seconds } : {}),
    ...(reasons.length === 0 ? {} : { causes: reasons }),
  };
}

function isHttpStatus(code: unknown): code is number {
  return typeof code === 'number' && Number.isInteger(code) && code >= 100 && code < 600;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
