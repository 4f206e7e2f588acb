import { monotonic } from '../../kube/clock.ts';
import { timestamp } from '../../kube/timestamps.ts';
import { CliError } from '../cli-error.ts';
import { remember, type History } from './history.ts';
import type { PageFacts } from './page-facts.ts';
import { closeUp, lookAt, type Look } from './page-state.ts';
import type { PageState, WorkloadDetail } from './view.ts';

/** A look is good for this long, in ms, however many pages ask. */
const FRESH_MS = 1_500;
/** Or for so many times what it took to read: a page that is left open costs a large cluster no more than a tenth of its time. */
const REST_TIMES = 9;

/** Reads the cluster when somebody asks and the last look is not fresh any more: with no page open nothing is read. */
export class Live {
  readonly #read: () => Promise<PageFacts>;
  readonly #now: () => number;
  readonly #elapsed: () => number;
  #look: Look | undefined;
  #history: History = new Map();
  #trouble = '';
  /** By `elapsed`. */
  #goodUntil = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** @param now wall clock in ms. @param elapsed in ms, for durations. */
  constructor(read: () => Promise<PageFacts>, now: () => number, elapsed: () => number = monotonic) {
    this.#read = read;
    this.#now = now;
    this.#elapsed = elapsed;
  }

  /** Throws what the first look throws; a later one that fails leaves the former, with what the trouble is. */
  async state(): Promise<PageState> {
    const { state } = await this.#newest();
    return { ...state, trouble: this.#trouble };
  }

  async workload(key: string): Promise<WorkloadDetail | undefined> {
    return closeUp(await this.#newest(), this.#history, key);
  }

  async #newest(): Promise<Look> {
    if (this.#elapsed() >= this.#goodUntil) {
      this.#reading ??= this.#readAnew().finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    if (this.#look === undefined) throw new CliError('the cluster was not read yet');
    return this.#look;
  }

  async #readAnew(): Promise<void> {
    const began = this.#elapsed();
    try {
      const facts = await this.#read();
      const now = this.#now();
      this.#look = lookAt(facts, this.#history, now);
      this.#history = remember(this.#history, this.#look.workloads, timestamp(now));
      this.#trouble = '';
    } catch (error) {
      if (this.#look === undefined || !(error instanceof CliError)) throw error;
      this.#trouble = error.reason === undefined ? error.message : `${error.message}: ${error.reason}`;
    } finally {
      const took = this.#elapsed() - began;
      this.#goodUntil = began + took + Math.max(FRESH_MS, took * REST_TIMES);
    }
  }
}
