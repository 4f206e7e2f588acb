import { malformed, type Where } from './response-body.ts';
import { cleanText } from './clean-text.ts';
import type { KubeObject } from './object.ts';
import { apiVersionOf, type Resource } from './resource.ts';

/** The longest name that Kubernetes allows; a namespace's is shorter. */
const LONGEST_NAME = 253;
/** Of a token for the next page; it becomes a part of a URL. Those of Kubernetes are a few hundred characters. */
const LONGEST_TOKEN = 16 * 1024;

export interface ListPage {
  items: KubeObject[];
  resourceVersion: string;
  /** Token of the next page; '' at the end. */
  next: string;
}

/**
 * A list answer that can be trusted to be one, else TransportError `malformed`: the right kind, a resourceVersion,
 * items that are objects with a name. `{}`, another kind's list or a Status with code 200 never pass for an empty list.
 * Items get the apiVersion and kind that lists leave out, so that they look like the objects a watch delivers.
 */
export function readListPage(where: Where, resource: Resource, raw: unknown): ListPage {
  const list = asRecord(raw);
  const metadata = asRecord(list?.['metadata']);
  if (list === undefined || metadata === undefined) {
    throw malformed(where, 'it is not a list');
  }
  if (list['kind'] !== `${resource.kind}List`) {
    throw malformed(where, `it is not a ${resource.kind}List`);
  }
  const resourceVersion = metadata['resourceVersion'];
  if (typeof resourceVersion !== 'string' || resourceVersion === '' || resourceVersion === '0') {
    throw malformed(where, 'the list has no resourceVersion');
  }
  // Go writes a nil slice as null, which some aggregated servers do for an empty list.
  const items = list['items'] === null ? [] : list['items'];
  if (!Array.isArray(items)) {
    throw malformed(where, 'the list has no items');
  }
  const apiVersion = apiVersionOf(resource);
  for (const item of items) {
    const object = checkObject(where, resource, item);
    object.apiVersion ??= apiVersion;
    object.kind ??= resource.kind;
  }
  const next = typeof metadata['continue'] === 'string' ? metadata['continue'] : '';
  if (next.length > LONGEST_TOKEN) throw malformed(where, 'the token of its next page is endless');
  return { items: items as KubeObject[], resourceVersion, next };
}

/**
 * An object of the kind with a name, else TransportError `malformed`. Everything that etcd keeps has a UID too;
 * computed kinds such as metrics have none.
 */
export function checkObject(where: Where, resource: Resource, raw: unknown): KubeObject {
  const object = asRecord(raw);
  const metadata = asRecord(object?.['metadata']);
  if (object === undefined || metadata === undefined) {
    throw malformed(where, `it is not a ${resource.kind}`);
  }
  const kind = object['kind'];
  if (kind !== undefined && kind !== resource.kind) {
    throw malformed(where, `it is not a ${resource.kind}`);
  }
  const { name, namespace } = metadata;
  if (!isSegment(name)) {
    throw malformed(where, `a ${resource.kind} has no name`);
  }
  if (namespace !== undefined && !(resource.namespaced && isSegment(namespace))) {
    throw malformed(where, `the namespace of ${resource.kind} ${cleanText(name, LONGEST_NAME)} is none`);
  }
  return raw as KubeObject;
}

/** Fit for a key of caches and queues: two objects can never get the same one. */
function isSegment(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST_NAME && !value.includes('/');
}

function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}
