import { LRUCache } from 'lru-cache';
import { atMost } from '../kube/lru-limit.ts';
import { ChoiceColumn, FitShape, shapeKeyOf } from './fit-shape.ts';
import type { ShapeParts } from './fit-shape.ts';
import type { NodeTable } from './node-table.ts';

/** Shapes of pods that answers are kept ready for. */
const MAX_SHAPES = 128;

/** The shapes that were asked about lately, kept up to date with each change of a node. */
export class FitShapes {
  readonly #table: NodeTable;
  readonly #shapes: LRUCache<string, FitShape>;
  readonly #columns = new Map<string, { column: ChoiceColumn; users: number }>();

  constructor(table: NodeTable) {
    this.#table = table;
    this.#shapes = new LRUCache<string, FitShape>({
      ...atMost(MAX_SHAPES),
      dispose: ({ parts }) => this.#leave(parts.choice.key),
    });
  }

  /** `key` is what {@link shapeKeyOf} says, where it is known. */
  of(parts: ShapeParts, key = shapeKeyOf(parts)): FitShape {
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      const column = this.#columns.get(parts.choice.key) ?? {
        column: new ChoiceColumn(parts.choice, this.#table),
        users: 0,
      };
      column.users += 1;
      this.#columns.set(parts.choice.key, column);
      shape = new FitShape(parts, column.column, this.#table);
      this.#shapes.set(key, shape);
    }
    return shape;
  }

  /** A row has changed. */
  refresh(row: number, nodeItself: boolean): void {
    if (nodeItself) for (const { column } of this.#columns.values()) column.refresh(row);
    for (const shape of this.#shapes.values()) shape.refresh(row);
  }

  #leave(key: string): void {
    const entry = this.#columns.get(key);
    if (entry === undefined) return;
    entry.users -= 1;
    if (entry.users === 0) this.#columns.delete(key);
  }
}
