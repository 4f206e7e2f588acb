import { slotsInAllowance, whyOverAllowance } from './allowance.ts';
import type { Amounts } from '../kube/amounts.ts';
import { elasticGroupOf } from './elastic.ts';
import type { FitAnswer, FitReason } from './fit-answer.ts';
import { reasonsOf } from './fit-reasons.ts';
import type { FitRequest } from './fit-request.ts';
import type { FitShape } from './fit-shape.ts';
import type { FitShapes } from './fit-shapes.ts';
import { slotsByHostCount, whyOverHostCount } from './host-count.ts';
import { interPodCheck, type InterPodCheck } from './inter-pod-constraints.ts';
import { interPodSlots } from './inter-pod-slots.ts';
import { raiseToSlots } from './largest-slot.ts';
import type { AdmittedRequest, NamespaceRules } from './namespace-rules.ts';
import type { NodeChoice } from './node-choice.ts';
import type { NodeTable } from './node-table.ts';
import type { PodCounts } from './pod-counts.ts';

export interface FitAnswersOptions {
  readonly table: NodeTable;
  readonly shapes: FitShapes;
  readonly rules: NamespaceRules;
  readonly podCounts: PodCounts;
  /** What the virtual node of a request may take yet. */
  readonly allowanceFor: (admitted: AdmittedRequest) => Amounts;
  /** What it has left of the request's `hostCount`. */
  readonly hostRoomFor: (request: FitRequest) => Amounts;
}

const NO_DEMAND = { key: '', amounts: [] };

/** Where a pod has room, computed anew each time from the tables of nodes, shapes and pods. */
export class FitAnswers {
  readonly #o: FitAnswersOptions;

  constructor(options: FitAnswersOptions) {
    this.#o = options;
  }

  /** Whether the pod can run on some node. */
  answer(admitted: AdmittedRequest): FitAnswer {
    const { rules, table } = this.#o;
    if (admitted.refused !== undefined) return refused(admitted.refused);
    const overQuota = rules.whyOverQuota(admitted);
    if (overQuota !== undefined) return refused(overQuota);
    const overAllowance = whyOverAllowance(admitted.requests, this.#o.allowanceFor(admitted));
    if (overAllowance !== undefined) return refused(overAllowance);
    const { hostCount } = admitted.request;
    const overHostCount = hostCount && whyOverHostCount(hostCount, this.#o.hostRoomFor(admitted.request));
    if (overHostCount !== undefined) return refused(overHostCount);
    const shape = this.#shapeOf(admitted);
    const check = this.interPodCheckOf(admitted);
    if (check === undefined && shape.real > 0) return { fits: true, nodes: shape.real };
    const nodes = this.#open(shape, check);
    return nodes > 0 ? { fits: true, nodes } : refusedBy(() => reasonsOf(shape, check, table));
  }

  /** Names of the nodes that can take the pod, those that do not exist yet left out. */
  nodes(admitted: AdmittedRequest): string[] {
    const { table } = this.#o;
    const shape = this.#shapeOf(admitted);
    const check = this.interPodCheckOf(admitted);
    const names: string[] = [];
    for (let row = 0; row < table.rows; row++) {
      const node = shape.fits(row) && check?.(row) === undefined ? table.node(row) : undefined;
      if (node !== undefined && elasticGroupOf(node) === undefined) names.push(node.metadata.name);
    }
    return names;
  }

  /** How many such pods fit together. */
  slots(admitted: AdmittedRequest): number {
    if (admitted.refused !== undefined) return 0;
    const { rules, table, podCounts } = this.#o;
    const limit = Math.min(
      rules.slotsInQuota(admitted),
      slotsInAllowance(admitted.requests, this.#o.allowanceFor(admitted)),
      slotsByHostCount(admitted, this.#o.hostRoomFor(admitted.request)),
    );
    const shape = this.#shapeOf(admitted);
    if (limit === 0 || shape.real + shape.elastic === 0) return 0;
    const check = this.interPodCheckOf(admitted);
    const { interPod } = admitted.request;
    const hasInterPod = interPod.affinity.length + interPod.antiAffinity.length + interPod.spread.length > 0;
    if (check === undefined && !hasInterPod) return Math.min(limit, shape.slots);
    const open = new Map<number, number>();
    let sum = 0;
    for (let row = 0; row < table.rows; row++) {
      if (!shape.fits(row) || check?.(row) !== undefined) continue;
      const slots = shape.slotsOn(row);
      sum += slots;
      if (hasInterPod) open.set(row, slots);
    }
    if (hasInterPod) sum = interPodSlots(open, interPod, admitted.parts.choice, podCounts, table);
    return Math.min(limit, sum);
  }

  /** The most that one node of the choices has free, each resource by itself; undefined when there is no such node. */
  largestFreeSlot(choices: readonly NodeChoice[]): Amounts | undefined {
    const { shapes, table } = this.#o;
    const largest = new Map<string, bigint>();
    for (const choice of choices) {
      raiseToSlots(largest, shapes.of({ choice, demand: NO_DEMAND, hostPorts: [] }), table);
    }
    return largest.size === 0 ? undefined : largest;
  }

  /** Undefined: inter-pod constraints let the pod onto every row. */
  interPodCheckOf({ request, parts }: AdmittedRequest): InterPodCheck | undefined {
    return interPodCheck(request.interPod, parts.choice, this.#o.podCounts, this.#o.table);
  }

  #shapeOf({ parts, shapeKey }: AdmittedRequest): FitShape {
    return this.#o.shapes.of(parts, shapeKey);
  }

  /** How many nodes can take the pod; when none can, how many of those that do not exist yet. */
  #open(shape: FitShape, check: InterPodCheck | undefined): number {
    if (shape.real + shape.elastic === 0) return 0;
    const { table } = this.#o;
    let [real, elastic] = [0, 0];
    for (let row = 0; row < table.rows; row++) {
      if (!shape.fits(row) || check?.(row) !== undefined) continue;
      if (table.isElastic(row)) elastic += 1;
      else real += 1;
    }
    return real > 0 ? real : elastic;
  }
}

/** Every node is looked at for its reasons: only once somebody wants to know them. */
function refusedBy(reasonsNow: () => FitReason[]): FitAnswer {
  let reasons: FitReason[] | (() => FitReason[]) = reasonsNow;
  return {
    fits: false,
    get reasons() {
      if (typeof reasons === 'function') reasons = reasons();
      return reasons;
    },
  };
}

function refused(text: string): FitAnswer {
  return { fits: false, reasons: [{ text, nodes: 0 }] };
}
