import type { Logger } from 'pino';
import { InvariantError } from '../api/invariants.ts';
import { madeInMode, type ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import { isAnotherObject, isForbidden, isPermanent } from '../kube/errors.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import type { Hold } from './hold.ts';
import { refusalOf } from './member-refusal.ts';
import { type MemberUpdate, withoutRecord } from './member-updates.ts';
import type { PodHolds } from './pod-holds.ts';
import type { PodMemory } from './pod-memory.ts';
import type { PodOverrides } from './pod-overrides.ts';
import type { DependentsPort, MemberPort } from './pod-ports.ts';
import type { PodWrites } from './pod-writes.ts';
import { type Next, retryLater } from './retry-later.ts';
import type { TranslateContext } from './translate.ts';

export interface PodUpdatesOptions {
  member: Pick<MemberPort, 'name' | 'reachable' | 'unreachableBecause' | 'unreachableSince'>;
  dependents: Pick<DependentsPort, 'require'>;
  overrides: Pick<PodOverrides, 'updates' | 'referring' | 'isOutdated'>;
  translateContext: (hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode) => TranslateContext;
  writes: Pick<PodWrites, 'updateMember'>;
  holds: Pick<PodHolds, 'event'>;
  logger: Logger;
  /** In ms. */
  monotonic: () => number;
}

/** Brings changes that were made to host pods to their copies. */
export class PodUpdates {
  readonly #o: PodUpdatesOptions;

  constructor(options: PodUpdatesOptions) {
    this.#o = options;
  }

  /** Answers when to try again; undefined: the copy has received everything. */
  async send(hostPod: Pod, memberPod: Pod, key: string, memory: PodMemory, signal: AbortSignal): Promise<Next> {
    const { member, translateContext, dependents, overrides, holds, monotonic } = this.#o;
    if (!member.reachable()) {
      if (member.unreachableSince() !== undefined) holds.event(hostPod, this.#notSent());
      return retryLater(memory);
    }
    // An ephemeral container may refer to objects that nothing has needed so far.
    const { namespace: place = '' } = memberPod.metadata;
    const required = dependents.require(hostPod, overrides.referring(hostPod), place);
    if (!required.ready) {
      if (!required.pending) holds.event(hostPod, required);
      return retryLater(memory);
    }
    const context = translateContext(hostPod, place, madeInMode(memberPod));
    const updates = overrides.updates(hostPod, memberPod, context);
    const before = jsonEqual(memory.failedUpdate?.updates, updates) ? memory.failedUpdate : undefined;
    const rest = (before?.until ?? -Infinity) - monotonic();
    // News of the copy are no reason to send the same again.
    if (rest > 0) return { requeueAfterMs: rest };
    let problem: Hold | undefined;
    try {
      const written = await this.#sendAll(updates, memberPod, memory, signal);
      if (overrides.isOutdated(hostPod, written)) problem = this.#notKept();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof InvariantError) throw error;
      if (isAnotherObject(error)) return { requeueAfterMs: 1000 };
      problem = this.#failed(error);
    }
    if (problem === undefined) {
      memory.attempts = 0;
      delete memory.failedUpdate;
      return undefined;
    }
    this.#o.logger.warn({ pod: key, reason: problem.reason }, problem.message);
    holds.event(hostPod, problem);
    const failed = { updates, until: 0, attempts: before?.attempts ?? 0 };
    const again = retryLater(failed);
    failed.until = monotonic() + again.requeueAfterMs;
    memory.failedUpdate = failed;
    return again;
  }

  /** Answers the copy as it is then. @throws the first refusal, once all others were sent. */
  async #sendAll(
    updates: readonly MemberUpdate[],
    memberPod: Pod,
    memory: PodMemory,
    signal: AbortSignal,
  ): Promise<Pod> {
    let current = memberPod;
    let refused: unknown;
    for (const update of updates) {
      const sent = refused === undefined ? update : withoutRecord(update, current);
      if (sent === undefined) continue;
      try {
        current = await this.#o.writes.updateMember(current, sent, signal);
        memory.member = current;
      } catch (error) {
        // What a member does not take of a change keeps the rest of it from nothing.
        if (!(isPermanent(error) || isForbidden(error)) || isAnotherObject(error)) throw error;
        refused ??= error;
      }
    }
    if (refused !== undefined) throw refused;
    return current;
  }

  #failed(error: unknown): Hold {
    const { reason, message } = refusalOf(error, this.#o.member.name);
    return {
      reason: reason === 'MemberUnavailable' ? 'MemberUpdateDelayed' : 'MemberUpdateRefused',
      message: `The change to the pod did not reach its copy: ${message}`,
    };
  }

  #notSent(): Hold {
    const { name, unreachableBecause } = this.#o.member;
    const because = unreachableBecause();
    const why = because === undefined ? '' : ` (${because})`;
    return {
      reason: 'MemberUpdateDelayed',
      message: `The change to the pod did not reach its copy: cluster "${name}" cannot be asked at present${why}. It is sent by itself once it can.`,
    };
  }

  #notKept(): Hold {
    const { name } = this.#o.member;
    return {
      reason: 'MemberUpdateDelayed',
      message: `The change to the pod is not in its copy: cluster "${name}" took it, and answered without it; an admission webhook there may take it back. It is tried again by itself.`,
    };
  }
}
