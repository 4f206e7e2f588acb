import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import { childSignal, type ChildSignal } from '../../kube/child-signal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeError, isForbidden } from '../../kube/errors.ts';
import type { InformerMetrics } from '../../kube/informer-metrics.ts';
import { acceptOf } from '../../kube/metadata-only.ts';
import type { KubeObject } from '../../kube/object.ts';
import { Reflector } from '../../kube/reflector.ts';
import { EVENTS, resourcePath } from '../../kube/resource.ts';
import { pause } from '../../kube/timers.ts';
import { eventProjection, type MemberEvent } from './member-event.ts';

/** A namespace that lost its last pod is watched for so much longer: what was said about that pod may still come. */
const LINGER_MS = 30_000;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 30_000;
/** How often a watch over all namespaces that fails is looked at, and how often one is tried where it was forbidden. */
const FAILING_CHECK_MS = 60_000;
const FORBIDDEN_CHECK_MS = 600_000;

/** The namespaces of the member that our pods are in. */
export interface UsedNamespaces {
  /** Calls back for each that is used now, and for changes. Returns how to stop that. */
  on(handler: { used(namespace: string): void; unused(namespace: string): void }): () => void;
}

/** Events about one kind of object. */
export interface FollowedKind {
  namespaces: UsedNamespaces;
  /** The field selector of what may be worth keeping, as it is now. */
  selector: () => string;
}

export interface EventWatchOptions {
  client: KubeClient;
  kinds: readonly FollowedKind[];
  /** Whether to keep an Event at all, before it is. */
  wanted: (event: MemberEvent) => boolean;
  /** `listed`: it was there before; else it has just happened. */
  take: (event: MemberEvent, listed: boolean) => void;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

/** Stands in for an Event that nobody wants, so that lists of many thousands take no room. */
const UNWANTED: KubeObject = { metadata: { name: '' } };

/**
 * Follows the Events about pods and claims of a member: all at once, or, where the credentials may not do that, one namespace of
 * ours at a time. Nothing is cached.
 */
export class EventWatch {
  readonly #o: EventWatchOptions;
  #round: Pick<ChildSignal, 'abort'> = new AbortController();

  constructor(options: EventWatchOptions) {
    this.#o = options;
  }

  /** Begins anew, with what the selector is now. */
  restart(): void {
    this.#round.abort();
  }

  /** Follows until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    setMaxListeners(0, signal);
    while (!signal.aborted) {
      const own = childSignal(signal);
      this.#round = own;
      const round = own.signal;
      const all = await this.#mayListAll(round);
      if (all === undefined) {
        own.release();
        continue;
      }
      this.#o.logger.debug(all ? 'following Events of all namespaces' : 'following Events of used namespaces');
      const { kinds } = this.#o;
      const reflectors = all ? kinds.map((kind) => this.#reflector(kind, undefined)) : [];
      const following = all
        ? reflectors.map(async (reflector) => await reflector.run(round))
        : kinds.map(async (kind) => await this.#followUsed(kind, round));
      await this.#untilRightsChange(all, () => reflectors.some(({ trouble }) => trouble.problem !== undefined), round);
      own.abort();
      await Promise.all(following);
      own.release();
    }
  }

  /** Until the signal, until following all at once turns out to be forbidden, or until it may be done. */
  async #untilRightsChange(all: boolean, fails: () => boolean, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(all ? FAILING_CHECK_MS : FORBIDDEN_CHECK_MS, signal);
      if (signal.aborted || (all && !fails())) continue;
      if ((await this.#mayListAll(signal)) === !all) return;
    }
  }

  /** Asks until there is an answer; undefined when stopped meanwhile. */
  async #mayListAll(signal: AbortSignal): Promise<boolean | undefined> {
    for (let delay = FIRST_RETRY_MS; ; delay = Math.min(LAST_RETRY_MS, delay * 2)) {
      try {
        const what = { ...acceptOf(EVENTS, 'list'), path: resourcePath(EVENTS), query: { limit: 1 } };
        await this.#o.client.request({ ...what, retry: false, signal });
        return true;
      } catch (error) {
        if (signal.aborted) return undefined;
        if (isForbidden(error)) return false;
        this.#o.logger.debug(`Events cannot be read yet: ${describeError(error)}`);
      }
      await pause(delay, signal);
    }
  }

  /** Until the signal. */
  async #followUsed(kind: FollowedKind, signal: AbortSignal): Promise<void> {
    const following = new Map<string, { stop: ChildSignal; linger: NodeJS.Timeout | undefined }>();
    const running = new Set<Promise<void>>();
    const used = (namespace: string): void => {
      const known = following.get(namespace);
      if (known !== undefined) {
        clearTimeout(known.linger);
        known.linger = undefined;
        return;
      }
      const own = childSignal(signal);
      following.set(namespace, { stop: own, linger: undefined });
      const run = this.#reflector(kind, namespace)
        .run(own.signal)
        .finally(() => {
          own.release();
          running.delete(run);
        });
      running.add(run);
    };
    const unused = (namespace: string): void => {
      const known = following.get(namespace);
      if (known === undefined) return;
      known.linger ??= setTimeout(() => {
        following.delete(namespace);
        known.stop.abort();
      }, LINGER_MS);
    };
    const off = kind.namespaces.on({ used, unused });
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    off();
    for (const { linger } of following.values()) clearTimeout(linger);
    await Promise.all(running);
  }

  #reflector({ selector }: FollowedKind, namespace: string | undefined): Reflector<KubeObject> {
    const { client, wanted, take, logger, metrics } = this.#o;
    const keep = (event: KubeObject | undefined, listed: boolean): void => {
      if (event !== undefined && event !== UNWANTED) take(event as MemberEvent, listed);
    };
    return new Reflector({
      client,
      resource: EVENTS,
      namespace,
      fieldSelector: selector(),
      logger,
      metrics,
      sink: {
        // Nothing is kept, so no list can lack anything.
        size: 0,
        values: () => [],
        transform: (raw) => {
          const event = raw as MemberEvent;
          return wanted(event) ? eventProjection(event) : UNWANTED;
        },
        put: (event) => {
          keep(event, false);
          return 'applied';
        },
        delete: () => 'applied',
        replace: (listed) => {
          for (const event of listed.values()) keep(event, true);
          return 0;
        },
      },
    });
  }
}
