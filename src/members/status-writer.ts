import type { Logger } from 'pino';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isNotFound } from '../kube/errors.ts';
import { fieldsOf, without } from '../kube/json-fields.ts';
import { mergePatch } from '../kube/merge-patch.ts';
import type { KubeObject } from '../kube/object.ts';
import { isOlder } from '../kube/resource-version.ts';
import { pause } from '../kube/timers.ts';
import { patch } from '../kube/verbs.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';

/** Least time between two writes, in ms; where only figures moved; and before the first. */
const WRITE_INTERVAL_MS = 2_000;
const FIGURES_INTERVAL_MS = 5_000;
const SETTLE_MS = 400;
/** Least time between two looks, in ms: in a burst something changes with each pod, and mostly nothing comes of it. */
const LOOK_INTERVAL_MS = 250;
const FIGURES = new Set(['allocatable', 'largestFreeSlot', 'fits', 'pods']);
const LONGEST_RETRY_MS = 30_000;

export type StatusObject = KubeObject & { status?: MemberClusterStatus };

export interface StatusWriterOptions {
  host: KubeClient;
  /** The status to have, given the one that is there. */
  render: (previous: MemberClusterStatus | undefined) => MemberClusterStatus;
  /** Told what the API server has stored. */
  written: (status: MemberClusterStatus) => void;
  logger: Logger;
}

interface StatusChange {
  /** The fields that differ, as a merge patch. */
  readonly status: object;
  /** All of it. */
  readonly wanted: MemberClusterStatus;
  readonly figuresOnly: boolean;
}

/**
 * Keeps the status of one MemberCluster as `render` says: looks every two seconds and whenever touched, writes only what
 * differs and seldom, by a merge patch that fits this UID only.
 */
export class StatusWriter {
  readonly #o: StatusWriterOptions;
  readonly #wakeUp = new AutoResetEvent();
  #object: StatusObject;
  /** Fields that the API server did not keep, as a CRD of a former version drops them; not sent again before that, in monotonic ms. */
  #unkept: { readonly fields: readonly string[]; readonly until: number } = { fields: [], until: 0 };

  constructor(object: StatusObject, options: StatusWriterOptions) {
    this.#object = object;
    this.#o = options;
  }

  /** The object as the watch shows it now. */
  observe(object: StatusObject): void {
    if (!isOlder(object.metadata.resourceVersion, this.#object.metadata.resourceVersion)) this.#object = object;
    this.touch();
  }

  /** The status as it is to be was stored. */
  get isWritten(): boolean {
    return this.#change() === undefined;
  }

  /** Something that the status speaks of has changed. */
  touch(): void {
    this.#wakeUp.set();
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    // The first findings come within moments; one write then tells them all.
    let last = monotonic() + SETTLE_MS - WRITE_INTERVAL_MS;
    let failures = 0;
    let looked = -Infinity;
    while (!signal.aborted) {
      // Before that nothing is written whatever it is, and to work it out is dear.
      const soonest = Math.max(last + WRITE_INTERVAL_MS, looked + LOOK_INTERVAL_MS) - monotonic();
      if (soonest > 0) {
        await pause(soonest, signal);
        continue;
      }
      this.#wakeUp.clear();
      looked = monotonic();
      const change = this.#change();
      const wait = last + FIGURES_INTERVAL_MS - monotonic();
      if (change === undefined || (change.figuresOnly && wait > 0)) {
        const most = change === undefined ? WRITE_INTERVAL_MS : Math.min(wait, WRITE_INTERVAL_MS);
        await this.#wakeUp.wait(signal, most);
      } else {
        last = monotonic();
        failures = (await this.#write(change, signal)) ? 0 : failures + 1;
        if (failures > 0) last += Math.min(LONGEST_RETRY_MS, WRITE_INTERVAL_MS * 2 ** failures);
      }
    }
  }

  #change(): StatusChange | undefined {
    const before = this.#object.status;
    const wanted = this.#o.render(before);
    const all = mergePatch(before ?? {}, wanted);
    if (all === undefined) return undefined;
    const { fields, until } = this.#unkept;
    const status = monotonic() < until ? without(fieldsOf(all), fields) : fieldsOf(all);
    const keys = Object.keys(status);
    return keys.length === 0 ? undefined : { status, wanted, figuresOnly: keys.every((key) => FIGURES.has(key)) };
  }

  async #write({ status, wanted }: StatusChange, signal: AbortSignal): Promise<boolean> {
    const { name, uid, resourceVersion: before } = this.#object.metadata;
    const body = { metadata: { uid }, status };
    try {
      const how = { type: 'merge', subresource: 'status', fieldManager: 'spillway' } as const;
      const stored = await patch<StatusObject>(this.#o.host, MEMBER_CLUSTERS, { name }, body, how, { signal });
      const { resourceVersion } = stored.metadata;
      // The answer to a write is newer than what was known before, unless the host itself has gone back.
      const wentBack = isOlder(resourceVersion, before);
      if (wentBack || !isOlder(resourceVersion, this.#object.metadata.resourceVersion)) this.#object = stored;
      const left = fieldsOf(mergePatch(stored.status ?? {}, wanted) ?? {});
      const fields = Object.keys(status).filter((field) => Object.hasOwn(left, field));
      if (fields.length > 0) this.#unkept = { fields, until: monotonic() + LONGEST_RETRY_MS };
      this.#o.written(stored.status ?? {});
      return true;
    } catch (error) {
      if (!signal.aborted && !isNotFound(error)) {
        this.#o.logger.warn(`the status of MemberCluster ${name} was not written: ${describeError(error)}`);
      }
      return false;
    }
  }
}
