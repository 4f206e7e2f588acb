import type { KubeClient, KubeRequest } from './client.ts';
import { WatchDecoder, type WatchEvent } from './watch-decoder.ts';

/** How much of the time it asked for a watch must have lived to count as ended in order. */
const LASTED_SHARE = 0.8;

/** One watch request from its start to its end, and what it brought. */
export class WatchRound {
  /** Events other than bookmarks. */
  events = 0;
  /** An event or a bookmark came. */
  proved = false;
  /** Given up because nothing arrived. */
  silent = false;
  readonly #monotonic: () => number;
  readonly #silenceMs: number;
  readonly #stop = new AbortController();
  #startedAt = 0;
  #heardAt = 0;
  #askedMs = 0;
  #failure: unknown;
  #timer: NodeJS.Timeout | undefined;

  constructor(monotonic: () => number, silenceMs: number) {
    this.#monotonic = monotonic;
    this.#silenceMs = silenceMs;
  }

  /**
   * Resolves when the server ends the watch, after {@link stop} and after silence; rejects with what broke it, be it the
   * connection, a line that is no event, or an error thrown by `onEvent`.
   */
  async run(
    client: KubeClient,
    request: KubeRequest,
    timeoutSeconds: number,
    signal: AbortSignal,
    onEvent: (event: WatchEvent) => void,
  ): Promise<void> {
    const decoder = new WatchDecoder(client.answers, request.managedFields);
    const stopped = this.#stop.signal;
    const forward = (): void => this.stop();
    signal.addEventListener('abort', forward, { once: true });
    if (signal.aborted) {
      this.stop();
    }
    this.#askedMs = timeoutSeconds * 1000;
    this.#startedAt = this.#monotonic();
    this.#heardAt = this.#startedAt;
    this.#listen();
    const guarded = (event: WatchEvent): void => {
      if (!stopped.aborted) {
        onEvent(event);
      }
    };
    try {
      await client.receive({ ...request, signal: stopped }, (chunk) => {
        this.#heardAt = this.#monotonic();
        try {
          decoder.push(chunk, guarded);
        } catch (e) {
          this.#failure = e;
          this.stop();
        }
      });
    } catch (e) {
      if (!stopped.aborted || signal.aborted) {
        throw e;
      }
    } finally {
      clearTimeout(this.#timer);
      decoder.end();
      signal.removeEventListener('abort', forward);
    }
    if (this.#failure !== undefined) {
      throw this.#failure;
    }
  }

  /** Ends the watch from our side; no event is handed on after that. */
  stop(): void {
    this.#stop.abort();
  }

  /** Whether the watch lived about as long as was asked for. */
  lasted(): boolean {
    return this.#monotonic() - this.#startedAt >= this.#askedMs * LASTED_SHARE;
  }

  /** Ends the watch when it has been silent too long, else looks again when it could have been. */
  #listen(): void {
    const left = this.#silenceMs - (this.#monotonic() - this.#heardAt);
    if (left > 0) {
      this.#timer = setTimeout(() => this.#listen(), left);
      return;
    }
    this.silent = true;
    this.stop();
  }
}
