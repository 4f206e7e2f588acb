import { LRUCache } from 'lru-cache';
import { atMost } from '../kube/lru-limit.ts';
import { type CopyAction, decideCopy } from './copy-decision.ts';
import type { Knowledge } from './copy-informers.ts';
import type { CopyOverrides } from './copy-overrides.ts';
import { type CopyOwner, isOfOther } from './copy-owner.ts';
import { isCopyFor } from './copy-writer.ts';
import type { CopyRecord } from './copy.ts';
import type { Dependent } from './dependent.ts';
import type { CopyStore } from './member-copies.ts';
import type { MemberUses } from './member-uses.ts';
import type { CopyState } from './readiness.ts';

export interface CopyStatesOptions extends CopyOwner {
  copies: Pick<CopyStore, 'get' | 'knowledge'>;
  hostId: string;
  overrides: Pick<CopyOverrides, 'planFor'>;
  uses: Pick<MemberUses, 'hasOnly'>;
  /** How long what was written counts although the cache does not show it, in ms. */
  madeMs: number;
  /** Milliseconds. */
  monotonic: () => number;
}

/** How things stand with the copy of a dependent, and what is to be done, from what caches show and what was written a moment ago. No calls. */
export class CopyStates {
  readonly #o: CopyStatesOptions;
  /** By UID of a copy, when it was deleted, in ms. */
  readonly #removedAt = new LRUCache<string, number>(atMost(10_000));

  constructor(options: CopyStatesOptions) {
    this.#o = options;
  }

  /** What is known of the place where the dependent's copy belongs; of one that may never be, everything. */
  knowledgeOf({ kind, memberNamespace }: Dependent): Knowledge {
    return memberNamespace === undefined ? { known: true } : this.#o.copies.knowledge(kind, memberNamespace);
  }

  decide(dependent: Dependent): CopyAction {
    const { memberNamespace } = dependent;
    const { overrides, uses } = this.#o;
    const copy = this.#copyFor(dependent);
    if (this.#stillSeenForMs(copy) > 0) return { do: 'nothing', because: 'leaving' };
    const action = decideCopy({
      wanted: dependent.wanting.size > 0,
      host: dependent.source.current(),
      copy,
      planFor: (object) => overrides.planFor(dependent.kind, object),
      isOthers: (there) =>
        isOfOther(there, this.#o) && !uses.hasOnly({ ...dependent, namespace: memberNamespace ?? '' }, dependent.users),
    });
    return action.do === 'create' && this.#unseenForMs(dependent) > 0 ? { do: 'nothing', because: 'unknown' } : action;
  }

  of(dependent: Dependent): CopyState {
    const host = dependent.source.current();
    if (host.state === 'unknown' && host.problem !== undefined) return { is: 'unreadable', problem: host.problem };
    const place = this.knowledgeOf(dependent);
    if (!place.known) {
      return place.problem === undefined ? { is: 'pending' } : { is: 'not-copied', problem: place.problem };
    }
    const action = this.decide(dependent);
    if (action.do === 'nothing') {
      if (action.because === 'current') return { is: 'ready' };
      if (action.because === 'absent') return { is: 'absent' };
      if (action.because === 'refused') return { is: 'token' };
      if (action.because === 'others') return { is: 'others' };
      if (action.because === 'overrides-refused') return { is: 'overrides-refused', problem: action.message };
    }
    if (dependent.taken) return { is: 'taken' };
    if (dependent.failure === undefined) return { is: 'pending' };
    return { is: 'not-copied', problem: dependent.failure.words, permanent: dependent.failure.permanent };
  }

  /** It was deleted. The cache may show it for a moment longer. */
  removed({ metadata: { uid = '' } }: CopyRecord): void {
    this.#removedAt.set(uid, this.#o.monotonic());
  }

  /** How much longer the cache may not show what was made, or show what was deleted, in ms; at most 0: it is up to date. */
  behindForMs(dependent: Dependent): number {
    return Math.max(this.#unseenForMs(dependent), this.#stillSeenForMs(this.#copyFor(dependent)));
  }

  /** As the cache shows it. */
  #copyFor({ kind, name, namespace, memberNamespace }: Dependent): CopyRecord | undefined {
    const { copies, hostId } = this.#o;
    const found = memberNamespace === undefined ? undefined : copies.get(kind, memberNamespace, name);
    return found !== undefined && isCopyFor(found, namespace, hostId) ? found : undefined;
  }

  /** How much longer a copy that was made counts as there although the cache has not shown it, in ms. */
  #unseenForMs({ madeAt }: Dependent): number {
    return madeAt === undefined ? 0 : madeAt + this.#o.madeMs - this.#o.monotonic();
  }

  /** How much longer the cache may show a copy that was deleted, in ms. One that a backup brought back has the same UID. */
  #stillSeenForMs(copy: CopyRecord | undefined): number {
    const at = this.#removedAt.get(copy?.metadata.uid ?? '');
    return at === undefined ? 0 : at + this.#o.madeMs - this.#o.monotonic();
  }
}
