/** What the engine keeps for a layout, and for each field in it, its name included. */
const LAYOUT = 80;
const FIELD = 144;
/** What is remembered is kept here, too. */
const REMEMBERED = 2;
/** Layouts that take more than this together are not remembered: no honest cluster has so many. */
const MOST_BYTES = 2 * 1024 * 1024;

/**
 * Layouts of objects that were seen before: the names of their fields in their order. The engine describes each layout once for
 * all objects that have it, which is a hundred bytes and more a field: nothing where layouts are few, and most of what there
 * is where each object has another one.
 */
export class KnownLayouts {
  readonly start = new Layout();
  #bytes = 0;

  /** What is remembered takes as much, and goes on to. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What an object takes for a layout of these names: nothing beside {@link bytes} where it is remembered from now on. */
  learn(names: readonly string[]): number {
    let there: Layout | undefined = this.start;
    let cost = LAYOUT;
    for (const name of names) {
      there = there?.after(name);
      cost += FIELD + 2 * name.length;
    }
    if (there?.known === true) return 0;
    if (this.#bytes + cost * REMEMBERED > MOST_BYTES) return cost;
    this.#bytes += cost * REMEMBERED;
    let layout = this.start;
    for (const name of names) layout = layout.grow(name);
    layout.known = true;
    return 0;
  }
}

/** A place on the way to layouts that begin with the same names. Nearly all have one way on, which is found without a table. */
export class Layout {
  known = false;
  private name: string | undefined;
  private next: Layout | undefined;
  private others: Map<string, Layout> | undefined;

  after(name: string): Layout | undefined {
    return name === this.name ? this.next : this.others?.get(name);
  }

  grow(name: string): Layout {
    const there = this.after(name);
    if (there !== undefined) return there;
    const next = new Layout();
    if (this.next === undefined) {
      this.name = name;
      this.next = next;
    } else {
      this.others ??= new Map();
      this.others.set(name, next);
    }
    return next;
  }
}
