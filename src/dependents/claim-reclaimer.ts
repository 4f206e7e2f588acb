import type { Logger } from 'pino';
import { monotonic } from '../kube/clock.ts';
import { describeError } from '../kube/errors.ts';
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
import { decideReclaim } from './reclaim.ts';

export interface ClaimReclaimerOptions {
  hostClaims: Pick<HostClaims, 'get' | 'volume'>;
  copies: Pick<CopyStore, 'knowledge'>;
  home: () => ClaimHome;
  places: Pick<ClaimTopology, 'copyAt'>;
  writer: Pick<ClaimWriter, 'reclaim'>;
  mayWrite: () => boolean;
  /** How long the creation of a claim that nobody has seen may be carried out yet, in ms. */
  openCreationMs: number;
  events: Pick<EventRecorder, 'record'>;
  metrics?: ClaimMetrics | undefined;
  logger: Logger;
}

/** A volume of the host whose claim is gone. */
interface Released {
  /** When it was seen so first, in ms. */
  since: number;
  /** What keeps it, and how often in a row that was so. */
  problem: string | undefined;
  times: number;
}

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
      if (knowledge.problem !== undefined) this.#kept(volume, knowledge.problem);
      return { requeueAfterMs: UNKNOWN_RETRY_MS };
    }
    if (!mayWrite()) return { requeueAfterMs: FROZEN_RETRY_MS };
    const openMs = reclaim.do === 'volume' ? this.#openForMs(volume) : 0;
    if (openMs > 0) return { requeueAfterMs: openMs };
    logger.info({ volume: name, step: reclaim.do }, 'a claim of the host is gone, and its reclaim policy is Delete');
    const step = `delete-${reclaim.do}`;
    try {
      const outcome = await writer.reclaim(volume, reclaim, here.identity, signal);
      if (outcome === 'again') return { requeueAfterMs: BEHIND_RETRY_MS };
    } catch (error) {
      signal.throwIfAborted();
      metrics?.steps.inc({ member: here.member, step, outcome: 'failed' });
      this.#kept(volume, describeError(error).replace(/\.$/, ''));
      throw error;
    }
    metrics?.steps.inc({ member: here.member, step, outcome: 'done' });
    return undefined;
  }

  /** How much longer a claim may come to be that this host, or a former process of it, asked for, in ms. */
  #openForMs(volume: MemberVolume): number {
    // Once it was seen no other is asked for.
    if (volume.claimUid !== undefined) return 0;
    return this.#of(volume).since + this.#o.openCreationMs - monotonic();
  }

  #of({ name }: MemberVolume): Released {
    const known = this.#released.get(name) ?? { since: monotonic(), problem: undefined, times: 0 };
    this.#released.set(name, known);
    return known;
  }

  #forget(name: string): undefined {
    this.#released.delete(name);
  }

  /** Tells of what keeps the data, once: what passes at the second attempt is not worth it. */
  #kept(volume: MemberVolume, problem: string): void {
    const known = this.#of(volume);
    known.times = known.problem === problem ? known.times + 1 : 1;
    known.problem = problem;
    if (known.times !== 2) return;
    const { name, member, namespace, claim, object } = volume;
    const subject = { apiVersion: 'v1', kind: 'PersistentVolume', name, uid: object.metadata.uid };
    const message =
      `The claim here is gone, and by the reclaim policy its data go with it: claim "${claim}" in namespace "${namespace}" of cluster "${member}" ` +
      `could not be deleted, or seen to be gone: ${problem}. It is tried again by itself; until then this volume stays, as it says where they are.`;
    this.#o.events.record(subject, 'Warning', 'ClaimNotDeleted', message);
  }
}
