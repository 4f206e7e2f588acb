import type { Logger } from 'pino';
import { monotonic } from '../kube/clock.ts';
import { describeError, isTransient } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { keyFor } from '../kube/object.ts';
import type { ClaimMetrics } from './claim-metrics.ts';
import type { ClaimHome } from './claim-refusal.ts';
import { BEHIND_RETRY_MS, FROZEN_RETRY_MS, UNKNOWN_RETRY_MS } from './claim-retries.ts';
import type { ClaimTopology } from './claim-topology.ts';
import type { ClaimWriter } from './claim-writer.ts';
import type { HostClaims } from './host-claims.ts';
import type { CopyStore } from './member-copies.ts';
import type { MemberVolume } from '../api/member-volume.ts';
import { decideReclaim, type Reclaim } from './reclaim.ts';

export interface ClaimReclaimerOptions {
  hostClaims: Pick<HostClaims, 'get' | 'volume'>;
  copies: Pick<CopyStore, 'knowledge'>;
  home: () => ClaimHome;
  places: Pick<ClaimTopology, 'copyAt'>;
  writer: Pick<ClaimWriter, 'reclaim' | 'unseenDataOf'>;
  mayWrite: () => boolean;
  /** How long the creation of a claim that nobody has seen may be carried out yet, in ms. */
  openCreationMs: number;
  events: Pick<EventRecorder, 'record'>;
  metrics?: ClaimMetrics | undefined;
  logger: Logger;
}

/** In ms; `long ago`: all that is known is that it lasts. */
type RefusedSince = number | 'long ago' | undefined;

/** A volume of the host whose claim is gone. */
interface Released {
  /** When it was seen so first, in ms. */
  since: number;
  /** What keeps it, and how often in a row that was so. */
  problem: string | undefined;
  times: number;
  /** When that was told last, in ms. */
  toldAt: number | undefined;
  /** Since when all answers were refusals, in ms: not an outage, nor what may pass by itself. */
  refusedSince: RefusedSince;
}

/** What keeps the data of a volume whose claim is gone; `lasts`: by a refusal of two minutes. */
export interface ReclaimProblem {
  why: string;
  lasts: boolean;
}

/** A refusal that lasts longer needs somebody to change something, in ms. */
const LASTING_MS = 120_000;
/** Events are kept for an hour: what keeps data longer is told again, in ms. */
const TELL_AGAIN_MS = 3_600_000;

/** Lets the data in the member go with the host's claim, and then the volume that stood for them: the last that tells of them. */
export class ClaimReclaimer {
  readonly #o: ClaimReclaimerOptions;
  readonly #released = new Map<string, Released>();

  constructor(options: ClaimReclaimerOptions) {
    this.#o = options;
  }

  /** One step for a volume. @throws what the clusters answer */
  async handle(name: string, signal: AbortSignal): Promise<undefined | { requeueAfterMs: number }> {
    const { hostClaims, copies, home, places, writer, mayWrite, metrics, logger } = this.#o;
    const volume = hostClaims.volume(name);
    const here = home();
    if (volume === undefined || volume.member !== here.member) return this.#forget(name);
    // Whoever asks has the place followed.
    const knowledge = copies.knowledge('PersistentVolumeClaim', volume.namespace);
    const claim = hostClaims.get(keyFor(volume.for.namespace, volume.for.name))?.claim;
    const copy = places.copyAt(volume.namespace, volume.claim);
    const reclaim = decideReclaim(volume, here, claim?.metadata.uid, copy);
    if (reclaim.do === 'nothing') return this.#forget(name);
    if (!knowledge.known) {
      const { problem, lasts = false } = knowledge;
      if (problem !== undefined) this.#kept(volume, problem, lasts ? 'long ago' : undefined);
      return { requeueAfterMs: UNKNOWN_RETRY_MS };
    }
    const known = this.#of(volume);
    if (!mayWrite()) {
      // Nobody asks meanwhile.
      known.refusedSince = undefined;
      return { requeueAfterMs: FROZEN_RETRY_MS };
    }
    const openMs = reclaim.do === 'volume' ? this.#openForMs(volume) : 0;
    if (openMs > 0) return { requeueAfterMs: openMs };
    let step: Reclaim = reclaim;
    try {
      // The volume is the last that tells of the data.
      const unseen = step.do === 'volume' ? await writer.unseenDataOf(volume, signal) : undefined;
      if (unseen !== undefined) {
        step = { do: 'data', copy: unseen };
        // The namespace has been lent again meanwhile.
        if (!copies.knowledge('PersistentVolumeClaim', volume.namespace).known)
          return { requeueAfterMs: UNKNOWN_RETRY_MS };
      }
      logger.info({ volume: name, step: step.do }, 'a claim of the host is gone, and its reclaim policy is Delete');
      const outcome = await writer.reclaim(volume, step, here.identity, signal);
      Object.assign(known, { problem: undefined, times: 0, refusedSince: undefined });
      if (outcome === 'again') return { requeueAfterMs: BEHIND_RETRY_MS };
      metrics?.steps.inc({ member: here.member, step: `delete-${step.do}`, outcome: 'done' });
      // Nor does a cache show that they are gone.
      return unseen === undefined ? undefined : { requeueAfterMs: BEHIND_RETRY_MS };
    } catch (error) {
      signal.throwIfAborted();
      metrics?.steps.inc({ member: here.member, step: `delete-${step.do}`, outcome: 'failed' });
      const refusedSince = isTransient(error) ? undefined : (known.refusedSince ?? monotonic());
      this.#kept(volume, describeError(error).replace(/\.$/, ''), refusedSince);
      throw error;
    }
  }

  /** Undefined: it is not known that anything keeps them. */
  problemOf(name: string): ReclaimProblem | undefined {
    const { problem, refusedSince } = this.#released.get(name) ?? {};
    if (problem === undefined) return undefined;
    return { why: problem, lasts: hasLasted(refusedSince) };
  }

  /** How much longer a claim may come to be that this host, or a former process of it, asked for, in ms. */
  #openForMs(volume: MemberVolume): number {
    // Once it was seen no other is asked for.
    if (volume.claimUid !== undefined) return 0;
    return this.#of(volume).since + this.#o.openCreationMs - monotonic();
  }

  #of({ name }: MemberVolume): Released {
    const known = this.#released.get(name) ?? {
      since: monotonic(),
      problem: undefined,
      times: 0,
      toldAt: undefined,
      refusedSince: undefined,
    };
    this.#released.set(name, known);
    return known;
  }

  #forget(name: string): undefined {
    this.#released.delete(name);
  }

  /** Tells of what keeps the data: what passes at the second attempt is not worth it. */
  #kept(volume: MemberVolume, problem: string, refusedSince: RefusedSince): void {
    const known = this.#of(volume);
    if (known.problem !== problem) Object.assign(known, { times: 0, toldAt: undefined });
    Object.assign(known, { problem, refusedSince, times: known.times + 1 });
    const now = monotonic();
    if (known.times < 2 || (known.toldAt !== undefined && now - known.toldAt < TELL_AGAIN_MS)) return;
    known.toldAt = now;
    const { name, member, namespace, claim, object } = volume;
    const subject = { apiVersion: 'v1', kind: 'PersistentVolume', name, uid: object.metadata.uid };
    const message =
      `The claim here is gone, and by the reclaim policy its data go with it: claim "${claim}" in namespace "${namespace}" of cluster "${member}" ` +
      `could not be deleted, or seen to be gone: ${problem}. It is tried again by itself; until then this volume stays, as it says where they are.`;
    this.#o.events.record(subject, 'Warning', 'ClaimNotDeleted', message);
  }
}

function hasLasted(refusedSince: RefusedSince): boolean {
  if (typeof refusedSince !== 'number') return refusedSince !== undefined;
  return monotonic() - refusedSince >= LASTING_MS;
}
