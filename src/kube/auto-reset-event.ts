/** Lets one waiter go on. Set while nobody waits, it lets the next one through at once. */
export class AutoResetEvent {
  #isSet = false;
  #wake: (() => void) | undefined;

  set(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  /** What was set before lets nobody through. */
  clear(): void {
    this.#isSet = false;
  }

  /** Resolves once set since the last wait, after `ms`, or when the signal aborts; never rejects. One waiter at a time. */
  async wait(signal: AbortSignal, ms?: number): Promise<void> {
    if (!this.#isSet && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(end, ms);
        function end(): void {
          clearTimeout(timer);
          signal.removeEventListener('abort', end);
          resolve();
        }
        this.#wake = end;
        signal.addEventListener('abort', end, { once: true });
      });
      this.#wake = undefined;
    }
    this.#isSet = false;
  }
}
