import type { Logger } from 'pino';
import type { CacheAccount } from './cache-account.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import type { Initial } from './initial-events.ts';
import { keyOf, type KubeObject } from './object.ts';
import type { Outcome } from './object-store.ts';
import { misshapen, type Resource } from './resource.ts';
import { UnusableObjects } from './unusable-objects.ts';

/** Where a reflector puts what it learns. `transform` returns undefined for an object that it cannot take. */
export interface ReflectorSink<T extends KubeObject> {
  readonly size: number;
  values(): Iterable<KubeObject>;
  /** What is cached of this very object in this very version. */
  same?(raw: KubeObject): T | undefined;
  transform(raw: KubeObject): T | undefined;
  put(object: T): Outcome;
  delete(object: KubeObject): Outcome;
  /** Returns how many objects differed. */
  replace(listed: ReadonlyMap<string, T | undefined>): number;
}

export interface ReflectorIntakeOptions<T extends KubeObject> {
  cluster: string;
  resource: Resource;
  sink: ReflectorSink<T>;
  account: CacheAccount | undefined;
  logger?: Logger | undefined;
  metrics?: InformerMetrics | undefined;
}

/** The way of objects into a sink, one by one or as a list: what is no valid object, and what there is no room for, stays outside. */
export class ReflectorIntake<T extends KubeObject> implements Initial {
  readonly #o: ReflectorIntakeOptions<T>;
  readonly #labels: { cluster: string; resource: string };
  readonly #unusable: UnusableObjects;
  /**
   * The list that is being read; one at a time. Emptied together with what is reserved for it: errors, and requests that are
   * not quite over, hold on to whoever was to take the list for as long as the next one is waited for.
   */
  readonly #listed = new Map<string, T | undefined>();
  /** Of the account, for {@link #listed}. */
  #reserved = 0;

  constructor(options: ReflectorIntakeOptions<T>) {
    const { cluster, resource, account } = options;
    this.#o = options;
    this.#labels = { cluster, resource: resource.plural };
    this.#unusable = new UnusableObjects(resource.plural, account);
  }

  /** What is left out because it is no valid object, in words for people; undefined while nothing is. */
  get leftOut(): string | undefined {
    return this.#unusable.words;
  }

  /** @throws LimitError when there is no room for it. */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', raw: KubeObject): Outcome | 'unusable' {
    const { sink, account } = this.#o;
    if (type === 'DELETED') {
      this.#unusable.remove(keyOf(raw));
      return sink.delete(raw);
    }
    const object = this.#transform(raw);
    if (object === undefined) return 'unusable';
    if (sink.same !== undefined) account?.check(keyOf(raw), object);
    return sink.put(object);
  }

  /** Into the list that is being read. What is cached already takes no more room, and need not be looked at again. @throws LimitError */
  list(raw: KubeObject): void {
    const { sink, account } = this.#o;
    const same = sink.same?.(raw);
    const object = same ?? this.#transform(raw);
    const key = keyOf(raw);
    if (account !== undefined) this.#reserved += account.reserve(key, same === undefined ? object : undefined);
    this.#listed.set(key, object);
  }

  unlist(raw: KubeObject): void {
    this.#listed.delete(keyOf(raw));
  }

  /** The list has nothing, though something is known. */
  get isListSuspect(): boolean {
    return this.#listed.size === 0 && this.#o.sink.size > 0;
  }

  get isListEmpty(): boolean {
    return this.#listed.size === 0;
  }

  /** The list is all that there is. Returns how many objects differed. */
  acceptList(): number {
    this.#giveBack();
    const differences = this.#o.sink.replace(this.#listed);
    this.#unusable.keep(this.#listed);
    this.#listed.clear();
    return differences;
  }

  /** The list comes to nothing, or another one begins. */
  dropList(): void {
    this.#listed.clear();
    this.#giveBack();
  }

  #giveBack(): void {
    this.#o.account?.release(this.#reserved);
    this.#reserved = 0;
  }

  /** Everything that gets into the sink passes here once; undefined for what cannot be used. */
  #transform(raw: KubeObject): T | undefined {
    const { resource, sink, metrics, logger } = this.#o;
    const problem = misshapen(resource, raw);
    if (problem === undefined) {
      if (this.#unusable.size > 0) this.#unusable.remove(keyOf(raw));
      return sink.transform(raw);
    }
    const news = this.#unusable.add(keyOf(raw), problem);
    if (news !== 'known') metrics?.unusable.inc(this.#labels);
    if (news === 'telling') logger?.warn(this.#labels, this.leftOut);
    return undefined;
  }
}
