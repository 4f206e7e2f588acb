/** In the names of lives alone: nobody else who changes a cluster has one in theirs. */
const LIFE = '#';

/** One life of one replica of the program. When it ends nothing of it ever runs again. */
export class SimProcess {
  readonly name: string;
  /** The machine or pod it runs in: a successor in the same place inherits what the kernel gives back. */
  readonly place: string;
  alive = true;
  /** How far its wall clock is off, in ms. */
  clockOffsetMs = 0;
  /** Sockets without a file that it listens on. */
  readonly sockets = new Set<string>();
  /** What answers on the ports that it listens on. */
  readonly ports = new Map<number, unknown>();
  /** Why it ended by itself. */
  failure: unknown;

  /** @param life counts the lives in that place */
  constructor(place: string, life: number) {
    this.name = `${place}${LIFE}${life}`;
    this.place = place;
  }
}

/** Whether a change is the program's own. `by`: who made it. */
export function isOfProgram(by: string): boolean {
  return by.includes(LIFE);
}

/** Where a life of the program is that changed something. */
export function placeOf(by: string): string {
  return by.slice(0, by.indexOf(LIFE));
}
