import type { Amounts } from '../kube/amounts.ts';
import type { ElasticGroup } from './elastic.ts';
import { elasticGroupOf } from './elastic.ts';
import type { FitShapes } from './fit-shapes.ts';
import type { Coming } from './ledger.ts';
import type { NamespaceRules, AdmittedRequest } from './namespace-rules.ts';
import type { Column, NodeTable } from './node-table.ts';
import type { HeldPod, PlacedPod } from './pods-on-nodes.ts';

/**
 * Who says that a pod is on its way: the scheduler that chose the place, the host where it is bound, or the member where it
 * waits for its node; `stuck`: where it waits for room, as no node had any.
 */
export type ReservationHolder = 'choice' | 'binding' | 'member' | 'stuck';

interface Reservation {
  readonly admitted: AdmittedRequest;
  readonly holders: Set<ReservationHolder>;
  placed: PlacedPod | undefined;
  /** Those that are evicted for it, by their UIDs in the host, as long as they take room. */
  readonly insteadOf: Map<string, HeldPod>;
  /** Counted in {@link NamespaceRules}. */
  inQuota: boolean;
}

export interface ReservationsOptions {
  readonly table: NodeTable;
  readonly shapes: FitShapes;
  readonly rules: NamespaceRules;
  /** Whether inter-pod constraints let the pod onto a row; asked for nodes that have room. */
  readonly mayJoin: (admitted: AdmittedRequest) => (row: number) => boolean;
  /** A pod was put on a row or taken off it. */
  readonly added: (pod: PlacedPod) => void;
  readonly removed: (pod: PlacedPod) => void;
}

/** How many pods that found no room are tried again at a look. */
const MAX_TRIES = 64;

/**
 * Pods that are on their way to the member. Each one sits on the node where the member's scheduler would most likely put
 * it, and takes its room there like a pod that runs; one that finds no room holds nothing and tries again when something
 * changes. When the real pods come and go, reservations give way and move. One that others are evicted for sits on their node before
 * they have left it: nobody else has the room in between.
 */
export class Reservations {
  readonly #o: ReservationsOptions;
  readonly #all = new Map<string, Reservation>();
  readonly #byRow = new Map<number, Set<string>>();
  /** Rows that changed under reservations, and whether the node itself did. */
  readonly #disturbed = new Map<number, boolean>();
  /** Those that found no room, the one that was tried longest ago first. */
  readonly #homeless = new Set<string>();
  /** So many of them, the first ones, are to be tried once more since the table changed. */
  #toTry = 0;
  /** Those that others still leave for. */
  readonly #awaited = new Set<Reservation>();
  /** Those that stand aside for as long as a question takes, and the row to which they go back; undefined: they have none. */
  readonly #lifted = new Map<string, number | undefined>();
  #triedAt = -1;
  #moving = false;

  constructor(options: ReservationsOptions) {
    this.#o = options;
  }

  get size(): number {
    return this.#all.size;
  }

  *values(): Generator<PlacedPod> {
    for (const { placed } of this.#all.values()) if (placed !== undefined) yield placed;
  }

  /**
   * Those that have room on a node; `bound`: of pods that are bound in the host, so without those that are only being chosen for. Nor
   * those whose room is kept for a moment: the Node would still be reported without it when that is over.
   */
  *coming({ bound }: { bound: boolean }): Generator<Coming> {
    for (const { admitted, placed, holders } of this.#all.values()) {
      if (placed === undefined) continue;
      if (bound && holders.size === 1 && (holders.has('choice') || holders.has('stuck'))) continue;
      const node = this.#o.table.node(placed.row)?.metadata.name ?? '';
      yield { node, virtualNode: admitted.request.virtualNode, requests: admitted.requests };
    }
  }

  /** The pod as it sits on its row; undefined when it has none. */
  placedAs(podUid: string): { placed: PlacedPod; requests: Amounts } | undefined {
    const known = this.#all.get(podUid);
    return known?.placed === undefined ? undefined : { placed: known.placed, requests: known.admitted.requests };
  }

  has(podUid: string): boolean {
    return this.#all.has(podUid);
  }

  /** The group of the node that does not exist yet on which the pod sits. */
  elasticGroupOf(podUid: string): ElasticGroup | undefined {
    const placed = this.#all.get(podUid)?.placed;
    const node = placed === undefined ? undefined : this.#o.table.node(placed.row);
    return node === undefined ? undefined : elasticGroupOf(node);
  }

  /** Pods that leave their row for reservations which sit there already, by their UIDs in the host: each leaves once, for whomever. */
  leaving(): ReadonlyMap<string, HeldPod> {
    const leaving = new Map<string, HeldPod>();
    for (const { placed, insteadOf } of this.#awaited) {
      for (const [podUid, victim] of insteadOf) if (victim.row === placed?.row) leaving.set(podUid, victim);
    }
    return leaving;
  }

  /** A pod of the host takes no room any more. */
  left(podUid: string): void {
    for (const reservation of this.#awaited) {
      if (reservation.insteadOf.delete(podUid) && reservation.insteadOf.size === 0) this.#awaited.delete(reservation);
    }
  }

  /**
   * `countsInQuota`: the member's own figures do not contain the pod yet. `insteadOf`: pods that are evicted for it and take room still,
   * by their UIDs in the host.
   */
  reserve(
    podUid: string,
    admitted: AdmittedRequest,
    holder: ReservationHolder,
    countsInQuota: boolean,
    insteadOf: ReadonlyMap<string, HeldPod> = new Map(),
  ): void {
    const known = this.#all.get(podUid);
    if (known !== undefined && known.admitted.request.key === admitted.request.key) {
      known.holders.add(holder);
      this.putBack(podUid);
      if (known.placed === undefined) this.#place(podUid, known);
      if (!countsInQuota) this.#leaveQuota(known);
      return;
    }
    const holders = new Set(known?.holders).add(holder);
    const inQuota = countsInQuota && (known?.inQuota ?? true);
    this.drop(podUid);
    const reservation: Reservation = { admitted, holders, placed: undefined, insteadOf: new Map(insteadOf), inQuota };
    this.#all.set(podUid, reservation);
    if (insteadOf.size > 0) this.#awaited.add(reservation);
    if (inQuota) this.#o.rules.reserve(admitted, 1n);
    this.#place(podUid, reservation);
  }

  /** One holder more of a pod that is on its way; false: there is no such pod. */
  join(podUid: string, holder: ReservationHolder): boolean {
    return this.#all.get(podUid)?.holders.add(holder) !== undefined;
  }

  /**
   * What is only being chosen for the pod counts as free, until {@link putBack}: for whoever asks meanwhile, and not for the homeless.
   * False: nothing of the kind is set aside.
   */
  lift(podUid: string): boolean {
    const known = this.#all.get(podUid);
    if (known === undefined || this.#lifted.has(podUid)) return false;
    if (known.holders.size > 1 || !known.holders.has('choice')) return false;
    if (this.#lifted.size === 0) this.settle();
    this.#lifted.set(podUid, known.placed?.row);
    this.#unplace(podUid, known);
    if (known.inQuota) this.#o.rules.reserve(known.admitted, -1n);
    return true;
  }

  /** To where it was, unless somebody was given that room meanwhile. */
  putBack(podUid: string): void {
    const known = this.#all.get(podUid);
    const row = this.#lifted.get(podUid);
    if (known === undefined || !this.#lifted.delete(podUid)) return;
    if (known.inQuota) this.#o.rules.reserve(known.admitted, 1n);
    if (row === undefined) return;
    const isLeftFor = [...known.insteadOf.values()].some((victim) => victim.row === row);
    const isThere = this.#o.table.node(row) !== undefined;
    if (isThere && (isLeftFor || this.#fitsOn(known.admitted, row))) this.#put(podUid, known, row);
    else this.#place(podUid, known);
  }

  /** One holder less; with the last one the room is free again. */
  release(podUid: string, holder: ReservationHolder): void {
    const known = this.#all.get(podUid);
    if (known === undefined) return;
    known.holders.delete(holder);
    if (known.holders.size === 0) this.drop(podUid);
  }

  /** The pod is there, or will never come. */
  drop(podUid: string): void {
    const known = this.#all.get(podUid);
    if (known === undefined) return;
    if (this.#lifted.delete(podUid) && known.inQuota) this.#o.rules.reserve(known.admitted, 1n);
    this.#unplace(podUid, known);
    this.#leaveQuota(known);
    this.#awaited.delete(known);
    this.#homeless.delete(podUid);
    this.#all.delete(podUid);
  }

  /** To be told of each change of a row; `nodeItself`: not only what is free on it. */
  rowChanged(row: number, nodeItself: boolean): void {
    if (this.#moving || !this.#byRow.has(row)) return;
    this.#disturbed.set(row, nodeItself || this.#disturbed.get(row) === true);
  }

  /** Moves reservations from where there is no room for them any more, and gives the homeless another try. */
  settle(): void {
    if (this.#lifted.size > 0) return;
    if (this.#disturbed.size > 0) this.#settleRows();
    if (this.#homeless.size === 0) return;
    if (this.#triedAt !== this.#o.table.version) this.#toTry = this.#homeless.size;
    let tries = Math.min(this.#toTry, this.#homeless.size, MAX_TRIES);
    this.#toTry -= tries;
    for (const podUid of this.#homeless) {
      if (tries-- === 0) break;
      // To the end, if it finds none again.
      this.#homeless.delete(podUid);
      const reservation = this.#all.get(podUid);
      if (reservation !== undefined) this.#place(podUid, reservation);
    }
    this.#triedAt = this.#o.table.version;
  }

  #settleRows(): void {
    for (const [row, nodeItself] of this.#disturbed) {
      // In a burst rows change all the time, and all of their reservations would be looked at each time.
      if (nodeItself || !this.#o.table.hasRoomForAll(row)) this.#settleRow(row);
    }
    this.#disturbed.clear();
  }

  #settleRow(row: number): void {
    // A copy: pods that stay are taken off and put back.
    const there = Array.from(this.#byRow.get(row) ?? []);
    for (const podUid of there) {
      const reservation = this.#all.get(podUid);
      if (reservation === undefined) continue;
      // Without itself, does it still have room where it is?
      const { placed } = reservation;
      this.#unplace(podUid, reservation);
      if (placed !== undefined && this.#fitsOn(reservation.admitted, row)) {
        this.#put(podUid, reservation, row);
      } else {
        this.#place(podUid, reservation);
      }
    }
  }

  #fitsOn({ parts, shapeKey }: AdmittedRequest, row: number): boolean {
    return this.#o.shapes.of(parts, shapeKey).fits(row);
  }

  #place(podUid: string, reservation: Reservation): void {
    const row = this.#bestRow(reservation.admitted) ?? this.#rowLeftFor(reservation);
    if (row === undefined) this.#homeless.add(podUid);
    else this.#put(podUid, reservation, row);
  }

  #rowLeftFor({ insteadOf }: Reservation): number | undefined {
    for (const { row } of insteadOf.values()) if (this.#o.table.node(row) !== undefined) return row;
    return undefined;
  }

  #put(podUid: string, reservation: Reservation, row: number): void {
    const { table, added } = this.#o;
    const { parts, request } = reservation.admitted;
    const { labelledPod, antiAffinity } = request.interPod;
    const { demand, hostPorts } = parts;
    const placed: PlacedPod = { ...labelledPod, row, deleting: false, demand, hostPorts, antiAffinity };
    this.#homeless.delete(podUid);
    reservation.placed = placed;
    const there = this.#byRow.get(row) ?? new Set<string>();
    this.#byRow.set(row, there.add(podUid));
    this.#quietly(() => {
      table.addPod(table.node(row)?.metadata.name ?? '', placed);
      added(placed);
    });
  }

  #unplace(podUid: string, reservation: Reservation): void {
    const { placed } = reservation;
    if (placed === undefined) return;
    reservation.placed = undefined;
    const there = this.#byRow.get(placed.row);
    there?.delete(podUid);
    if (there?.size === 0) this.#byRow.delete(placed.row);
    this.#quietly(() => {
      this.#o.removed(placed);
      this.#o.table.removePod(placed.row, placed);
    });
  }

  /** Where kube-scheduler would most likely put it: the node with the largest part of its CPU and memory free. */
  #bestRow(admitted: AdmittedRequest): number | undefined {
    const { table, shapes } = this.#o;
    const shape = shapes.of(admitted.parts, admitted.shapeKey);
    if (shape.real + shape.elastic === 0) return undefined;
    const mayJoin = this.#o.mayJoin(admitted);
    const [cpu, memory] = [table.column('cpu'), table.column('memory')];
    let best: number | undefined;
    let bestScore = -Infinity;
    for (let row = 0; row < table.rows; row++) {
      if (!shape.fits(row) || !mayJoin(row)) continue;
      // A node that does not exist yet comes after all others.
      const score = freePart(cpu, row) + freePart(memory, row) - (table.isElastic(row) ? 10 : 0);
      if (score > bestScore) [best, bestScore] = [row, score];
    }
    return best;
  }

  #leaveQuota(reservation: Reservation): void {
    if (reservation.inQuota) this.#o.rules.reserve(reservation.admitted, -1n);
    reservation.inQuota = false;
  }

  #quietly(work: () => void): void {
    const before = this.#moving;
    this.#moving = true;
    work();
    this.#moving = before;
  }
}

function freePart(column: Column | undefined, row: number): number {
  return (column?.free[row] ?? 0) / Math.max(1, column?.allocatable[row] ?? 0);
}
