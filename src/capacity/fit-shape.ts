import type { Demand } from './demand.ts';
import type { HostPort } from './host-ports.ts';
import { VERDICT } from './node-choice.ts';
import type { NodeChoice } from './node-choice.ts';
import type { Column, NodeTable } from './node-table.ts';

/** What is asked of a single node, without a look at other nodes and their pods. */
export interface ShapeParts {
  readonly choice: NodeChoice;
  readonly demand: Demand;
  readonly hostPorts: readonly HostPort[];
}

interface Need {
  readonly resource: string;
  readonly column: Column | undefined;
  readonly amount: number;
}

const NOTHING_FREE = new Float64Array(0);
/** More than any node has, and what its row can hold. */
const MOST_SLOTS = 65_535;
const NO = 0;
const REAL = 1;
const ELASTIC = 2;

export function shapeKeyOf({ choice, demand, hostPorts }: ShapeParts): string {
  return `${demand.key};${hostPorts.map(({ port, ip }) => `${ip}:${port}`).join()};${choice.key}`;
}

/** Which nodes pass the static part of a choice; shared by the shapes that make it. */
export class ChoiceColumn {
  readonly choice: NodeChoice;
  readonly #table: NodeTable;
  #verdicts: Uint8Array = new Uint8Array(0);

  constructor(choice: NodeChoice, table: NodeTable) {
    this.choice = choice;
    this.#table = table;
    this.#verdicts = new Uint8Array(roomFor(table.rows));
    for (let row = 0; row < table.rows; row++) this.refresh(row);
  }

  /** The node of the row has changed. */
  refresh(row: number): void {
    if (row >= this.#verdicts.length) this.#verdicts = longer(this.#verdicts, row + 1);
    const node = this.#table.node(row);
    this.#verdicts[row] = node === undefined ? VERDICT.hidden : this.choice.verdict(node);
  }

  verdict(row: number): number {
    return this.#verdicts[row] ?? VERDICT.hidden;
  }
}

/** Which nodes can take pods of one shape, kept up to date row by row. */
export class FitShape {
  readonly parts: ShapeParts;
  readonly column: ChoiceColumn;
  readonly #table: NodeTable;
  #needs: readonly Need[] = [];
  #amounts: readonly number[] = [];
  #free: readonly Float64Array[] = [];
  #podsFree: Float64Array = NOTHING_FREE;
  #columnsVersion = -1;
  #fits: Uint8Array = new Uint8Array(0);
  #real = 0;
  #elastic = 0;
  /** By row, and their sum: only once somebody has asked for it. */
  #slots: Uint16Array | undefined;
  #slotsInAll = 0;

  constructor(parts: ShapeParts, column: ChoiceColumn, table: NodeTable) {
    this.parts = parts;
    this.column = column;
    this.#table = table;
    this.#fits = new Uint8Array(roomFor(table.rows));
    this.#resolve();
    for (let row = 0; row < table.rows; row++) this.#note(row);
  }

  /** How many nodes can take one. */
  get real(): number {
    return this.#real;
  }

  /** How many of the nodes that do not exist yet could. */
  get elastic(): number {
    return this.#elastic;
  }

  /** How many such pods all nodes together can take by their resources and ports alone. */
  get slots(): number {
    if (this.#slots === undefined) {
      this.#slots = new Uint16Array(this.#fits.length);
      for (let row = 0; row < this.#table.rows; row++) this.#noteSlots(row);
    }
    return this.#slotsInAll;
  }

  fits(row: number): boolean {
    return (this.#fits[row] ?? NO) !== NO;
  }

  /** Whether a node that exists can take one as its row is in the table now, whoever was told of that. */
  wouldFit(row: number): boolean {
    this.#resolve();
    return this.#evaluate(row) === REAL;
  }

  /** Something about the row has changed. */
  refresh(row: number): void {
    if (row >= this.#fits.length) this.#fits = longer(this.#fits, row + 1);
    this.#resolve();
    this.#note(row);
  }

  #note(row: number): void {
    const before = this.#fits[row];
    if (before === REAL) this.#real -= 1;
    else if (before === ELASTIC) this.#elastic -= 1;
    const now = this.#evaluate(row);
    if (now === REAL) this.#real += 1;
    else if (now === ELASTIC) this.#elastic += 1;
    this.#fits[row] = now;
    if (this.#slots !== undefined) this.#noteSlots(row);
  }

  #noteSlots(row: number): void {
    const known = this.#slots;
    if (known === undefined) return;
    const slots = row < known.length ? known : longer(known, row + 1);
    this.#slots = slots;
    const now = Math.min(MOST_SLOTS, this.slotsOn(row));
    this.#slotsInAll += now - (slots[row] ?? 0);
    slots[row] = now;
  }

  /** How many such pods one node can take by its resources and ports alone. */
  slotsOn(row: number): number {
    if (!this.fits(row)) return 0;
    let slots = this.parts.hostPorts.length > 0 ? 1 : (this.#table.podsFree[row] ?? 0);
    for (const { column, amount } of this.#needs) {
      slots = Math.min(slots, Math.floor((column?.free[row] ?? 0) / amount));
    }
    return slots;
  }

  /** Resources that the node of the row lacks. */
  lacking(row: number): string[] {
    this.#resolve();
    return this.#needs
      .filter(({ column, amount }) => !(amount <= (column?.free[row] ?? 0)))
      .map(({ resource }) => resource);
  }

  portsAreFree(row: number): boolean {
    const { hostPorts } = this.parts;
    const taken = hostPorts.length === 0 ? undefined : this.#table.ports(row);
    return taken === undefined || !hostPorts.some((port) => taken.conflicts(port));
  }

  #evaluate(row: number): number {
    if (this.column.verdict(row) !== VERDICT.suits) return NO;
    if (!((this.#podsFree[row] ?? 0) >= 1)) return NO;
    for (let index = 0; index < this.#amounts.length; index++) {
      if (!((this.#amounts[index] ?? 0) <= (this.#free[index]?.[row] ?? 0))) return NO;
    }
    if (!this.portsAreFree(row)) return NO;
    return this.#table.isElastic(row) ? ELASTIC : REAL;
  }

  /** Finds the columns of the resources; one may come to be later. */
  #resolve(): void {
    const { columnsVersion } = this.#table;
    if (this.#columnsVersion === columnsVersion) return;
    this.#columnsVersion = columnsVersion;
    this.#needs = this.parts.demand.amounts.map(({ resource, amount }) => ({
      resource,
      column: this.#table.column(resource),
      amount,
    }));
    this.#amounts = this.#needs.map(({ amount }) => amount);
    this.#free = this.#needs.map(({ column }) => column?.free ?? NOTHING_FREE);
    this.#podsFree = this.#table.podsFree;
  }
}

function roomFor(rows: number): number {
  return Math.max(16, 2 * rows);
}

function longer<T extends Uint8Array | Uint16Array>(values: T, rows: number): T {
  const copy = new (values.constructor as new (length: number) => T)(roomFor(rows));
  copy.set(values);
  return copy;
}
