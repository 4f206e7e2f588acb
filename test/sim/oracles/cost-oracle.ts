import { OWN_COST_ANNOTATION } from '../../../src/placement/deletion-cost.ts';
import { asPod } from '../pod-shapes.ts';
import type { Change } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import type { Report } from './report.ts';

/** How many writes a workload may cause, whatever happens to it, for each pod that comes, and for each that goes. */
const ANYWAY = 40;
const PER_PLACED = 2;
const PER_GONE = 5;

/** Changes of size do not make all pods of a workload be written to. */
export class CostOracle {
  readonly #report: Report;
  /** By UID of the ReplicaSet. */
  readonly #workloads = new Map<string, { placed: number; gone: number; writes: number }>();

  constructor(report: Report) {
    this.#report = report;
  }

  changed({ object, previous, type, by }: Change): void {
    const owner = object['kind'] === 'Pod' ? object.metadata.ownerReferences?.[0] : undefined;
    if (owner?.kind !== 'ReplicaSet') return;
    const counts = this.#workloads.get(owner.uid) ?? { placed: 0, gone: 0, writes: 0 };
    this.#workloads.set(owner.uid, counts);
    if (type === 'DELETED') counts.gone += 1;
    if (previous === undefined || type === 'DELETED') return;
    if (asPod(object).spec.nodeName !== asPod(previous).spec.nodeName) counts.placed += 1;
    const costOf = ({ metadata }: typeof object): string | undefined => metadata.annotations?.[OWN_COST_ANNOTATION];
    if (!isOfProgram(by) || costOf(object) === costOf(previous)) return;
    counts.writes += 1;
    const { placed, gone, writes } = counts;
    if (writes <= ANYWAY + PER_PLACED * placed + PER_GONE * gone) return;
    this.#report(
      'costs',
      `${by} has written deletion costs ${String(writes)} times into pods of ${owner.name}, of which ${String(placed)} got a node and ${String(gone)} went`,
    );
  }
}
