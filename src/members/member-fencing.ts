import type { Logger } from 'pino';
import { FENCED, type FencingState } from '../api/fencing.ts';
import { HOST_LABEL, OUT_OF_SERVICE_TAINT, UID_LABEL } from '../api/marks.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import { describeError, isConflict } from '../kube/errors.ts';
import { readPages } from '../kube/list-pages.ts';
import { PODS } from '../kube/resource.ts';
import type { MemberConnection } from './connection.ts';
import { type Heard, heardOf, isFenced, nextFencing } from './fencing.ts';
import type { FencingRecord } from './fencing-record.ts';

/** Between two looks when nothing is heard, in ms. */
const LOOK_MS = 10_000;
/** After a failure, in ms. */
const AGAIN_MS = 1_000;
/** A member has to have answered for so long before what it lacks is forgotten: what it was asked to make may come to life late, in ms. */
const FORGET_AFTER_MS = 120_000;

export interface MemberFencingOptions {
  record: FencingRecord;
  hostId: string;
  connection: Pick<MemberConnection, 'name' | 'client' | 'reachability' | 'identityOk' | 'unansweredMs'>;
  /** Whether each virtual node has the taint; undefined while its Node has not been seen. */
  tainted: () => ReadonlyMap<string, boolean | undefined>;
  /** This process acts for the member, and the host is the one it was. */
  mayWriteHost: () => boolean;
  /** Copies of pods that were ended, which the member does not let be deleted. */
  notEnded: () => readonly NotEnded[];
  /** What the word of that virtual node is worth has changed. */
  changed: (nodeName: string) => void;
  /** Says so on the MemberCluster and on the Node. */
  event: (nodeName: string, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  logger: Logger;
  /** In ms. */
  monotonic: () => number;
}

/** What the status tells of it. */
export interface FencingFinding {
  readonly fenced: readonly string[];
  readonly refused: readonly string[];
  /** Pods that were ended, and may come back. */
  readonly pods: number;
  /** Copies of such pods that are back, and that the member does not let be deleted. */
  readonly notEnded: readonly NotEnded[];
}

/** `copy`: namespace and name in the member; `why`: in its words. */
interface NotEnded {
  readonly copy: string;
  readonly why: string;
}

/**
 * Virtual nodes that an administrator has taken out of service, of a member that does not answer: weighs that word, keeps what it
 * is worth in the status of the MemberCluster, and forgets what was ended on them once the member has shown that it has none of it.
 */
export class MemberFencing {
  readonly #o: MemberFencingOptions;
  readonly #wake = new AutoResetEvent();
  /** Since when the member has answered without a break, monotonic ms. */
  #answersSince: number | undefined;
  /** Virtual nodes for which the word counted at the last look. */
  readonly #counting = new Set<string>();

  constructor(options: MemberFencingOptions) {
    this.#o = options;
  }

  /** A taint came or went, or the member fell silent or answers. */
  touch(): void {
    this.#wake.set();
  }

  /** Whether it counts now, by all that is known at this moment, that nothing runs on the virtual node any more. */
  isFenced(nodeName: string): boolean {
    const { record, tainted, mayWriteHost } = this.#o;
    return mayWriteHost() && isFenced(record.nodes.get(nodeName), tainted().get(nodeName), this.#heard());
  }

  /** What former processes ended is known. */
  get isRead(): boolean {
    return this.#o.record.isRead;
  }

  /** Pods that were ended, and may come back: where each ran, by UID. Another object whenever that changes. */
  get told(): ReadonlyMap<string, string> {
    return this.#o.record.pods;
  }

  isTold(uid: string): boolean {
    return this.#o.record.pods.has(uid);
  }

  /** See {@link FencingRecord.tell}. */
  async tell(uid: string, where: string, signal: AbortSignal): Promise<boolean> {
    return await this.#o.record.tell(uid, where, signal);
  }

  /** Undefined until it is known. */
  finding(): FencingFinding | undefined {
    const { record } = this.#o;
    if (!record.isRead) return undefined;
    const those = (wanted: FencingState): string[] =>
      [...record.nodes].flatMap(([name, state]) => (state === wanted ? name : [])).toSorted();
    return { fenced: those(FENCED), refused: those('Refused'), pods: record.pods.size, notEnded: this.#o.notEnded() };
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger, record } = this.#o;
    while (!signal.aborted) {
      let again = LOOK_MS;
      try {
        if (!record.isRead) await this.#read(signal);
        if (this.#o.mayWriteHost()) await this.#look(signal);
      } catch (error) {
        again = AGAIN_MS;
        // Somebody else wrote to the status at the same moment.
        if (!signal.aborted && !isConflict(error))
          logger.warn(`what is out of service of the member is looked at again: ${describeError(error)}`);
      }
      await this.#wake.wait(signal, again);
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    await this.#o.record.read(signal);
    for (const nodeName of this.#o.tainted().keys()) this.#o.changed(nodeName);
  }

  #heard(): Heard {
    return heardOf(this.#o.connection);
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { record, tainted, changed, monotonic } = this.#o;
    const member = this.#heard();
    this.#answersSince = member === 'answers' ? (this.#answersSince ?? monotonic()) : undefined;
    const nodes = tainted();
    for (const [name, isTainted] of nodes) {
      const before = record.nodes.get(name);
      const next = nextFencing(before, isTainted, member);
      if (next !== before) {
        await record.setNode(name, next, signal);
        this.#say(name, before, next);
      }
      const counts = isFenced(next, isTainted, member);
      // What is stored may count again, for another process or after a single answer, without being written again.
      if (next === before && counts === this.#counting.has(name)) continue;
      if (counts) this.#counting.add(name);
      else this.#counting.delete(name);
      changed(name);
    }
    // Of Nodes that are none of the member's any more nobody says anything.
    for (const name of member === 'answers' ? record.nodes.keys() : [])
      if (!nodes.has(name)) await record.setNode(name, undefined, signal);
    const answersForMs = this.#answersSince === undefined ? 0 : monotonic() - this.#answersSince;
    if (record.pods.size > 0 && answersForMs >= FORGET_AFTER_MS) await this.#forget(signal);
  }

  #say(name: string, before: FencingState | undefined, next: FencingState | undefined): void {
    const { event, logger, connection } = this.#o;
    const said = sayingOf(name, connection.name, before, next);
    logger.warn({ node: name }, said.message);
    event(name, said.type, said.reason, said.message);
  }

  /** What the member has none of, by a read past the cache. */
  async #forget(signal: AbortSignal): Promise<void> {
    const { record, connection, hostId, logger, changed, tainted } = this.#o;
    const there = new Set<string>();
    const labelSelector = `${HOST_LABEL}=${hostId}`;
    await readPages(connection.client, PODS, { labelSelector, request: { signal } }, (items) => {
      for (const { metadata } of items) there.add(metadata.labels?.[UID_LABEL] ?? '');
    });
    // Another cluster has none of our pods.
    if (this.#heard() !== 'answers') return;
    const gone = [...record.pods.keys()].filter((uid) => !there.has(uid));
    if (gone.length === 0) return;
    await record.forget(gone, signal);
    logger.info({ pods: gone.length }, 'pods that were ended while the member was out of service have no copies there');
    for (const nodeName of tainted().keys()) changed(nodeName);
  }
}

function sayingOf(
  node: string,
  member: string,
  before: FencingState | undefined,
  next: FencingState | undefined,
): { type: 'Normal' | 'Warning'; reason: string; message: string } {
  const words = `taint ${OUT_OF_SERVICE_TAINT} on virtual node ${node}`;
  if (next === FENCED) {
    const message =
      `The ${words} counts: cluster ${member} does not answer, and nothing runs there any more, by the word of an administrator. ` +
      'Pods there that are being deleted are gone at once, and pods that must not run twice may be replaced elsewhere. Copies that come back with the cluster are ended.';
    return { type: 'Normal', reason: 'OutOfService', message };
  }
  if (next === undefined) {
    const message = `The ${words} is gone. Nothing further is ended for it.`;
    return { type: 'Normal', reason: 'BackInService', message };
  }
  const message =
    before === FENCED
      ? `Cluster ${member} answers again, and the ${words} counts no more. Take it away: kubectl taint node ${node} ${OUT_OF_SERVICE_TAINT}-`
      : `The ${words} does not count, as cluster ${member} answers: nothing is ended for it. To empty the node, use spillway.dev/drain. ` +
        `If the cluster is lost later on, take the taint away and put it there anew: kubectl taint node ${node} ${OUT_OF_SERVICE_TAINT}-`;
  return { type: 'Warning', reason: 'OutOfServiceRefused', message };
}
