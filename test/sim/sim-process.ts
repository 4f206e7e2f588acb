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

  constructor(name: string, place: string) {
    this.name = name;
    this.place = place;
  }
}
