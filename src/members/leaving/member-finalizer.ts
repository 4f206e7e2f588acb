import type { Logger } from 'pino';
import { LEAVING_FINALIZER } from '../../api/marks.ts';
import { isLeaving, MEMBER_CLUSTERS } from '../../api/member-cluster.ts';
import { AutoResetEvent } from '../../kube/auto-reset-event.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeError, isConflict, isForbidden, isNotFound } from '../../kube/errors.ts';
import type { KubeObject } from '../../kube/object.ts';
import { patch } from '../../kube/verbs.ts';

/** Between two looks at whether a MemberCluster that was deleted may go, in ms. */
const LOOK_MS = 1_000;
/** After a refusal, which only another role mends, in ms. */
const REFUSED_MS = 60_000;
/** For the watch to show what somebody else has just written, in ms. */
const SOON_MS = 300;

export interface MemberFinalizerOptions {
  host: KubeClient;
  /** The MemberCluster as it is now. */
  object: () => KubeObject;
  /** Whether nothing of it is left anywhere. May ask the host. */
  mayGo: (signal: AbortSignal) => Promise<boolean>;
  /** It is on the object by now, or will not be. */
  settled: () => void;
  logger: Logger;
}

/**
 * The finalizer of one MemberCluster: put there before anything of ours can be in the member, so that a deletion waits until
 * nothing is, whether this program runs at that moment or not; and taken off then.
 */
export class MemberFinalizer {
  readonly #o: MemberFinalizerOptions;
  readonly #wakeUp = new AutoResetEvent();
  #added = false;
  #refused = false;

  constructor(options: MemberFinalizerOptions) {
    this.#o = options;
  }

  /** Whether things may be made in the member. With the rights of an older version a deletion is not waited for. */
  get isSettled(): boolean {
    const object = this.#o.object();
    return this.#added || this.#refused || isLeaving(object) || has(object);
  }

  /** The object, or whether it may go, has changed. */
  touch(): void {
    this.#wakeUp.set();
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const again = await this.#look(signal);
      await this.#wakeUp.wait(signal, again);
    }
  }

  async #look(signal: AbortSignal): Promise<number | undefined> {
    const object = this.#o.object();
    const leaves = isLeaving(object);
    if (has(object) !== leaves) return undefined;
    try {
      if (leaves && !(await this.#o.mayGo(signal))) return LOOK_MS;
      const { finalizers = [] } = object.metadata;
      await this.#write(
        leaves ? finalizers.filter((one) => one !== LEAVING_FINALIZER) : [...finalizers, LEAVING_FINALIZER],
        signal,
      );
      this.#added = !leaves;
      this.#refused = false;
    } catch (error) {
      if (signal.aborted || isNotFound(error)) return undefined;
      if (isConflict(error)) return SOON_MS;
      const what = leaves
        ? 'the MemberCluster could not be let go'
        : 'the deletion of the MemberCluster is not waited for';
      this.#o.logger.warn(`${what}: ${describeError(error)}`);
      if (!isForbidden(error)) return LOOK_MS;
      this.#refused = true;
      this.#o.settled();
      return REFUSED_MS;
    }
    this.#o.settled();
    return LOOK_MS;
  }

  /** Others may have finalizers there, too: only of the object as it is known. */
  async #write(finalizers: readonly string[], signal: AbortSignal): Promise<void> {
    const { name, uid, resourceVersion } = this.#o.object().metadata;
    const body = { metadata: { uid, resourceVersion, finalizers } };
    await patch(this.#o.host, MEMBER_CLUSTERS, { name }, body, { type: 'merge', fieldManager: 'spillway' }, { signal });
  }
}

function has({ metadata }: KubeObject): boolean {
  return metadata.finalizers?.includes(LEAVING_FINALIZER) === true;
}
