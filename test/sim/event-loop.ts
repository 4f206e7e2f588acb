import type { Random } from './random.ts';
import { realSetImmediate } from './real-time.ts';
import type { SimProcess } from './sim-process.ts';

/** Something that will happen at a moment of simulated time, in a process or, without one, in the world. */
export interface Turn {
  readonly at: number;
  readonly tie: number;
  readonly number: number;
  readonly owner: SimProcess | undefined;
  readonly run: () => void;
  cancelled: boolean;
}

/**
 * Simulated time and the order of everything. What falls on the same moment comes in a random order. A turn of a process
 * has ended, promises included, before the next one begins: so whatever a process starts belongs to the one that `current`
 * names.
 */
export class EventLoop {
  /** Milliseconds since the beginning. */
  now = 0;
  /** Whose turn it is; undefined: the world's. */
  current: SimProcess | undefined;
  /** Turns taken so far. */
  turns = 0;
  /** Called after each turn. */
  afterTurn: (() => void) | undefined;
  /** The same, for whoever looks on from outside. */
  onTurn: (() => void) | undefined;
  readonly #random: Random;
  readonly #heap: Turn[] = [];
  #numbers = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** For the process whose turn it is, unless an owner is given. */
  schedule(inMs: number, run: () => void, owner: SimProcess | undefined = this.current): Turn {
    this.#numbers += 1;
    const turn: Turn = {
      at: this.now + Math.max(0, Number.isFinite(inMs) ? inMs : 0),
      tie: this.#random.next(),
      number: this.#numbers,
      owner,
      run,
      cancelled: false,
    };
    push(this.#heap, turn);
    return turn;
  }

  /** For the world: never ends with a process. */
  later(inMs: number, run: () => void): Turn {
    const { current } = this;
    this.current = undefined;
    const turn = this.schedule(inMs, run, undefined);
    this.current = current;
    return turn;
  }

  /** Runs a piece of a process from outside of any turn, to its end. */
  async enter(owner: SimProcess, run: () => void): Promise<void> {
    this.current = owner;
    run();
    await settled();
    this.current = undefined;
  }

  /** Takes all turns up to that moment, at most `most` of them. Returns whether it got there. */
  async runUntil(at: number, most = Number.POSITIVE_INFINITY): Promise<boolean> {
    return await new Promise((resolve, reject) => {
      // Outside of any promise: only there can promises be carried on from within.
      realSetImmediate(() => {
        try {
          resolve(this.#run(at, most));
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }

  #run(at: number, most: number): boolean {
    for (let taken = 0; taken < most;) {
      const next = this.#heap[0];
      if (next === undefined || next.at > at) {
        this.now = Math.max(this.now, at);
        return true;
      }
      pop(this.#heap);
      if (next.cancelled || next.owner?.alive === false) continue;
      taken += 1;
      this.turns += 1;
      this.now = Math.max(this.now, next.at);
      this.current = next.owner;
      next.run();
      if (next.owner !== undefined) settle();
      this.current = undefined;
      this.afterTurn?.();
      this.onTurn?.();
    }
    return false;
  }
}

/** Carries on every promise that can go on, now. Node.js' own, and hundreds of times as fast as waiting for setImmediate. */
const settle = (process as unknown as Record<'_tickCallback', () => void>)['_tickCallback'];

/** When every promise that could go on has done so. */
async function settled(): Promise<void> {
  await new Promise((resolve) => {
    realSetImmediate(resolve);
  });
}

function before(a: Turn, b: Turn): boolean {
  if (a.at !== b.at) return a.at < b.at;
  return a.tie === b.tie ? a.number < b.number : a.tie < b.tie;
}

function push(heap: Turn[], turn: Turn): void {
  let at = heap.length;
  heap.push(turn);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || !before(turn, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = turn;
}

function pop(heap: Turn[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    const left = heap[child];
    const right = heap[child + 1];
    if (left === undefined) break;
    if (right !== undefined && before(right, left)) child += 1;
    const least = child === 2 * at + 1 ? left : right;
    if (least === undefined || !before(least, last)) break;
    heap[at] = least;
    at = child;
  }
  heap[at] = last;
}
