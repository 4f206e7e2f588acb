import { createHash } from 'node:crypto';
import { podSubject } from '../api/pod-subject.ts';
import type { Pod, PodStatus } from '../kube/core-v1.ts';
import type { PodMetrics } from './pod-metrics.ts';
import type { EventPort } from './pod-ports.ts';

/** How often one and the same status was written to a host pod. */
export interface Corrections {
  of: string;
  count: number;
  /** When it was last written, in ms. */
  at: number;
  /** The next one waits, and that was counted. */
  held: boolean;
  /** The user was told. */
  told: boolean;
}

/** Where they are remembered. */
interface Memory {
  corrections?: Corrections;
}

/** So many times a status is put right at once. */
const PROMPT = 5;
/** From then on it waits, twice as long each time, in ms. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** A status that has stayed as it is for so long is not fought about any more, in ms. */
const REST_MS = 90_000;

export interface StatusCorrectionsOptions {
  nodeName: string;
  events: EventPort;
  metrics: Pick<PodMetrics, 'correctionsHeld'>;
  monotonic: () => number;
}

/**
 * Keeps a fight over the status of a host pod slow. Whoever else writes there wakes us up each time, and with our answer is
 * woken up themselves: the first corrections are prompt, further ones of the same status come ever more rarely. Another
 * status, because the member has news, goes at once.
 */
export class StatusCorrections {
  readonly #o: StatusCorrectionsOptions;

  constructor(options: StatusCorrectionsOptions) {
    this.#o = options;
  }

  /** Writes a status, or says when to come again because somebody else keeps changing it. */
  async write(
    hostPod: Pod,
    memory: Memory,
    of: string,
    write: () => Promise<unknown>,
  ): Promise<{ requeueAfterMs: number } | undefined> {
    const delay = this.delay(hostPod, memory, of);
    if (delay > 0) return { requeueAfterMs: delay };
    await write();
    this.written(memory, of);
    return undefined;
  }

  /** How long to wait before that status is written, in ms; 0: now. `of` from {@link statusKey}, or any other name of it. */
  delay(hostPod: Pod, memory: Memory, of: string): number {
    const { metrics, monotonic, nodeName } = this.#o;
    const now = monotonic();
    const before = memory.corrections;
    if (before === undefined || before.of !== of || before.count < PROMPT + 1 || now - before.at >= REST_MS) return 0;
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (before.count - PROMPT - 1));
    const rest = before.at + wait - now;
    if (rest > 0 && !before.held) {
      before.held = true;
      metrics.correctionsHeld.inc({ node: nodeName });
      if (!before.told) this.#record(hostPod);
      before.told = true;
    }
    return Math.max(0, rest);
  }

  /** To be told of each write of a status. */
  written(memory: Memory, of: string): void {
    const at = this.#o.monotonic();
    const before = memory.corrections;
    const rested = before === undefined || at - before.at >= REST_MS;
    const count = rested || before.of !== of ? 1 : before.count + 1;
    memory.corrections = { of, count, at, held: false, told: !rested && before.told };
  }

  #record(pod: Pod): void {
    const reason = 'StatusOverwritten';
    const message =
      'Somebody else keeps changing the status of this pod. It is put right ever more rarely, every ' +
      `${LONGEST_WAIT_MS / 1000} s at most, until that ends. Who it is: kubectl get pod ${pod.metadata.name} -o yaml --show-managed-fields`;
    this.#o.events.record(podSubject(pod), 'Warning', reason, message);
  }
}

/** The same for the same status, whenever its conditions changed. Its fields come in the order in which API servers write them. */
export function statusKey({ conditions = [], ...status }: PodStatus): string {
  const timeless = conditions.map((condition) => ({ ...condition, lastTransitionTime: undefined }));
  return createHash('sha256')
    .update(JSON.stringify({ ...status, conditions: timeless }))
    .digest('base64url')
    .slice(0, 22);
}
