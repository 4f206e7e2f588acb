import { UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { PodMemory } from './pod-memory.ts';

/** A deletion that nobody has looked after for so long is forgotten, in ms: the longest wait between two tries that failed is 72 s. */
const FORGOTTEN_MS = 300_000;
/** Between two sweeps for forgotten deletions, in ms. */
export const SWEEP_MS = 60_000;

/** Tells whether deletions were forgotten (invariant I14), time after time. */
export class DeletionSweep {
  readonly #monotonic: () => number;
  #last: number;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
    this.#last = monotonic();
  }

  /** To be called every {@link SWEEP_MS}: false when this process stood still meanwhile, and then nobody could look. */
  begin(): boolean {
    const since = this.#monotonic() - this.#last;
    this.#last = this.#monotonic();
    return since < 2 * SWEEP_MS;
  }

  /**
   * Whether a member pod of ours should have been deleted by now, but its key was last looked at long ago, and what was sent for it last
   * need not wait any more.
   */
  isForgotten(
    memberPod: Pod,
    hostPod: Pod | undefined,
    { lookedAt, deleteSent }: Pick<PodMemory, 'lookedAt' | 'deleteSent'>,
  ): boolean {
    const { deletionTimestamp, labels } = memberPod.metadata;
    if (deletionTimestamp !== undefined || lookedAt === undefined) return false;
    const wanted = hostPod?.metadata.uid === labels?.[UID_LABEL] && hostPod?.metadata.deletionTimestamp === undefined;
    const sentUntil = deleteSent?.uid === memberPod.metadata.uid ? deleteSent?.until : undefined;
    return !wanted && this.#monotonic() - Math.max(lookedAt, sentUntil ?? lookedAt) > FORGOTTEN_MS;
  }
}
