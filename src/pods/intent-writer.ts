import { MIRRORED_CONDITION } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { CreationHistory } from './creation-history.ts';
import { intentOf, intentPatch, needsIntent } from './creation-intent.ts';
import type { HostStatusWriter } from './host-status-writer.ts';
import type { PodMemory } from './pod-memory.ts';
import type { MemberPort } from './pod-ports.ts';
import { REFUSAL_REASONS } from './member-refusal.ts';
import { oneMoreUnanswered } from './unanswered-creation.ts';

/** How long an intent is good for further attempts, in ms: the member's history must not end before it. */
const FRESH_MS = 60_000;
/** So often in a row the member is asked what came of a creation when its answers do not say. */
const MOST_UNCLEAR = 5;

/** Something else has the name there. */
const NAME_REASONS: ReadonlySet<string> = new Set(['NameTaken', 'FormerPodLeaving']);

export interface IntentWriterOptions {
  member: MemberPort;
  statuses: Pick<HostStatusWriter, 'write'>;
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/**
 * Writes down on host pods that their copies are about to be made, see {@link needsIntent}, and keeps in the pod's memory
 * what is known of what came of it.
 */
export class IntentWriter {
  readonly #o: IntentWriterOptions;

  constructor(options: IntentWriterOptions) {
    this.#o = options;
  }

  /**
   * Whether the member is to be asked first, without effect, if it would take the pod: it did not before, and to write down
   * each vain attempt would be two writes more for each.
   */
  isRehearsed(hostPod: Pod, memory: PodMemory): boolean {
    if (!needsIntent(hostPod) || intentOf(hostPod) !== undefined) return false;
    const { reason = '' } = conditionOf(hostPod, MIRRORED_CONDITION) ?? {};
    return memory.refusedSince !== undefined || REFUSAL_REASONS.has(reason) || NAME_REASONS.has(reason);
  }

  /**
   * Makes sure that the host pod says that `memberPod` is about to be made, where that is needed; answers the host pod that
   * says so. No request unless it has to be said, or was said too long ago.
   */
  async write(hostPod: Pod, memberPod: Pod, memory: PodMemory, signal: AbortSignal): Promise<Pod> {
    if (!needsIntent(hostPod)) return hostPod;
    const { uid: of = '' } = hostPod.metadata;
    const { member, clock, monotonic, statuses } = this.#o;
    const current = memory.host?.metadata.uid === of ? memory.host : hostPod;
    const { namespace = '', name } = memberPod.metadata;
    const before = intentOf(current);
    const known = memory.intent?.of === of ? memory.intent : undefined;
    const isFresh = known !== undefined && monotonic() - known.at < FRESH_MS;
    const since = known?.absentUpTo ?? member.pods.resourceVersion ?? '';
    const isSame = before?.member === member.name && before.namespace === namespace && before.name === name;
    if (isSame && known !== undefined && (isFresh || before.since === since)) {
      memory.intent = { ...known, open: true };
      return current;
    }
    const second = timestamp(clock());
    const body = intentPatch(current, { member: member.name, namespace, name, since }, second);
    const written = await statuses.write(current, body, { from: 'hold' }, memory, signal);
    memory.intent = { of, at: monotonic(), open: true, unclear: 0 };
    return written;
  }

  /** What became of the request that was to make the pod, if it was sent. */
  answered(hostPod: Pod, sent: 'carried-out' | 'refused' | { openMs: number } | undefined, memory: PodMemory): void {
    const { uid: of = '' } = hostPod.metadata;
    // The pod that will be seen is not that of the creation without an answer.
    if (sent === 'carried-out' && memory.unanswered !== undefined) memory.unanswered.single = false;
    if (typeof sent === 'object')
      memory.unanswered = oneMoreUnanswered(memory.unanswered, of, this.#o.monotonic(), sent.openMs);
    // What was asked for before may come to something still.
    if (sent === 'refused' && memory.unanswered === undefined && memory.intent !== undefined)
      memory.intent.open = false;
  }

  /** Notes what the member's history says. True: nothing has come of the intent, the pod may be made. */
  lookedBack(hostPod: Pod, history: CreationHistory, memory: PodMemory): boolean {
    const { uid: of = '' } = hostPod.metadata;
    const known = memory.intent?.of === of ? memory.intent : { of, at: -Infinity, open: true, unclear: 0 };
    if (history.is !== 'absent') {
      memory.intent = { ...known, unclear: history.is === 'unclear' ? known.unclear + 1 : 0 };
      return false;
    }
    memory.intent = { of, at: known.at, open: false, unclear: 0 };
    // It is not the last word while something may come of it yet.
    if (memory.unanswered !== undefined) memory.intent.absentUpTo = history.upTo;
    return true;
  }

  /** The member was asked so often that it will not get any clearer. */
  staysUnclear(memory: PodMemory): boolean {
    return (memory.intent?.unclear ?? 0) >= MOST_UNCLEAR;
  }
}
