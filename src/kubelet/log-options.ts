import type { Query } from './query.ts';

/** The query of a member's pods/log; values in the API server's own form. */
export type LogQuery = Record<string, string>;

export type LogOptions = { readonly query: LogQuery } | { readonly code: 400 | 422; readonly text: string };

const UNDECODABLE = { code: 400, text: '{"message": "Unable to decode query."}' } as const;
const INVALID = { code: 422, text: '{"message": "Invalid request."}' } as const;

/** RFC 3339, as Go's time.Parse takes it. */
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)$/;
const INT64 = /^[+-]?\d{1,19}$/;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/**
 * Reads the query of /containerLogs as the kubelet does (PodLogOptions v1 and its validation), with the kubelet's
 * status and text for what it refuses. `tailLines=0` is valid and means no earlier lines.
 */
export function logOptions(query: Query): LogOptions {
  const out: LogQuery = {};
  for (const name of ['follow', 'previous', 'timestamps']) {
    if (isOn(query, name)) {
      out[name] = 'true';
    }
  }
  const tail = query.first('tail') ?? '';
  for (const name of ['sinceSeconds', 'tailLines', 'limitBytes']) {
    const text = name === 'tailLines' && tail !== '' ? tail : query.first(name);
    if (name === 'tailLines' && tail === 'all') {
      continue;
    }
    if (text === undefined) {
      if (query.has(name)) {
        return UNDECODABLE;
      }
      continue;
    }
    const value = int64(text);
    if (value === undefined) {
      return UNDECODABLE;
    }
    if (value < (name === 'tailLines' ? 0n : 1n)) {
      return INVALID;
    }
    out[name] = String(value);
  }
  if (query.has('sinceTime')) {
    const text = query.first('sinceTime') ?? '';
    if (!RFC3339.test(text) || Number.isNaN(Date.parse(text.replace(',', '.')))) {
      return UNDECODABLE;
    }
    if (out['sinceSeconds'] !== undefined) {
      return INVALID;
    }
    out['sinceTime'] = text;
  }
  const stream = query.first('stream');
  if (stream !== undefined && stream !== 'All') {
    if (stream !== 'Stdout' && stream !== 'Stderr') {
      return INVALID;
    }
    if (out['tailLines'] !== undefined) {
      return INVALID;
    }
    // Members that cannot split streams refuse it; `All`, which needs no feature, is never sent.
    out['stream'] = stream;
  }
  return { query: out };
}

/** Kubernetes' query conversion: present and neither 0 nor false. */
function isOn(query: Query, name: string): boolean {
  if (!query.has(name)) {
    return false;
  }
  const text = query.first(name);
  return text !== '0' && text?.toLowerCase() !== 'false';
}

function int64(text: string): bigint | undefined {
  if (!INT64.test(text)) {
    return undefined;
  }
  const value = BigInt(text.replace(/^\+/, ''));
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}
