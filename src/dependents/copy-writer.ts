import type { Logger } from 'pino';
import { type Invariants, UNCOUNTED } from '../api/invariants.ts';
import { HOST_LABEL, HOST_NAMESPACE_ANNOTATION } from '../api/marks.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { copyOf, type CopyRecord } from './copy.ts';
import { type CopyAction, isToken } from './copy-decision.ts';
import type { CopyOverrides } from './copy-overrides.ts';
import type { Dependent } from './dependent.ts';
import type { HostObjectSource } from './host-objects.ts';
import type { CopyStore } from './member-copies.ts';

export interface CopyWriterOptions {
  objects: HostObjectSource;
  copies: CopyStore;
  overrides: CopyOverrides;
  hostId: string;
  /** Name of the MemberCluster. */
  member: string;
  namespaces: {
    /** Makes sure that this namespace of the member exists and is ours to use; `hold` says why it is not. */
    ensure(
      hostNamespace: string,
      signal: AbortSignal,
      memberNamespace: string | undefined,
    ): Promise<{ namespace: string } | { hold: { reason: string; message: string } }>;
  };
  takenRetryMs: number;
  /** Default: not counted. */
  invariants?: Invariants;
  logger: Logger;
}

/** When to look at the key again by itself; undefined: the caches will tell. */
export type Again = { requeueAfterMs: number } | undefined;

const SOON = { requeueAfterMs: 200 };
const LATER = { requeueAfterMs: 1_000 };

/** Carries out what {@link CopyAction} asks for, in the member. Ownership is looked at once more before each write. */
export class CopyWriter {
  readonly #o: CopyWriterOptions;

  constructor(options: CopyWriterOptions) {
    this.#o = options;
  }

  async perform(dependent: Dependent, action: CopyAction, signal: AbortSignal): Promise<Again> {
    switch (action.do) {
      case 'nothing':
        dependent.taken = false;
        // Pods of the other MemberCluster give no sign when they end.
        return action.because === 'others' ? { requeueAfterMs: this.#o.takenRetryMs } : undefined;
      case 'create':
        return await this.#create(dependent, action.from, signal);
      case 'replace':
        return await this.#replace(dependent, action.from, action.copy, signal);
      case 'delete':
        if (action.confirm && !(await this.#o.objects.confirmAbsent(dependent, signal))) return LATER;
        return await this.remove(action.copy, signal);
    }
  }

  /** Removes a copy of ours; the cache shows it for a moment longer. */
  async remove(copy: CopyRecord, signal: AbortSignal): Promise<Again> {
    const { copies, logger } = this.#o;
    const { kind, metadata } = copy;
    try {
      await copies.remove(copy, signal);
    } catch (error) {
      if (!isConflict(error)) throw error;
      return SOON;
    }
    logger.debug({ kind, namespace: metadata.namespace, name: metadata.name }, 'copy removed from the member');
    return undefined;
  }

  /** The last look before content of the host leaves it (invariant I13). */
  #check({ kind, namespace, name, users }: Dependent, made: KubeObject): void {
    const about = { kind, namespace, name };
    const invariants = this.#o.invariants ?? UNCOUNTED;
    if (users.size === 0) throw invariants.violated('I13', 'a copy of an object that no pod refers to', about);
    if (isToken(made)) throw invariants.violated('I13', 'a copy of the token of a service account', about);
  }

  async #replace(dependent: Dependent, from: KubeObject, copy: CopyRecord, signal: AbortSignal): Promise<Again> {
    const { copies, overrides, hostId, member } = this.#o;
    const place = { hostId, member, memberNamespace: copy.metadata.namespace ?? '' };
    const made = overrides.applyTo(dependent.kind, from, copyOf(dependent.kind, from, place, copy));
    this.#check(dependent, made);
    try {
      await copies.replace(dependent.kind, made, signal);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return SOON;
    }
    return undefined;
  }

  async #create(dependent: Dependent, from: KubeObject, signal: AbortSignal): Promise<Again> {
    const { copies, overrides, hostId, member, namespaces, takenRetryMs } = this.#o;
    const { kind, name } = dependent;
    const place = await namespaces.ensure(dependent.namespace, signal, dependent.memberNamespace);
    if ('hold' in place) throw new Error(place.hold.message);
    const memberNamespace = place.namespace;
    const occupant = dependent.taken ? await copies.read(kind, memberNamespace, name, signal) : undefined;
    // The last pod that referred to it went meanwhile.
    if (dependent.users.size === 0) return SOON;
    if (occupant === undefined) {
      dependent.taken = false;
      try {
        const made = overrides.applyTo(kind, from, copyOf(kind, from, { hostId, member, memberNamespace }));
        this.#check(dependent, made);
        await copies.create(kind, made, signal);
        return undefined;
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
    }
    const found = occupant ?? (await copies.read(kind, memberNamespace, name, signal));
    if (found === undefined) return SOON;
    // Ours, by an earlier request: the cache is behind.
    if (isCopyFor(found, dependent.namespace, hostId)) return LATER;
    dependent.taken = true;
    return { requeueAfterMs: takenRetryMs };
  }
}

/** Ours, and for that namespace of the host: a copy for another one is as good as a stranger's. */
export function isCopyFor(found: KubeObject, hostNamespace: string, hostId: string): boolean {
  const { labels, annotations } = found.metadata;
  return labels?.[HOST_LABEL] === hostId && annotations?.[HOST_NAMESPACE_ANNOTATION] === hostNamespace;
}
