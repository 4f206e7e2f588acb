/** Wakes whoever waits. A ring that nobody waited for is kept for the next one who does. */
export class Bell {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at a ring since the last wait, after `ms`, or when the signal aborts; never rejects. One waiter at a time. */
  async wait(signal: AbortSignal, ms?: number): Promise<void> {
    if (!this.#rung && !signal.aborted) {
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
    this.#rung = false;
  }
}
