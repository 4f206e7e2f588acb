import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { bind, isGated } from '../host-scheduler.ts';
import { asPod } from '../pod-shapes.ts';
import type { Random } from '../random.ts';
import type { Change, SimCluster, SimObject } from '../sim-cluster.ts';
import type { SimProcess } from '../sim-process.ts';
import { PATHS, type World } from '../world.ts';
import { Evictions, type SchedulingJudge } from './evictions.ts';
import { NodeSums, priorityOf } from './node-sums.ts';
import { SchedulerQuestions } from './scheduler-questions.ts';

interface Waiting {
  readonly path: string;
  readonly uid: string;
}

/** What an attempt came to: nodes that may take the pod, and of the others those where evictions might help. */
interface Found {
  readonly nodes: readonly string[];
  readonly mayBeFreed: ReadonlySet<string>;
  readonly by?: SimProcess | undefined;
  /** Nobody answered who has to. */
  readonly isFailure?: boolean;
}

/**
 * kube-scheduler with the extenders of manifests/scheduler/kube-scheduler.yaml, in a host of which all pods are marked: one pod after the
 * other, the most important first, by sums of what nodes offer; it evicts pods of lower priority where that helps, and asks first about
 * the node that a pod was nominated to.
 */
export class PreemptingScheduler {
  readonly #host: SimCluster;
  readonly #random: Random;
  readonly #questions: SchedulerQuestions;
  readonly #sums: NodeSums;
  readonly #evictions: Evictions;
  readonly #judge: SchedulingJudge;
  readonly #tell: (what: string) => void;
  readonly #queue: Waiting[] = [];
  #busy = false;

  constructor(world: World, random: Random, o: { tell: (what: string) => void; judge: SchedulingJudge }) {
    this.#host = world.host;
    this.#random = random;
    this.#judge = o.judge;
    this.#tell = o.tell;
    this.#questions = new SchedulerQuestions(world, random, o.tell);
    this.#sums = new NodeSums(world.host);
    const { host } = world;
    this.#evictions = new Evictions({ ...o, host, sums: this.#sums, questions: this.#questions });
  }

  changed({ path, type, object, previous }: Change): void {
    if (!path.includes('/pods/') || type === 'DELETED') return;
    const isFree = type === 'ADDED' || (previous !== undefined && isGated(previous));
    if (isFree && !isGated(object)) this.#wait({ path, uid: object.metadata.uid }, 20);
    if (type === 'ADDED' && isGated(object)) this.#sayGated(path);
  }

  /** As the API server itself does. */
  #sayGated(path: string): void {
    const condition = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message: 'gated' };
    this.#host.patch('apiserver', `${path}/status`, { status: { conditions: [condition] } });
  }

  #wait(pod: Waiting, high: number): void {
    this.#host.loop.later(this.#random.between(2, high), () => {
      this.#queue.push(pod);
      this.#next();
    });
  }

  #next(): void {
    if (this.#busy || this.#queue.length === 0) return;
    const byPriority = this.#queue.toSorted((a, b) => this.#priorityAt(b) - this.#priorityAt(a));
    const [first] = byPriority;
    if (first === undefined) return;
    this.#queue.splice(this.#queue.indexOf(first), 1);
    this.#busy = true;
    void this.#attempt(first).then(() => {
      this.#busy = false;
      this.#next();
    });
  }

  #priorityAt({ path }: Waiting): number {
    const pod = this.#host.get(path);
    return pod === undefined ? 0 : priorityOf(pod);
  }

  async #attempt(waiting: Waiting): Promise<void> {
    const pod = this.#pending(waiting);
    if (pod === undefined) return;
    const nominated = asPod(pod).status?.nominatedNodeName ?? '';
    let found = nominated === '' ? NOTHING : await this.#look(pod, [nominated]);
    if (found.nodes.length === 0) found = await this.#look(pod, this.#nodes());
    if (this.#pending(waiting) === undefined) return;
    if (found.nodes.length > 0) {
      this.#judge.placed(pod, found.nodes, [...this.#sums.passing(pod, this.#nodes()).nodes], found.by);
      const node = found.nodes.length === 1 ? found.nodes[0] : await this.#best(pod, found.nodes);
      if (node !== undefined) this.#bind(waiting, pod, node);
      return;
    }
    const isFailure = found.isFailure === true;
    this.#failed(waiting, isFailure ? NO_ANSWER : NO_NODE);
    if (!isFailure) {
      await this.#evictions.preempt(pod, found.mayBeFreed, () => this.#pending(waiting) !== undefined);
    }
    this.#wait(waiting, 8_000);
  }

  /** As it is now, if it still has no node and is to get one. */
  #pending({ path, uid }: Waiting): SimObject | undefined {
    const pod = this.#host.get(path);
    if (pod === undefined || pod.metadata.uid !== uid || asPod(pod).spec.nodeName !== undefined) return undefined;
    return pod.metadata.deletionTimestamp === undefined ? pod : undefined;
  }

  #nodes(): string[] {
    return this.#host.list(PATHS.nodes).map(({ metadata }) => metadata.name);
  }

  async #look(pod: SimObject, names: readonly string[]): Promise<Found> {
    const { nodes, mayBeFreed } = this.#sums.passing(pod, names);
    if (nodes.length === 0) return { nodes, mayBeFreed };
    let left: readonly string[] = nodes;
    let by: SimProcess | undefined;
    // kube-scheduler asks extenders that are not ignorable first.
    for (const verb of ['confirm', 'filter'] as const) {
      const answer = await this.#questions.ask(verb, { Pod: pod, Nodes: null, NodeNames: left });
      if (answer === undefined) this.#judge.unanswered(pod);
      if (answer === undefined && verb === 'filter') continue;
      if (answer === undefined) return { nodes: [], mayBeFreed, isFailure: true };
      ({ by } = answer);
      const said = answer.said as { NodeNames: readonly string[]; FailedNodes?: Record<string, string> };
      if (!said.NodeNames.every((name) => left.includes(name)))
        this.#tell(`the answer to ${verb} of ${pod.metadata.name} has other nodes than ${left.join()}`);
      for (const name of Object.keys(said.FailedNodes ?? {})) mayBeFreed.add(name);
      left = said.NodeNames;
      if (left.length === 0) break;
    }
    return { nodes: left, mayBeFreed, by };
  }

  async #best(pod: SimObject, nodes: readonly string[]): Promise<string | undefined> {
    const answer = await this.#questions.ask('prioritize', { Pod: pod, Nodes: null, NodeNames: nodes });
    const scores = (answer?.said ?? []) as { Host: string; Score: number }[];
    const most = Math.max(0, ...scores.map(({ Score }) => Score));
    const best = scores.filter(({ Score }) => Score === most).map(({ Host }) => Host);
    return this.#random.pick(best.length === 0 ? nodes : best);
  }

  #bind(waiting: Waiting, pod: SimObject, node: string): void {
    const { uid } = waiting;
    this.#sums.assume(pod, node);
    this.#host.loop.later(this.#random.between(1, 20), () => {
      this.#sums.forget(uid);
      if (this.#pending(waiting) !== undefined) bind(this.#host, waiting.path, pod, node);
    });
  }

  /** A failure that is word for word the one before is not written. That nobody answered is another one than that no node fits. */
  #failed(waiting: Waiting, failure: { reason: string; message: string }): void {
    const conditions = asPod(this.#pending(waiting) ?? NO_POD).status?.conditions ?? [];
    const before = conditions.find(({ type }) => type === 'PodScheduled');
    if (before?.reason === failure.reason) return;
    const at = before?.lastTransitionTime ?? new Date().toISOString().replace(/\.\d+/, '');
    const now = { type: 'PodScheduled', status: 'False', ...failure };
    const others = conditions.filter(({ type }) => type !== 'PodScheduled');
    const status = { conditions: [...others, { ...now, lastTransitionTime: at }] as JsonObject[] };
    this.#host.patch('scheduler', `${waiting.path}/status`, { status });
  }
}

const NO_NODE = { reason: 'Unschedulable', message: 'no node fits' };
const NO_ANSWER = { reason: 'SchedulerError', message: 'the extender did not answer' };
const NOTHING: Found = { nodes: [], mayBeFreed: new Set() };
const NO_POD = { metadata: { name: '', uid: '', resourceVersion: '' } } as SimObject;
