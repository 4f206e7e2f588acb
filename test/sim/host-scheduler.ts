import { MEMBER_LABEL } from '../../src/api/marks.ts';
import type { Node } from '../../src/kube/core-v1.ts';
import { addTo, parseAmounts } from '../../src/kube/amounts.ts';
import { holdsResources, podRequests } from '../../src/capacity/pod-requests.ts';
import { nodeIsChosenBy } from '../../src/kube/node-selector.ts';
import { firstUntolerated } from '../../src/kube/taints.ts';
import type { FilterVerb } from '../../src/scheduler/second-question.ts';
import { ExtenderCaller, type ExtenderAnswer } from './extender-caller.ts';
import type { HostVolumes } from './host-volumes.ts';
import { OPTED_OUT } from './opted-out.ts';
import { asPod, isFinal } from './pod-shapes.ts';
import type { ResidenceOracle } from './oracles/residence-oracle.ts';
import type { StateOracle } from './oracles/state-oracle.ts';
import type { Random } from './random.ts';
import { VOLUME_MS } from './residence.ts';
import type { Change, SimCluster, SimObject } from './sim-cluster.ts';
import type { SimProcess } from './sim-process.ts';
import type { World } from './world.ts';

/** How often, and with what pauses (ms), it is looked whether the claims of a pod are bound before it is let go of. */
const CLAIM_LOOKS = 60;
const CLAIM_LOOK_MS = 500;

interface Waiting {
  readonly path: string;
  readonly uid: string;
  /** It was in a cycle before. */
  readonly isLater?: boolean;
}

/** One pod on its way through a scheduling cycle. */
interface Cycle extends Waiting {
  readonly pod: SimObject;
  /** Names of the nodes that are left. */
  nodes: readonly string[];
  /** Who chose them; undefined: nobody answered, or none were asked. */
  chosenBy?: SimProcess;
}

/**
 * The scheduler of the host: one pod after the other, by taints, selectors and requests. Where the world is wired so, it asks
 * the extender as manifests/scheduler have it, but about pods of namespaces that have not opted in. The host's own nodes have no room.
 */
export class HostScheduler {
  readonly #world: World;
  readonly #host: SimCluster;
  readonly #random: Random;
  readonly #extender: ExtenderCaller;
  readonly #tell: (what: string) => void;
  readonly #residence: ResidenceOracle;
  readonly #state: StateOracle;
  readonly #volumes: HostVolumes;
  readonly #queue: Waiting[] = [];
  #busy = false;

  /** `tell`: of answers that no extender may give. `residence` and `state` judge where pods may go, and when. */
  constructor(
    world: World,
    random: Random,
    o: {
      tell: (what: string) => void;
      residence: ResidenceOracle;
      state: StateOracle;
      volumes: HostVolumes;
    },
  ) {
    this.#world = world;
    this.#host = world.host;
    this.#random = random;
    this.#extender = new ExtenderCaller(world.loop, world.network, random);
    this.#tell = o.tell;
    this.#residence = o.residence;
    this.#state = o.state;
    this.#volumes = o.volumes;
  }

  changed({ path, type, object, previous }: Change): void {
    if (!path.includes('/pods/')) return;
    if (object.metadata.deletionTimestamp !== undefined) this.#collectUnbound(path, object);
    const isFree = type === 'ADDED' || (previous !== undefined && isGated(previous));
    if (isFree && !isGated(object)) this.#wait({ path, uid: object.metadata.uid }, 20);
  }

  /** What kube-controller-manager's pod garbage collector does, so that Jobs learn of it. */
  #collectUnbound(path: string, pod: SimObject): void {
    if (asPod(pod).spec.nodeName !== undefined || isFinal(pod)) return;
    this.#host.loop.later(this.#random.between(100, 5_000), () => {
      this.#host.patch('podgc', `${path}/status`, { status: { phase: 'Failed' } });
    });
  }

  #wait(pod: Waiting, high = 8_000): void {
    this.#host.loop.later(this.#random.between(2, high), () => {
      this.#queue.push(pod);
      this.#next();
    });
  }

  #again({ path, uid }: Cycle): void {
    this.#wait({ path, uid, isLater: true });
  }

  #next(): void {
    while (!this.#busy) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      const pod = this.#pending(next);
      if (pod === undefined) continue;
      const cycle: Cycle = { ...next, pod, nodes: this.#passing(pod) };
      if (cycle.nodes.length === 0) this.#again(cycle);
      else if (this.#world.wiring === 'none' || pod.metadata.namespace === OPTED_OUT)
        this.#bind(cycle, this.#random.pick(cycle.nodes));
      else {
        this.#busy = true;
        this.#filter(cycle, this.#world.wiring === 'marked' ? ['confirm', 'filter'] : ['filter']);
      }
    }
  }

  /** As it is now, if it still has no node and is to get one. */
  #pending({ path, uid }: Waiting): SimObject | undefined {
    const pod = this.#host.get(path);
    if (pod === undefined || pod.metadata.uid !== uid || asPod(pod).spec.nodeName !== undefined) return undefined;
    return pod.metadata.deletionTimestamp === undefined ? pod : undefined;
  }

  #passing(object: SimObject): string[] {
    const pod = asPod(object);
    const nodes = this.#host.list('/api/v1/nodes').filter(isReadyVirtualNode);
    return nodes
      .map((node) => node as unknown as Node)
      .filter(({ metadata, spec, status }) => {
        const isChosen = nodeIsChosenBy(pod.spec, { metadata }) && this.#volumes.allows(object, { metadata });
        if (!isChosen || firstUntolerated(pod.spec.tolerations ?? [], spec?.taints ?? []) !== undefined) return false;
        const allocatable = parseAmounts(status?.allocatable);
        const taken = this.#heldOn(metadata.name);
        return [...requestsOf(object)].every(
          ([resource, amount]) => amount + (taken.get(resource) ?? 0n) <= (allocatable.get(resource) ?? 0n),
        );
      })
      .map(({ metadata }) => metadata.name);
  }

  /** What pods on a node hold. */
  #heldOn(node: string): ReadonlyMap<string, bigint> {
    const sum = new Map<string, bigint>();
    for (const other of this.#host.list('/api/v1/pods')) {
      if (asPod(other).spec.nodeName === node && holdsResources(asPod(other))) addTo(sum, requestsOf(other));
    }
    return sum;
  }

  /** kube-scheduler asks extenders that are not ignorable first; without an answer of one that is, all nodes are left. */
  #filter(cycle: Cycle, [verb, ...later]: readonly FilterVerb[]): void {
    if (verb === undefined) {
      this.#prioritize(cycle);
      return;
    }
    const askedAt = this.#host.loop.now;
    this.#ask(verb, cycle, (answer, by) => {
      if (answer !== undefined && by !== undefined) {
        cycle.nodes = this.#taken(verb, cycle, answer);
        cycle.chosenBy = by;
        this.#residence.allowed(cycle.pod, cycle.nodes, askedAt);
        if (cycle.nodes.length > 0) this.#state.allowed(cycle.pod);
      } else if (verb === 'confirm') cycle.nodes = [];
      if (cycle.nodes.length === 0) this.#done(cycle, undefined);
      else this.#filter(cycle, later);
    });
  }

  #prioritize(cycle: Cycle): void {
    if (cycle.nodes.length === 1) {
      this.#done(cycle, cycle.nodes[0]);
      return;
    }
    this.#ask('prioritize', cycle, (answer) => {
      const scores = (answer ?? []) as { Host: string; Score: number }[];
      const isWrong = scores.some(({ Host, Score }) => !cycle.nodes.includes(Host) || !(Score >= 0 && Score <= 10));
      if (isWrong) this.#tell(`the scores of ${cycle.path} are ${JSON.stringify(answer)}`);
      const most = Math.max(0, ...scores.map(({ Score }) => Score));
      const best = scores.filter(({ Score }) => Score === most).map(({ Host }) => Host);
      this.#done(cycle, this.#random.pick(best.length === 0 ? cycle.nodes : best));
    });
  }

  #done(cycle: Cycle, node: string | undefined): void {
    this.#busy = false;
    if (node === undefined) this.#again(cycle);
    else this.#host.loop.later(this.#untilBound(cycle), () => this.#bind(cycle, node));
    this.#next();
  }

  /** In ms. Only of its first attempt can it be known from the pod that it is not over. */
  #untilBound({ pod, isLater }: Cycle): number {
    const volumeMs = isLater === true ? 0 : Number(pod.metadata.annotations?.[VOLUME_MS] ?? 0);
    return volumeMs + this.#random.between(1, 20);
  }

  /** `looks`: how often it has been seen that its claims are not bound yet. */
  #bind(cycle: Cycle, node: string | undefined, looks = 0): void {
    if (node === undefined || this.#pending(cycle) === undefined) return;
    if (!this.#volumes.isReady(cycle.pod, node)) {
      if (looks >= CLAIM_LOOKS) this.#again(cycle);
      else this.#host.loop.later(CLAIM_LOOK_MS, () => this.#bind(cycle, node, looks + 1));
      return;
    }
    // They may have been bound to another cluster meanwhile.
    const chosen = this.#host.get(`/api/v1/nodes/${node}`);
    if (chosen !== undefined && !this.#volumes.allows(cycle.pod, chosen as unknown as Node)) {
      this.#again(cycle);
      return;
    }
    bind(this.#host, cycle.path, cycle.pod, node);
    // Places of later attempts are held for seconds only: what is not heard of by then is not counted.
    if (cycle.isLater !== true && cycle.chosenBy !== undefined) this.#residence.bound(cycle.pod, cycle.chosenBy);
  }

  #ask(
    verb: FilterVerb | 'prioritize',
    cycle: Cycle,
    then: (answer: unknown, by: SimProcess | undefined) => void,
  ): void {
    this.#extender.ask(verb, { Pod: cycle.pod, Nodes: null, NodeNames: cycle.nodes }, (answer) => {
      then(this.#parsed(verb, cycle, answer), answer?.by);
    });
  }

  /** Undefined: as good as no answer. */
  #parsed(verb: string, { path }: Cycle, answer: ExtenderAnswer | undefined): unknown {
    if (answer === undefined || answer.status === 503) return undefined;
    if (answer.status === 200) return JSON.parse(answer.body);
    this.#tell(`the answer to ${verb} of ${path} is ${answer.status}: ${answer.body}`);
    return undefined;
  }

  #taken(verb: string, { path, nodes }: Cycle, answer: unknown): readonly string[] {
    const { NodeNames: names } = answer as { NodeNames: readonly string[] };
    if (names.every((name) => nodes.includes(name))) return names;
    this.#tell(`the answer to ${verb} of ${path} has other nodes than ${nodes.join()}: ${names.join()}`);
    return [];
  }
}

/** By stored pod, which is frozen. */
const requests = new WeakMap<SimObject, ReadonlyMap<string, bigint>>();

function requestsOf(object: SimObject): ReadonlyMap<string, bigint> {
  const known = requests.get(object) ?? podRequests(asPod(object));
  requests.set(object, known);
  return known;
}

/** Nobody schedules it yet. */
export function isGated(pod: SimObject): boolean {
  return (asPod(pod).spec.schedulingGates ?? []).length > 0;
}

function isReadyVirtualNode({ metadata, spec, status }: SimObject): boolean {
  const { unschedulable } = (spec ?? {}) as { unschedulable?: boolean };
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
  const ready = conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  return metadata.labels?.[MEMBER_LABEL] !== undefined && unschedulable !== true && ready;
}

export function bind(cluster: SimCluster, path: string, { metadata: { name, uid } }: SimObject, node: string): void {
  cluster.create('scheduler', `${path}/binding`, {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name, uid },
    target: { apiVersion: 'v1', kind: 'Node', name: node },
  });
}
