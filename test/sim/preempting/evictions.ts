import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { asPod } from '../pod-shapes.ts';
import type { SimCluster, SimObject } from '../sim-cluster.ts';
import type { SimProcess } from '../sim-process.ts';
import { podPath } from '../workload-controllers.ts';
import { type NodeSums, priorityOf } from './node-sums.ts';
import type { SchedulerQuestions } from './scheduler-questions.ts';

/** Told of what is done by the word of the extender. */
export interface SchedulingJudge {
  /** A pod goes to one of these. `passing`: all nodes that have room for it by their sums. */
  placed(pod: SimObject, nodes: readonly string[], passing: readonly string[], by: SimProcess | undefined): void;
  /** Nobody answered a question about it, though somebody may have heard it. */
  unanswered(pod: SimObject): void;
  /** For a pod these (UIDs) are about to be evicted from a node. */
  evicts(pod: SimObject, node: string, victims: readonly string[], by: SimProcess | undefined): void;
}

interface EvictionsOptions {
  readonly host: SimCluster;
  readonly sums: NodeSums;
  readonly questions: SchedulerQuestions;
  readonly judge: Pick<SchedulingJudge, 'evicts'>;
  /** Told of answers that no extender may give. */
  readonly tell: (what: string) => void;
}

/** As the plugin DefaultPreemption: pods of lower priority leave one node, which the pod they leave for is nominated to. */
export class Evictions {
  readonly #host: SimCluster;
  readonly #sums: NodeSums;
  readonly #questions: SchedulerQuestions;
  readonly #judge: EvictionsOptions['judge'];
  readonly #tell: (what: string) => void;

  constructor({ host, sums, questions, judge, tell }: EvictionsOptions) {
    this.#host = host;
    this.#sums = sums;
    this.#questions = questions;
    this.#judge = judge;
    this.#tell = tell;
  }

  /** `mayBeFreed`: nodes that did not take it. `isPending`: it waits still. */
  async preempt(pod: SimObject, mayBeFreed: ReadonlySet<string>, isPending: () => boolean): Promise<void> {
    const nominated = asPod(pod).status?.nominatedNodeName ?? '';
    if (mayBeFreed.has(nominated) && this.#sums.lowerOn(nominated, pod).some(isEvicted)) return;
    let victims = new Map<string, readonly string[]>();
    for (const name of mayBeFreed) {
      const found = this.#sums.victimsOn(name, pod);
      if (found !== undefined) victims.set(name, found);
    }
    let by: SimProcess | undefined;
    for (let extender = 0; extender < 2 && victims.size > 0; extender += 1) {
      const asked = [...victims].map(([node, uids]) => [
        node,
        { Pods: uids.map((UID) => ({ UID })), NumPDBViolations: 0 },
      ]);
      const answer = await this.#questions.ask('preempt', {
        Pod: pod,
        NodeNameToMetaVictims: Object.fromEntries(asked),
      });
      if (answer === undefined && extender === 0) continue;
      if (answer === undefined) return;
      ({ by } = answer);
      const said = answer.said as { NodeNameToMetaVictims: Record<string, { Pods: { UID: string }[] }> };
      victims = new Map(
        Object.entries(said.NodeNameToMetaVictims).map(([node, { Pods }]) => [node, Pods.map(({ UID }) => UID)]),
      );
    }
    if (!isPending()) return;
    const [chosen] = [...victims].toSorted(
      ([, a], [, b]) => this.#dearest(a) - this.#dearest(b) || a.length - b.length,
    );
    if (chosen !== undefined) this.#evict(pod, chosen, by);
    else if (nominated !== '') this.#say(podPath(pod), { nominatedNodeName: null });
  }

  #dearest(uids: readonly string[]): number {
    const pods = this.#host.list('/api/v1/pods').filter(({ metadata }) => uids.includes(metadata.uid));
    return Math.max(...pods.map(priorityOf));
  }

  #evict(pod: SimObject, [node, uids]: readonly [string, readonly string[]], by: SimProcess | undefined): void {
    this.#judge.evicts(pod, node, uids, by);
    for (const victim of this.#host.list('/api/v1/pods').filter(({ metadata }) => uids.includes(metadata.uid))) {
      if (asPod(victim).spec.nodeName !== node)
        this.#tell(`${victim.metadata.name} is to leave ${node}, where it is not`);
      const conditions = [
        ...(asPod(victim).status?.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget'),
        { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' },
      ] as JsonObject[];
      this.#say(podPath(victim), { conditions });
      this.#host.remove('scheduler', podPath(victim));
    }
    for (const other of this.#host.list('/api/v1/pods')) {
      const isLower = priorityOf(other) < priorityOf(pod) && asPod(other).spec.nodeName === undefined;
      if (isLower && asPod(other).status?.nominatedNodeName === node)
        this.#say(podPath(other), { nominatedNodeName: null });
    }
    this.#say(podPath(pod), { nominatedNodeName: node });
  }

  #say(path: string, status: JsonObject): void {
    this.#host.patch('scheduler', `${path}/status`, { status });
  }
}

function isEvicted(pod: SimObject): boolean {
  const { conditions = [] } = asPod(pod).status ?? {};
  return pod.metadata.deletionTimestamp !== undefined && conditions.some(({ type }) => type === 'DisruptionTarget');
}
