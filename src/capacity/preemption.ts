import { virtualNodeOf } from './ledger.ts';
import { shortOf } from './allowance.ts';
import type { FitShape } from './fit-shape.ts';
import type { FitShapes } from './fit-shapes.ts';
import { interPodCheck } from './inter-pod-constraints.ts';
import type { AdmittedRequest } from './namespace-rules.ts';
import type { NodeTable } from './node-table.ts';
import type { PodCounts } from './pod-counts.ts';
import type { HeldPod, PlacedPod } from './pods-on-nodes.ts';
import type { Reservations } from './reservations.ts';
import { type Candidate, compareVictims, type Grant, type RoomWithout, type Victims, victimsAmong } from './victims.ts';
import { type Amounts, NOTHING } from '../kube/amounts.ts';

export interface PreemptionOptions {
  readonly hostId: string;
  readonly table: NodeTable;
  readonly shapes: FitShapes;
  readonly podCounts: PodCounts;
  readonly reservations: Pick<Reservations, 'placedAs' | 'leaving'>;
  /** A pod of the host, by its UID, where it is on a node of the member. */
  readonly ours: (podUid: string) => HeldPod | undefined;
}

/** A candidate where it is in the member. There may be thousands, of which a few are looked at: it is asked when that is so. */
class Removable implements Candidate {
  readonly #candidate: Candidate;
  readonly placed: PlacedPod;
  readonly requests: Amounts;

  constructor(candidate: Candidate, placed: PlacedPod, requests: Amounts) {
    this.#candidate = candidate;
    this.placed = placed;
    this.requests = requests;
  }

  get uid(): string {
    return this.#candidate.uid;
  }

  get priority(): number {
    return this.#candidate.priority;
  }

  get since(): number {
    return this.#candidate.since;
  }

  get budgets(): readonly Grant[] {
    return this.#candidate.budgets;
  }
}

/** So many nodes where evictions would help are compared, as kube-scheduler does on large clusters. */
const ENOUGH_NODES = 100;

/** Finds the pods of the host that have to leave a member for another one to fit there. */
export class Preemption {
  readonly #o: PreemptionOptions;

  constructor(options: PreemptionOptions) {
    this.#o = options;
  }

  /**
   * `left`: what headroom and caps leave; a resource that is not in it is not limited. `hostRoom`: what the virtual node has left of the
   * request's `hostCount`.
   */
  victims(
    admitted: AdmittedRequest,
    candidates: readonly Candidate[],
    left: Amounts,
    hostRoom: Amounts,
  ): Victims | undefined {
    const { virtualNode, hostCount = NOTHING } = admitted.request;
    const there = this.#find(virtualNode, candidates);
    const inMember = new Allowance(admitted.requests, left);
    const forHost = new Allowance(hostCount, hostRoom);
    const inBoth = new InAll([inMember, forHost]);
    const leaving = this.#leavingBeside(there);
    for (const pod of leaving) {
      if (virtualNodeOf(pod.source, this.#o.hostId) === virtualNode) inBoth.take(pod);
    }
    if (this.#someNodeFits(admitted)) return victimsAmong<Removable>(there, inBoth);
    const { table, shapes } = this.#o;
    const shape = shapes.of(admitted.parts, admitted.shapeKey);
    const leavingRows = byRow(leaving, ({ row }) => row);
    const found = this.#onOneNode(admitted, there, new RoomOnRow(table, shape, new InAll([inMember])), leavingRows);
    if (found === undefined || forHost.fitsWithout(found.victims.pods)) return found?.victims;
    // Others, too, wherever they are: the host's scheduler would not let it there beside them.
    const room = new RoomOnRow(table, shape, inBoth);
    const more = this.#onRow(found.row, there, room, leavingRows);
    return more !== undefined && this.#mayJoin(found.row, admitted, more) ? more : undefined;
  }

  /** Those whose leaving lets it onto the node where least is lost. */
  #onOneNode(
    admitted: AdmittedRequest,
    there: readonly Removable[],
    room: RoomOnRow,
    leavingRows: ReadonlyMap<number, readonly HeldPod[]>,
  ): { row: number; victims: Found } | undefined {
    let best: { row: number; victims: Found } | undefined;
    let helped = 0;
    for (const [row, onRow] of byRow(there, ({ placed }) => placed.row)) {
      const victims = this.#onRow(row, onRow, room, leavingRows);
      if (victims === undefined) continue;
      const isBetter = best === undefined || compareVictims(victims, best.victims) < 0;
      if (isBetter && this.#mayJoin(row, admitted, victims)) best = { row, victims };
      helped += 1;
      if (helped === ENOUGH_NODES) break;
    }
    return best;
  }

  /** Those of the candidates whose leaving lets it onto that node, without those that leave it for others already. */
  #onRow(
    row: number,
    candidates: readonly Removable[],
    room: RoomOnRow,
    leavingRows: ReadonlyMap<number, readonly HeldPod[]>,
  ): Found | undefined {
    const { table } = this.#o;
    const leaving = leavingRows.get(row) ?? [];
    for (const pod of leaving) table.lift(row, pod);
    room.row = row;
    const victims = victimsAmong<Removable>(candidates, room);
    for (const pod of leaving) table.putBack(row, pod);
    return victims;
  }

  /** Those of the candidates that hold room behind the virtual node, and are not on their way out of it. */
  #find(virtualNode: string, candidates: readonly Candidate[]): Removable[] {
    const { hostId, ours, reservations } = this.#o;
    const found: Removable[] = [];
    for (const candidate of candidates) {
      const pod = ours(candidate.uid);
      if (pod !== undefined && virtualNodeOf(pod.source, hostId) === virtualNode) {
        if (!pod.deleting) found.push(new Removable(candidate, pod, pod.requests));
        continue;
      }
      const reserved = reservations.placedAs(candidate.uid);
      if (reserved !== undefined) found.push(new Removable(candidate, reserved.placed, reserved.requests));
    }
    return found;
  }

  /** Pods that leave for others, whose room is set aside already: both together would count twice. */
  #leavingBeside(candidates: readonly Candidate[]): HeldPod[] {
    const leaving = this.#o.reservations.leaving();
    if (leaving.size === 0) return [];
    const uids = new Set(candidates.map(({ uid }) => uid));
    return [...leaving].filter(([uid]) => !uids.has(uid)).map(([, pod]) => pod);
  }

  #someNodeFits({ parts, shapeKey, request }: AdmittedRequest): boolean {
    const { table, shapes, podCounts } = this.#o;
    const shape = shapes.of(parts, shapeKey);
    if (shape.real === 0) return false;
    const check = interPodCheck(request.interPod, parts.choice, podCounts, table);
    for (let row = 0; row < table.rows; row++) {
      if (shape.fits(row) && !table.isElastic(row) && check?.(row) === undefined) return true;
    }
    return false;
  }

  /** Whether inter-pod constraints let the pod onto the row once these are gone. */
  #mayJoin(row: number, { parts, request }: AdmittedRequest, { pods }: Found): boolean {
    const { table, podCounts } = this.#o;
    const gone = pods.filter(({ placed }) => placed.row === row);
    for (const { placed } of gone) podCounts.remove(placed);
    const check = interPodCheck(request.interPod, parts.choice, podCounts, table);
    const may = check?.(row) === undefined;
    for (const { placed } of gone) podCounts.add(placed);
    return may;
  }
}

type Found = Victims<Removable>;

type WithRequests = Pick<Removable, 'requests'>;

/** What headroom and caps, or the counting of the host, leave while some pods are out. */
class Allowance {
  readonly #requests: Amounts;
  readonly #left: Map<string, bigint>;

  constructor(requests: Amounts, left: Amounts) {
    this.#requests = requests;
    this.#left = new Map(left);
  }

  take({ requests }: WithRequests): void {
    this.#add(requests, 1n);
  }

  putBack({ requests }: WithRequests): void {
    this.#add(requests, -1n);
  }

  fits(): boolean {
    return shortOf(this.#requests, (name) => this.#left.get(name)) === undefined;
  }

  fitsWithout(pods: readonly WithRequests[]): boolean {
    for (const pod of pods) this.take(pod);
    const fits = this.fits();
    for (const pod of pods) this.putBack(pod);
    return fits;
  }

  #add(requests: Amounts, times: 1n | -1n): void {
    for (const [name, before] of this.#left) this.#left.set(name, before + times * (requests.get(name) ?? 0n));
  }
}

/** Room in each of them. */
class InAll implements RoomWithout<Removable> {
  readonly #allowances: readonly Allowance[];

  constructor(allowances: readonly Allowance[]) {
    this.#allowances = allowances;
  }

  take(one: WithRequests): void {
    for (const allowance of this.#allowances) allowance.take(one);
  }

  putBack(one: WithRequests): void {
    for (const allowance of this.#allowances) allowance.putBack(one);
  }

  fits(): boolean {
    return this.#allowances.every((allowance) => allowance.fits());
  }
}

/** Room on one row after the other; what pods on other rows leave counts where all rows do. */
class RoomOnRow implements RoomWithout<Removable> {
  readonly #table: NodeTable;
  readonly #shape: FitShape;
  readonly #beside: InAll;
  row = 0;

  constructor(table: NodeTable, shape: FitShape, beside: InAll) {
    this.#table = table;
    this.#shape = shape;
    this.#beside = beside;
  }

  take(one: Removable): void {
    if (one.placed.row === this.row) this.#table.lift(this.row, one.placed);
    this.#beside.take(one);
  }

  putBack(one: Removable): void {
    if (one.placed.row === this.row) this.#table.putBack(this.row, one.placed);
    this.#beside.putBack(one);
  }

  fits(): boolean {
    return this.#shape.wouldFit(this.row) && this.#beside.fits();
  }
}

function byRow<P>(pods: readonly P[], rowOf: (pod: P) => number): Map<number, P[]> {
  const rows = new Map<number, P[]>();
  for (const one of pods) {
    const row = rowOf(one);
    const there = rows.get(row);
    if (there === undefined) rows.set(row, [one]);
    else there.push(one);
  }
  return rows;
}
