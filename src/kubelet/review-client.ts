import PQueue from 'p-queue';
import { describeError } from '../kube/errors.ts';

/** What reviews need of the host's client. */
export interface ReviewApi {
  request<T = unknown>(request: {
    method: 'POST';
    path: string;
    body: unknown;
    deadlineMs: number;
    signal?: AbortSignal;
  }): Promise<T>;
}

/** The host could not be asked, or there are too many questions open; never to be read as an answer. */
export class ReviewUnavailable extends Error {
  override readonly name = 'ReviewUnavailable';
}

const DEADLINE_MS = 10_000;
const CONCURRENCY = 16;
const WAITING = 256;

/**
 * Asks the host for reviews. Whoever reaches the port can cause one, so open questions are bounded, and the same
 * question asked again while it is open shares its answer.
 */
export class ReviewClient {
  readonly #host: ReviewApi;
  readonly #queue = new PQueue({ concurrency: CONCURRENCY });
  readonly #open = new Map<string, Promise<unknown>>();

  constructor(host: ReviewApi) {
    this.#host = host;
  }

  /** `key` identifies the question. Throws {@link ReviewUnavailable}. */
  ask<T>(key: string, path: string, body: unknown, read: (answer: unknown) => T): Promise<T> {
    const open = this.#open.get(key);
    if (open !== undefined) {
      return open as Promise<T>;
    }
    if (this.#queue.size >= WAITING) {
      return Promise.reject(new ReviewUnavailable('too many reviews are waiting for the host cluster'));
    }
    const asked = this.#send(path, body, read).finally(() => this.#open.delete(key));
    this.#open.set(key, asked);
    return asked;
  }

  async #send<T>(path: string, body: unknown, read: (answer: unknown) => T): Promise<T> {
    try {
      return await this.#queue.add(async () => {
        const answer = await this.#host.request({ method: 'POST', path, body, deadlineMs: DEADLINE_MS });
        return read(answer);
      });
    } catch (error) {
      throw new ReviewUnavailable(describeError(error), { cause: error });
    }
  }
}
