import { malformed, type Where } from './response-body.ts';
import { ApiError, type TransportError } from './errors.ts';
import { checkObject } from './list-page.ts';
import type { KubeObject } from './object.ts';
import type { Resource } from './resource.ts';
import { asStatus } from './status.ts';

/** No UID and no resourceVersion is longer than this. */
const LONGEST_MARK = 128;

/** The object of an event or a list item: one of the kind, with a name and a UID, else TransportError `malformed`. */
export function checkIdentified(where: Where, resource: Resource, raw: unknown): KubeObject {
  const object = checkObject(where, resource, raw);
  const { name, uid, resourceVersion } = object.metadata;
  if (!isMark(uid) || uid === '') {
    throw malformed(where, `${resource.kind} ${name} has no uid`);
  }
  if (resourceVersion !== undefined && !isMark(resourceVersion)) {
    throw malformed(where, `${resource.kind} ${name} has no resourceVersion`);
  }
  return object;
}

/** The error that an ERROR event carries; 410 comes this way too. */
export function watchError(where: Where, object: unknown): ApiError | TransportError {
  const status = asStatus(object);
  return status === undefined
    ? malformed(where, 'a watch error that is no Status')
    : new ApiError({ ...where, code: status.code ?? 500, status });
}

/** The server objects to the request itself (400, 422 and the like), so the same one will never do. */
export function isRefusedRequest(error: unknown): error is ApiError {
  const about = new Set([401, 403, 404, 408, 410, 429]); // who asks, what exists, and when
  return error instanceof ApiError && error.code >= 400 && error.code < 500 && !about.has(error.code);
}

function metadataOf(object: unknown): Record<string, unknown> {
  const metadata = typeof object === 'object' && object !== null && 'metadata' in object ? object.metadata : undefined;
  return typeof metadata === 'object' && metadata !== null ? (metadata as Record<string, unknown>) : {};
}

/** An object's or bookmark's resourceVersion, '' when there is none. */
export function resourceVersionOf(object: unknown): string {
  const version = metadataOf(object)['resourceVersion'];
  return isMark(version) ? version : '';
}

/** The version of a streamed list, as the bookmark at its end says. */
export function listVersionOf(where: Where, bookmark: unknown): string {
  const version = resourceVersionOf(bookmark);
  if (version === '') throw malformed(where, 'the streamed list has no resourceVersion');
  return version;
}

function isMark(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_MARK;
}

/** KEP-3157: the bookmark that ends the initial events carries this annotation. */
export function hasInitialEventsEnd(object: unknown): boolean {
  const annotations = metadataOf(object)['annotations'];
  return (
    typeof annotations === 'object' &&
    annotations !== null &&
    'k8s.io/initial-events-end' in annotations &&
    annotations['k8s.io/initial-events-end'] === 'true'
  );
}
