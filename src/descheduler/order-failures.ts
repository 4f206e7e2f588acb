import { ApiError, CredentialsError, describeError, TransportError } from '../kube/errors.ts';
import { isOfOnePod } from './eviction-refusal.ts';

/**
 * What failed in one look at an order. A failure at one of its workloads keeps neither the others from their turns nor what was found from being written; then it is thrown, so
 * that it is logged, and tried again. After one that is about the host as a whole nothing more is asked for: each would fail after another deadline.
 */
export class OrderFailures {
  #first: { readonly error: unknown } | undefined;
  #ofHost: string | undefined;

  /** Why nothing more is asked of the host in this look, in words. */
  get ofHost(): string | undefined {
    return this.#ofHost;
  }

  /** Does something for one workload. `failed`: why it could not, in words. */
  async at<T>(work: () => Promise<T>): Promise<{ readonly done: T } | { readonly failed: string }> {
    if (this.#ofHost !== undefined) return { failed: this.#ofHost };
    try {
      return { done: await work() };
    } catch (error) {
      this.#first ??= { error };
      const failed = `a request failed (${describeError(error)})`;
      if (isOfHost(error)) this.#ofHost = failed;
      return { failed };
    }
  }

  /** Writes down what was found, if that can be. @throws what failed first */
  async afterwards(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#first ??= { error };
    }
    if (this.#first !== undefined) throw this.#first.error;
  }
}

function isOfHost(error: unknown): boolean {
  const isAnswer = error instanceof ApiError || error instanceof TransportError || error instanceof CredentialsError;
  return isAnswer && !isOfOnePod(error);
}
