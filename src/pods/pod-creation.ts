import type { Logger } from 'pino';
import { InvariantError } from '../api/invariants.ts';
import { MIRRORED_CONDITION } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { describeError } from '../kube/errors.ts';
import type { Informer } from '../kube/informer.ts';
import { type CreateOptions, createMemberPod } from './create-pod.ts';
import { creationHistory } from './creation-history.ts';
import { intentOf, needsIntent } from './creation-intent.ts';
import { type Action, creationUnanswered } from './decide.ts';
import { HostPodChanged } from './host-status-writer.ts';
import type { IntentWriter } from './intent-writer.ts';
import { OpenCreations } from './open-creations.ts';
import type { PodEnding } from './pod-ending.ts';
import type { PodHolds } from './pod-holds.ts';
import { copyFound, newest, type PodMemory } from './pod-memory.ts';
import type { PodWrites } from './pod-writes.ts';
import { type Next, retryLater } from './retry-later.ts';
import { slowCreation, tellIfSlow } from './slow-creation.ts';

export interface PodCreationOptions extends Omit<CreateOptions, 'writes' | 'rehearse' | 'unansweredIn' | 'intend'> {
  hostPods: Pick<Informer<Pod>, 'get'>;
  writes: PodWrites;
  intents: IntentWriter;
  holds: PodHolds;
  ending: Pick<PodEnding, 'tellLost'>;
  logger: Logger;
  /** In ms. */
  monotonic: () => number;
}

/** How long an error of the member that is likely to pass is kept from users, in ms. */
const PATIENCE_MS = 3000;
/** Also an account that the owner of the member makes right after its namespace. */
const MAY_PASS_AT_ONCE: ReadonlySet<string> = new Set(['MemberUnavailable', 'MemberServiceAccount']);

/** Makes the copy of a host pod, and finds out what became of creations that a former process began. */
export class PodCreation {
  readonly open: OpenCreations;
  readonly #o: PodCreationOptions;

  constructor(options: PodCreationOptions) {
    this.#o = options;
    this.open = new OpenCreations(options.monotonic);
  }

  async create(hostPod: Pod, key: string, memory: PodMemory, signal: AbortSignal): Promise<Next> {
    const { intents, holds, logger, monotonic } = this.#o;
    const began = monotonic();
    const rehearse = intents.isRehearsed(hostPod, memory);
    const unansweredIn = memory.unanswered === undefined ? undefined : memory.place?.namespace;
    const intend = async (memberPod: Pod): Promise<Pod> => {
      const intended = await intents.write(hostPod, memberPod, memory, signal);
      memory.place = { of: hostPod.metadata.uid ?? '', namespace: memberPod.metadata.namespace ?? '' };
      return intended;
    };
    const options = { ...this.#o, rehearse, unansweredIn, intend };
    const { uid = '' } = hostPod.metadata;
    this.open.begun(uid);
    const creating = createMemberPod(hostPod, options, signal);
    const telling = tellIfSlow(creating, async () => await this.#tellSlow(hostPod, key, memory, signal));
    const outcome = await telling.catch((error: unknown) => {
      // It could not be written down. One that was cut off, or refused by a guard at its second try, may have been sent.
      if (!signal.aborted && !(error instanceof InvariantError)) this.open.answered(uid, undefined);
      throw error;
    });
    this.open.answered(uid, 'sent' in outcome ? outcome.sent : undefined);
    if ('wait' in outcome) return { requeueAfterMs: 1000 };
    intents.answered(hostPod, outcome.sent, memory);
    if ('hold' in outcome) {
      memory.refusedSince ??= began;
      // What passes within a moment is no news.
      const patience = memory.refusedSince + PATIENCE_MS - monotonic();
      if (MAY_PASS_AT_ONCE.has(outcome.hold.reason) && patience > 0) return retryLater(memory, patience);
      if (outcome.transient) logger.warn({ pod: key, reason: outcome.hold.reason }, outcome.hold.message);
      return await holds.hold(key, outcome.hold, memory, signal);
    }
    memory.attempts = 0;
    delete memory.refusedSince;
    copyFound(memory, hostPod, outcome.created, monotonic());
    return undefined;
  }

  async lookBack(
    { hostPod, intent, lost, forgotten }: Extract<Action, { do: 'look-back' }>,
    key: string,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Next> {
    const { member, hostId, monotonic, intents, holds, ending } = this.#o;
    const { uid: of = '' } = hostPod.metadata;
    if (!(await member.confirmIdentity(signal))) return { requeueAfterMs: 10_000 };
    const at = monotonic();
    const history = await creationHistory(member.client, intent, { hostId, uid: of }, { monotonic, signal });
    if (history.is === 'present') {
      copyFound(memory, hostPod, history.memberPod, monotonic());
      return { requeueAfterMs: 1000 };
    }
    if (intents.lookedBack(hostPod, history, memory)) return { requeueAfterMs: 1 };
    if (history.is === 'unclear' && !intents.staysUnclear(memory)) return retryLater(memory);
    // A copy that comes to life yet is to be found, not called lost.
    if (history.is !== 'lost' && memory.unanswered !== undefined) {
      return await holds.hold(key, creationUnanswered(member.name), memory, signal, memory.unanswered.until - at);
    }
    const status = history.is === 'lost' ? lost : forgotten;
    const evidence = { of, how: 'read', at } as const;
    return await ending.tellLost(hostPod, status, { from: 'absence', evidence }, memory, signal);
  }

  /** The creation is open for long: says so, unless the pod says already that the member is slow. Never rejects. */
  async #tellSlow({ metadata: { uid } }: Pod, key: string, memory: PodMemory, signal: AbortSignal): Promise<void> {
    const hold = slowCreation(this.#o.member.name);
    const hostPod = newest(this.#o.hostPods.get(key), memory.host);
    if (hostPod === undefined || hostPod.metadata.uid !== uid || hostPod.metadata.deletionTimestamp !== undefined)
      return;
    // Nothing is written past an intent that is being written.
    if (needsIntent(hostPod) && intentOf(hostPod) === undefined) return;
    // What the last try came to says more; to go back and forth between the two would be two writes for each try.
    if (conditionOf(hostPod, MIRRORED_CONDITION)?.reason === hold.reason) return;
    try {
      // The creation is under way: what is settled by now may be open again before this is written.
      await this.#o.holds.show(hostPod, hold, memory, signal, false);
    } catch (error) {
      // Whatever has changed tells more, or it is said another time.
      if (error instanceof HostPodChanged) return;
      if (!signal.aborted) this.#o.logger.warn({ pod: key }, `not said on the pod: ${describeError(error)}`);
    }
  }
}
