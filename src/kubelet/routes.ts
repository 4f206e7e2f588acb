import { isDnsLabel } from '../kube/dns-label.ts';
import { Query } from './query.ts';

/** A pod as a kubelet path names it: always in the host's terms. */
export interface PodAddress {
  readonly namespace: string;
  readonly name: string;
  /** Only in the long forms of the path; the pod must then be that very one. */
  readonly uid?: string;
}

export type StreamRoute =
  | { readonly kind: 'exec' | 'attach'; readonly pod: PodAddress; readonly container: string; readonly query: Query }
  | { readonly kind: 'portForward'; readonly pod: PodAddress; readonly query: Query };

export interface LogsRoute {
  readonly kind: 'containerLogs';
  readonly pod: PodAddress;
  readonly container: string;
  readonly query: Query;
}

export interface PlainRoute {
  readonly kind: 'pods' | 'runningpods' | 'healthz' | 'metrics' | 'metrics/resource' | 'metrics/cadvisor';
}

export interface SummaryRoute {
  readonly kind: 'stats/summary';
  readonly query: Query;
}

/** No route: what to answer once the caller is known and may know it. */
export interface NoRoute {
  readonly kind: 'notFound' | 'methodNotAllowed' | 'badRequest';
  readonly message: string;
}

export interface ParsedRequest {
  readonly route: StreamRoute | LogsRoute | PlainRoute | SummaryRoute | NoRoute;
  /** The path's first segment, which decides the rights that are asked for; '' when the path could not be read. */
  readonly root: string;
}

const SUBDOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const UID = /^[A-Za-z0-9-]{1,64}$/;
/** After decoding, no segment of any path served here holds anything else; `/`, `\`, `%`, NUL and line ends cannot pass. */
const SEGMENT = /^[A-Za-z0-9._~-]+$/;

const METRICS = ['metrics', 'metrics/resource', 'metrics/cadvisor'] as const;
const GET = ['GET'];
const GET_OR_POST = ['GET', 'POST'];

/**
 * Reads a kubelet request line. Pure and total: every input gives a route or the reason why it is none. The path is
 * decoded exactly once, segment by segment, after it was split, so an encoded slash or dot can never move a boundary.
 */
export function parseRequest(method: string, rawUrl: string): ParsedRequest {
  const question = rawUrl.indexOf('?');
  const segments = splitPath(question < 0 ? rawUrl : rawUrl.slice(0, question));
  if (segments === undefined) {
    return refuse('', 'badRequest', 'the path is malformed');
  }
  const query = Query.parse(question < 0 ? '' : rawUrl.slice(question + 1));
  const root = segments[0] ?? '';
  if (query === undefined) {
    return refuse(root, 'badRequest', 'the query is malformed');
  }
  switch (root) {
    case 'pods':
    case 'runningpods':
      return segments.length === 1 ? allow(method, GET, root, { kind: root }) : unknownPath(root);
    case 'metrics': {
      const kind = METRICS.find((path) => path === segments.join('/'));
      return kind === undefined ? unknownPath(root) : allow(method, GET, root, { kind });
    }
    case 'stats':
      return segments.length === 2 && segments[1] === 'summary'
        ? allow(method, GET, root, { kind: 'stats/summary', query })
        : unknownPath(root);
    case 'healthz': {
      const known = segments.length === 1 || (segments.length === 2 && segments[1] === 'ping');
      return known ? allow(method, GET, root, { kind: root }) : unknownPath(root);
    }
    case 'containerLogs': {
      const [, namespace, name, container] = segments;
      if (segments.length !== 4 || namespace === undefined || name === undefined || container === undefined) {
        return unknownPath(root);
      }
      const pod = { namespace, name };
      return refuseNames(root, pod, container) ?? allow(method, GET, root, { kind: root, pod, container, query });
    }
    case 'exec':
    case 'attach': {
      const [, namespace, name] = segments;
      const container = segments.at(-1);
      const uid = segments.length === 5 ? segments[3] : undefined;
      if (segments.length < 4 || segments.length > 5) {
        return unknownPath(root);
      }
      if (namespace === undefined || name === undefined || container === undefined) {
        return unknownPath(root);
      }
      const pod = podAddress(namespace, name, uid);
      return (
        refuseNames(root, pod, container) ?? allow(method, GET_OR_POST, root, { kind: root, pod, container, query })
      );
    }
    case 'portForward': {
      const [, namespace, name, uid] = segments;
      if (segments.length > 4 || namespace === undefined || name === undefined) {
        return unknownPath(root);
      }
      const pod = podAddress(namespace, name, uid);
      return refuseNames(root, pod) ?? allow(method, GET_OR_POST, root, { kind: root, pod, query });
    }
    default:
      return unknownPath(root);
  }
}

/** Undefined when the path is not absolute, has an empty or dotted segment, or hides anything behind an escape. */
function splitPath(rawPath: string): string[] | undefined {
  if (!rawPath.startsWith('/')) {
    return undefined;
  }
  const raw = rawPath.slice(1).split('/');
  if (raw.length > 1 && raw.at(-1) === '') {
    raw.pop();
  }
  if (raw.length === 1 && raw[0] === '') {
    return [];
  }
  const segments: string[] = [];
  for (const part of raw) {
    const segment = decodeSegment(part);
    if (segment === undefined || !SEGMENT.test(segment) || segment === '.' || segment === '..') {
      return undefined;
    }
    segments.push(segment);
  }
  return segments;
}

function decodeSegment(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

function podAddress(namespace: string, name: string, uid: string | undefined): PodAddress {
  return uid === undefined ? { namespace, name } : { namespace, name, uid };
}

function refuseNames(root: string, pod: PodAddress, container?: string): ParsedRequest | undefined {
  if (!isDnsLabel(pod.namespace)) {
    return refuse(root, 'badRequest', 'the namespace in the path is no DNS label');
  }
  if (pod.name.length > 253 || !SUBDOMAIN.test(pod.name)) {
    return refuse(root, 'badRequest', 'the pod name in the path is no DNS subdomain');
  }
  if (pod.uid !== undefined && !UID.test(pod.uid)) {
    return refuse(root, 'badRequest', 'the pod UID in the path is malformed');
  }
  if (container !== undefined && !isDnsLabel(container)) {
    return refuse(root, 'badRequest', 'the container name in the path is no DNS label');
  }
  return undefined;
}

function allow(method: string, methods: readonly string[], root: string, route: ParsedRequest['route']): ParsedRequest {
  return methods.includes(method)
    ? { root, route }
    : refuse(root, 'methodNotAllowed', `only ${methods.join(' and ')} are served here`);
}

function unknownPath(root: string): ParsedRequest {
  return refuse(root, 'notFound', '404 page not found');
}

function refuse(root: string, kind: NoRoute['kind'], message: string): ParsedRequest {
  return { root, route: { kind, message } };
}
