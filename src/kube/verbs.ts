import { malformed, type Where } from './response-body.ts';
import { cleanText } from './clean-text.ts';
import type { KubeClient } from './client.ts';
import { isGone } from './errors.ts';
import { checkObject } from './list-page.ts';
import { readPages, type Selection } from './list-pages.ts';
import { acceptOf } from './metadata-only.ts';
import { recordOf } from './json-fields.ts';
import type { KubeObject } from './object.ts';
import type { Query } from './request.ts';
import { misshapen, PODS, resourcePath, type Resource } from './resource.ts';
import { asStatus } from './status.ts';

export interface ObjectRef {
  namespace?: string | undefined;
  name: string;
}

export interface VerbOptions {
  signal?: AbortSignal | undefined;
  /** Milliseconds; default 30,000. */
  deadlineMs?: number;
  /** See KubeRequest.retry. */
  retry?: boolean | undefined;
  query?: Query;
}

export interface WriteOptions extends VerbOptions {
  /** The API server judges the write and stores nothing. */
  dryRun?: boolean | undefined;
}

export interface ListOptions extends VerbOptions, Selection {
  /** Page size; default 500. */
  limit?: number;
  /** Leave out for the newest state (a quorum read); `0` for whatever the server's cache holds. */
  resourceVersion?: string;
}

/** A list consistent at `resourceVersion`. */
export interface ObjectList<T> {
  items: T[];
  resourceVersion: string;
}

/** Of what is said about an answer that cannot be used, in bytes. */
const LONGEST_PROBLEM = 300;

const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

export async function get<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  ref: ObjectRef,
  options: VerbOptions & { subresource?: string } = {},
): Promise<T> {
  const path = resourcePath(resource, ref.namespace, ref.name, options.subresource);
  const raw = await client.request({ ...common(options), ...acceptOf(resource, 'one'), path });
  const object = options.subresource === undefined ? checked(client, 'GET', path, resource, raw) : (raw as KubeObject);
  if (object.metadata?.name !== ref.name) {
    throw malformed({ cluster: client.cluster, method: 'GET', path }, `it is another object than ${ref.name}`);
  }
  return object as T;
}

/**
 * Every object of a collection, page by page, all pages at one resourceVersion. One that cannot be read fails the whole: without it
 * the list would say that there is none. When the server forgets that version
 * between two pages (410), the list starts again once.
 */
export async function list<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  options: ListOptions = {},
): Promise<ObjectList<T>> {
  try {
    return await listOnce(client, resource, options);
  } catch (e) {
    if (!isGone(e)) {
      throw e;
    }
    return listOnce(client, resource, options);
  }
}

async function listOnce<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  options: ListOptions,
): Promise<ObjectList<T>> {
  const items: T[] = [];
  const where = { cluster: client.cluster, method: 'GET', path: resourcePath(resource, options.namespace) };
  const resourceVersion = await readPages(client, resource, { ...options, request: common(options) }, (page) => {
    for (const item of page) {
      items.push(shaped(where, resource, item) as T);
    }
  });
  return { items, resourceVersion };
}

/**
 * The object of that name, or undefined when there is none, for accounts that may list and not get.
 * TransportError `malformed` when the server lists anything else.
 */
export async function find<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  { namespace, name }: ObjectRef,
  options: VerbOptions = {},
): Promise<T | undefined> {
  const where = { cluster: client.cluster, method: 'GET', path: resourcePath(resource, namespace) };
  const selection = { namespace, fieldSelector: `metadata.name=${name}` };
  let found: T | undefined;
  await readPages(client, resource, { ...selection, request: common(options) }, (page) => {
    for (const item of page) {
      const isIt = item.metadata.name === name && (namespace === undefined || item.metadata.namespace === namespace);
      if (!isIt || found !== undefined) throw malformed(where, `it lists others than ${name}`);
      found = shaped(where, resource, item) as T;
    }
  });
  return found;
}

/** Creates `object` in its own metadata.namespace. */
export async function create<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  object: T,
  options: WriteOptions & { fieldManager?: string } = {},
): Promise<T> {
  const path = resourcePath(resource, object.metadata.namespace);
  const raw = await client.request({
    ...common(options),
    ...acceptOf(resource, 'one'),
    method: 'POST',
    path,
    body: object,
    query: { ...writeQuery(options), fieldManager: options.fieldManager },
  });
  return checkedKind(client, 'POST', path, resource, raw) as T;
}

/** PUT: the object's metadata.resourceVersion is the optimistic lock. */
export async function replace<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  object: T,
  options: WriteOptions & { subresource?: string; fieldManager?: string } = {},
): Promise<T> {
  const { namespace, name } = object.metadata;
  const path = resourcePath(resource, namespace, name, options.subresource);
  const raw = await client.request({
    ...common(options),
    ...acceptOf(resource, 'one'),
    method: 'PUT',
    path,
    body: object,
    query: { ...writeQuery(options), fieldManager: options.fieldManager },
  });
  return checkedKind(client, 'PUT', path, resource, raw) as T;
}

/**
 * Deletes one object. `uid` and `resourceVersion` are preconditions: ApiError 409 when the object is another by now.
 * Resolves when the API server has accepted; finalizers and grace may keep the object for longer.
 */
export async function remove(
  client: KubeClient,
  resource: Resource,
  ref: ObjectRef,
  preconditions: {
    uid?: string | undefined;
    resourceVersion?: string | undefined;
    /** Seconds; 0 means now. */
    gracePeriodSeconds?: number | undefined;
    propagationPolicy?: 'Background' | 'Foreground' | 'Orphan' | undefined;
  } = {},
  options: WriteOptions = {},
): Promise<void> {
  const { uid, resourceVersion, gracePeriodSeconds, propagationPolicy } = preconditions;
  const path = resourcePath(resource, ref.namespace, ref.name);
  const raw = await client.request({
    ...common(options),
    ...acceptOf(resource, 'one'),
    method: 'DELETE',
    path,
    // Options in a body are all that counts of a DELETE: of such a request nobody reads the query.
    query: writeQuery(options),
    body: {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      dryRun: dryRunOf(options),
      gracePeriodSeconds,
      propagationPolicy,
      preconditions: uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion },
    },
  });
  if (asStatus(raw) === undefined) {
    checked(client, 'DELETE', path, resource, raw);
  }
}

/**
 * Evicts a pod: deletes it, unless a disruption budget is against it, and marks it as disrupted (condition DisruptionTarget).
 * Budgets do not protect pods that are Pending. `uid` and `resourceVersion` as with {@link remove}. Sent once: where the server says
 * when to come again (a budget whose controller is behind, too much to do), the caller has to look whether it is still wanted by then.
 */
export async function evict(
  client: KubeClient,
  ref: ObjectRef,
  preconditions: { uid?: string | undefined; resourceVersion?: string | undefined },
  options: WriteOptions = {},
): Promise<void> {
  const { namespace, name } = ref;
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { namespace, name },
    deleteOptions: { dryRun: dryRunOf(options), preconditions },
  };
  await client.request({
    ...common(options),
    retry: false,
    query: writeQuery(options),
    method: 'POST',
    path: resourcePath(PODS, namespace, name, 'eviction'),
    body,
  });
}

/**
 * Patches an object or a subresource. `apply` needs a fieldManager; `force` takes fields over from other managers.
 * Strategic merge is for built-in kinds only.
 */
export async function patch<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  ref: ObjectRef,
  body: unknown,
  how: { type: keyof typeof PATCH_TYPES; subresource?: string; fieldManager?: string; force?: boolean },
  options: WriteOptions = {},
): Promise<T> {
  const path = resourcePath(resource, ref.namespace, ref.name, how.subresource);
  const raw = await client.request({
    ...common(options),
    ...acceptOf(resource, 'one'),
    method: 'PATCH',
    path,
    body,
    contentType: PATCH_TYPES[how.type],
    query: { ...writeQuery(options), fieldManager: how.fieldManager, force: how.force },
  });
  return checkedKind(client, 'PATCH', path, resource, raw) as T;
}

function dryRunOf({ dryRun }: WriteOptions): ['All'] | undefined {
  return dryRun === true ? ['All'] : undefined;
}

function writeQuery(options: WriteOptions): Query {
  const { query = {}, dryRun } = options;
  return dryRun === true ? { ...query, dryRun: 'All' } : query;
}

function common(options: VerbOptions): {
  signal?: AbortSignal | undefined;
  deadlineMs?: number;
  retry?: boolean | undefined;
  query?: Query;
} {
  const { signal, deadlineMs, retry, query } = options;
  return {
    signal,
    retry,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(query === undefined ? {} : { query }),
  };
}

function checked(client: KubeClient, method: string, path: string, resource: Resource, raw: unknown): KubeObject {
  const where = { cluster: client.cluster, method, path };
  return shaped(where, resource, checkObject(where, resource, raw));
}

function shaped(where: Where, resource: Resource, object: KubeObject): KubeObject {
  const problem = misshapen(resource, object);
  if (problem === undefined) return object;
  throw malformed(where, cleanText(`of ${resource.kind} ${object.metadata.name}, ${problem}`, LONGEST_PROBLEM));
}

/** Reviews come back without a name, subresources as another kind: only the outline is checked. */
function checkedKind(client: KubeClient, method: string, path: string, resource: Resource, raw: unknown): KubeObject {
  const where = { cluster: client.cluster, method, path };
  const { metadata, kind } = recordOf(raw) ?? {};
  if (metadata === undefined || kind === undefined || kind === 'Status') {
    throw malformed(where, `it is not a ${resource.kind}`);
  }
  const object = raw as KubeObject;
  return kind === resource.kind ? shaped(where, resource, object) : object;
}
