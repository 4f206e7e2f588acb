import type { JsonObject } from '../../src/kube/json-equal.ts';
import { MemoryApi, type MemoryRequest } from '../fixtures/memory-api.ts';
import { Refusal } from '../fixtures/memory-api/refusal.ts';
import type { EventLoop } from './event-loop.ts';
import type { Endpoint, Line } from './network.ts';
import { answerText } from './object-text.ts';
import type { Call } from './sim-pool.ts';
import { WatchStream } from './watch-stream.ts';
import { Watches } from './watches.ts';

export type SimObject = JsonObject & {
  metadata: JsonObject & {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
    finalizers?: string[];
    ownerReferences?: { kind: string; name: string; uid: string; controller?: boolean }[];
  };
};

/** One change of one object, with who made it. */
export interface Change {
  readonly at: number;
  readonly cluster: SimCluster;
  readonly version: number;
  readonly path: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: SimObject;
  readonly previous: SimObject | undefined;
  /** An actor, or the process of the program whose request it was. */
  readonly by: string;
}

/** An API server with its storage, as the program meets it over the network and actors without one. */
export class SimCluster implements Endpoint {
  readonly name: string;
  readonly origin: string;
  readonly api: MemoryApi;
  readonly watches = new Watches();
  readonly loop: EventLoop;
  onChange: ((change: Change) => void) | undefined;
  /** Told of each write of the program that is taken, and stores nothing. */
  onVainWrite: ((call: Call) => void) | undefined;
  /** Another one with every life of a cluster of that name. */
  generation = 1;
  /** What it stores of what is sent to a path, where that is less than all: it is older than who sends it. */
  reads: ((path: string, body: JsonObject | undefined) => JsonObject | undefined) | undefined;
  #lie: ((object: SimObject) => boolean) | undefined;
  #uids = 0;
  #by = 'setup';

  constructor(name: string, loop: EventLoop) {
    this.name = name;
    this.origin = `https://${name}:6443`;
    this.loop = loop;
    this.api = new MemoryApi({ strict: true, uid: () => this.#uid() });
    this.api.listeners.add(() => this.#changed());
  }

  take(call: Call, line: Line): void {
    const { path, query } = call;
    const { method, body, headers } = call.outgoing;
    const contentTypeAt = headers.indexOf('content-type');
    const request: MemoryRequest = {
      method,
      path,
      query: readQuery(query),
      body: body === null ? undefined : JSON.parse(String(body)),
      contentType: contentTypeAt < 0 ? '' : (headers[contentTypeAt + 1] ?? ''),
    };
    if (method === 'GET' && (request.query['watch'] === 'true' || request.query['watch'] === '1')) {
      WatchStream.open(this, request, call, line);
      return;
    }
    const { version } = this.api;
    try {
      const answer = answerText(this.ask(call.owner?.name ?? '?', request));
      if (method !== 'GET' && this.api.version === version && request.query['dryRun'] === undefined)
        this.onVainWrite?.(call);
      line.whole(200, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      line.whole(error.code, JSON.stringify(error.status));
    }
  }

  /** @throws Refusal */
  ask(by: string, request: MemoryRequest): JsonObject {
    this.#by = by;
    try {
      return this.#answer(request);
    } finally {
      this.#by = '?';
    }
  }

  get(path: string): SimObject | undefined {
    return this.api.objects.get(path);
  }

  /** Objects of a kind in all namespaces, or of one path. */
  list(collection: string): readonly SimObject[] {
    return this.api.objects.valuesIn(collection);
  }

  /** For actors, who take a refusal for an answer: undefined then. */
  create(by: string, path: string, body: JsonObject): JsonObject | undefined {
    return this.#try(by, { method: 'POST', path, query: {}, body, contentType: 'application/json' });
  }

  /** A merge patch. */
  patch(by: string, path: string, body: JsonObject): JsonObject | undefined {
    return this.#try(by, { method: 'PATCH', path, query: {}, body, contentType: 'application/merge-patch+json' });
  }

  /** `body`: the whole object, as it was read and edited. */
  replace(by: string, path: string, body: JsonObject): JsonObject | undefined {
    return this.#try(by, { method: 'PUT', path, query: {}, body, contentType: 'application/json' });
  }

  remove(by: string, path: string, options: JsonObject = {}): JsonObject | undefined {
    return this.#try(by, { method: 'DELETE', path, query: {}, body: options, contentType: 'application/json' });
  }

  #try(by: string, request: MemoryRequest): JsonObject | undefined {
    try {
      return this.ask(by, request);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return undefined;
    }
  }

  /** One thing that a controller-manager does about what has lost its owner. Returns whether there was one. */
  collectGarbage(choose: (count: number) => number): boolean {
    this.#by = 'gc';
    try {
      return this.api.collectGarbage(choose);
    } finally {
      this.#by = '?';
    }
  }

  /** What lists lack at the moment, as those of a broken cache do; undefined: they are true. */
  get lie(): ((object: SimObject) => boolean) | undefined {
    return this.#lie;
  }

  /** Everybody has to list anew, and is told less than there is. */
  beginLying(isHidden: (object: SimObject) => boolean): void {
    this.#lie = isHidden;
    this.#forget();
  }

  /** Everybody has to list anew: what a list lacked no watch would ever tell. */
  endLying(isHidden: ((object: SimObject) => boolean) | undefined): void {
    if (isHidden === undefined || this.#lie !== isHidden) return;
    this.#lie = undefined;
    this.#forget();
  }

  #forget(): void {
    // Who has no watch at the moment must not go on from the last version either.
    const path = '/api/v1/namespaces/kube-system';
    const some = this.get(path);
    if (some !== undefined) this.api.put(path, some);
    this.api.compact();
    for (const watch of this.watches) watch.expire();
  }

  /** All that is in it, for {@link restore}. */
  saved(): ReadonlyMap<string, SimObject> {
    return new Map(this.api.objects);
  }

  /** As etcd is restored from a backup, with versions that go on from the last one: who watched has to list anew. */
  restore(saved: ReadonlyMap<string, SimObject>): void {
    this.#by = 'restore';
    for (const path of this.api.objects.keys()) if (!saved.has(path)) this.api.delete(path);
    for (const [path, object] of saved) if (this.get(path) !== object) this.api.put(path, object);
    this.#by = '?';
    this.#forget();
  }

  /** Its owner begins anew with the same machines: it is another cluster from now on. */
  wipe(): void {
    this.#by = 'wipe';
    for (const path of this.api.objects.keys()) if (!path.startsWith('/api/v1/nodes/')) this.api.delete(path);
    this.#by = 'setup';
    for (const name of ['kube-system', 'default']) {
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      this.create('setup', '/api/v1/namespaces', body);
    }
    this.#by = '?';
    this.#forget();
  }

  /** Breaks all watches. */
  cutWatches(): void {
    for (const watch of this.watches) watch.reset();
  }

  #answer(request: MemoryRequest): JsonObject {
    const { method, path, query } = request;
    if (path === '/version') return { gitVersion: 'v1.36.0', major: '1', minor: '36' };
    const answer = this.api.handle(
      this.reads === undefined
        ? request
        : { ...request, body: this.reads(path, request.body as JsonObject | undefined) },
    );
    const { lie } = this;
    const { items } = answer;
    if (lie === undefined || method !== 'GET' || !Array.isArray(items)) return answer;
    // The smallest list tells the version, and what is asked for by name counts as a look past all caches.
    const isTrue = query['limit'] === '1' || query['fieldSelector']?.includes('metadata.name=') === true;
    return isTrue ? answer : { ...answer, items: items.filter((item) => !lie(item as SimObject)) };
  }

  #uid(): string {
    this.#uids += 1;
    const cluster = this.name.padEnd(8, '0').slice(0, 8);
    return `${cluster}-${String(this.generation).padStart(4, '0')}-4000-8000-${String(this.#uids).padStart(12, '0')}`;
  }

  #changed(): void {
    const entry = this.api.history.at(-1);
    if (entry === undefined) return;
    const { version, path, event, previous } = entry;
    const change: Change = {
      at: this.loop.now,
      cluster: this,
      version,
      path,
      type: event.type,
      object: event.object,
      previous: previous,
      by: this.#by,
    };
    for (const collection of new Set(entry.collections))
      for (const watch of this.watches.of(collection)) watch.wake(entry);
    this.onChange?.(change);
  }
}

/** Most ask the same in the same way; what a watch says of its version and its time comes but once. */
const queries = new Map<string, Record<string, string>>([['', Object.freeze({})]]);
const MOST_QUERIES = 10_000;
const ONLY_ONCE = /&(timeoutSeconds=\d+(?:&resourceVersion=\d+)?)$/;

function readQuery(query: string): Record<string, string> {
  const once = ONLY_ONCE.exec(query);
  if (once === null) return readWhole(query);
  const usual = readWhole(query.slice(0, once.index));
  const [seconds = '', version] = (once[1] ?? '').split('&').map((part) => part.slice(part.indexOf('=') + 1));
  return { ...usual, timeoutSeconds: seconds, ...(version === undefined ? {} : { resourceVersion: version }) };
}

function readWhole(query: string): Record<string, string> {
  const known = queries.get(query) ?? Object.freeze(Object.fromEntries(new URLSearchParams(query)));
  if (queries.size < MOST_QUERIES && !query.includes('resourceVersion=')) queries.set(query, known);
  return known;
}
