import { expect } from 'vitest';
import { until } from '../../hack/until.ts';
import { describeWrite, newNamespace, writesOf } from '../fixtures/live-pods.ts';
import { isPodOf, type Lab, numbered, wait } from './lab.ts';

/** Their namespace, and how their names begin. */
export const STEADY = 'steady';

/** Fifty pods that run before anything breaks, and to which nothing may happen. */
export class SteadyPods {
  readonly #lab: Lab;
  readonly #before: unknown[];
  readonly #since: number;

  private constructor(lab: Lab, before: unknown[]) {
    this.#lab = lab;
    this.#before = before;
    this.#since = Date.now();
  }

  /** Waits until they run and nothing is being written any more. */
  static async run(lab: Lab): Promise<SteadyPods> {
    await newNamespace(lab.host, STEADY);
    await lab.runPods(STEADY, numbered(50, STEADY));
    let before: unknown[] = [];
    await until('nothing is being written any more', async () => {
      before = await lab.lives(STEADY);
      await wait(3_000);
      return JSON.stringify(before) === JSON.stringify(await lab.lives(STEADY));
    });
    return new SteadyPods(lab, before);
  }

  /** They are as they were. */
  async expectAlive(): Promise<void> {
    expect(await this.#lab.lives(STEADY)).toEqual(this.#before);
  }

  /** Nor did anybody write to them in either cluster. */
  async expectUntouched(): Promise<void> {
    for (const cluster of [this.#lab.host, this.#lab.member]) {
      expect(writesOf(cluster, this.#since).filter(isPodOf(STEADY)).map(describeWrite), cluster.name).toEqual([]);
    }
    await this.expectAlive();
  }
}
