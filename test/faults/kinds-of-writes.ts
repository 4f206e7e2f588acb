import type { ProxiedRequest } from '../fixtures/fault-proxy.ts';

/** Of every graceful move: released, made in its place, told to be Ready, evicted, ended there, ended here. */
export const OF_A_MOVE: readonly string[] = [
  'PATCH pods (host)',
  'POST pods (west)',
  'PATCH pods/status (host)',
  'POST pods/eviction (host)',
  'DELETE pods (east)',
  'DELETE pods (host)',
];

/** It tells of pods and of policies, or is there before the first copy: no move goes on by it. */
const BESIDE =
  /^\w+ (?:(?:events|workloadplacements|workloadplacements\/status|placementpolicies\/status) \(host\)|namespaces )/;

/** Requests that came to the proxies, by the name of theirs. */
export type Seen = Readonly<Record<string, readonly ProxiedRequest[]>>;

/** Of a namespace, of what is called like it, or namespaces themselves, which the first copy brings with it. */
export function isWriteOf(namespace: string): (request: ProxiedRequest) => boolean {
  const own = new RegExp(`/namespaces/${namespace}(/|$)|/workloadrebalancers/${namespace}(/|$)`);
  return ({ method, path }) =>
    method !== 'GET' && (own.test(path) || (method === 'POST' && path === '/api/v1/namespaces'));
}

/** Like `POST pods/eviction (host)`. */
export function writeInWords(side: string, { method, path }: ProxiedRequest): string {
  const parts = path.replace(/^\/(api|apis\/[^/]+)\/[^/]+\//, '').split('/');
  const [resource = '', , sub] = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts;
  return `${method} ${resource}${sub === undefined ? '' : `/${sub}`} (${side})`;
}

/** Kinds of writes of a move that nobody named, so that the program was never killed at one. */
export function unnamedWrites(seen: Seen, namespace: string, named: readonly string[]): string[] {
  const isOwn = isWriteOf(namespace);
  const kinds = Object.entries(seen).flatMap(([side, requests]) =>
    requests.filter(isOwn).map((request) => writeInWords(side, request)),
  );
  const known = new Set([...OF_A_MOVE, ...named]);
  return [...new Set(kinds)].filter((kind) => !known.has(kind) && !BESIDE.test(kind)).toSorted();
}
