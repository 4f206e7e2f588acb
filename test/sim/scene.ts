import { CONFIRM_DELETIONS_ANNOTATION, MEMBER_LABEL } from '../../src/api/marks.ts';
import { DeploymentController, DEPLOYMENTS } from './deployments.ts';
import { DisruptionController } from './disruption-controller.ts';
import { FrontDoor } from './front-door.ts';
import { HostScheduler } from './host-scheduler.ts';
import { HostVolumes } from './host-volumes.ts';
import { Kubelets } from './kubelets.ts';
import { NodeLifecycle } from './node-lifecycle.ts';
import { PreemptingScheduler } from './preempting/preempting-scheduler.ts';
import { Oracles } from './oracles.ts';
import { Random } from './random.ts';
import { Replica } from './replica.ts';
import { nodeInMember } from './room.ts';
import { podSpec } from './actors/creations.ts';
import { pathOf, podPath, selectorOf, WorkloadControllers, WORKLOADS } from './workload-controllers.ts';
import { PATHS, USER_NAMESPACES, World } from './world.ts';

/** The world with everybody in it. */
export class Scene {
  readonly world: World;
  readonly kubelets = new Map<string, Kubelets>();
  readonly replicas: Replica[];
  readonly oracles: Oracles;
  /** Pods that owners of members run themselves. */
  readonly strangers: { member: string; path: string }[] = [];
  /** What answers for each cluster, by its name. */
  readonly doors = new Map<string, FrontDoor>();
  /** With which the manager comes to each member, where it is not the first one. */
  readonly tokens = new Map<string, string>();
  /** Base64. */
  readonly ca: string;
  /** Users of the host make no more while there are so many. */
  readonly mostPods: number;
  /** What is mended once more when all begins to work. */
  readonly mends: (() => void)[] = [];
  readonly #undo = new Set<() => void>();
  #number = 0;
  #due: { turn: number; run: () => void }[] = [];

  constructor(
    seed: number,
    o: { ca: string; replicas: number; mostPods: number; hasRules: boolean; hasResidence: boolean; isCrowded: boolean },
  ) {
    this.world = new World(seed, o);
    this.ca = o.ca;
    this.mostPods = o.mostPods;
    const { world } = this;
    for (const cluster of world.clusters) {
      const door = new FrontDoor(cluster);
      this.doors.set(cluster.name, door);
      world.network.endpoints.set(cluster.origin, door);
    }
    let stream = 10;
    for (const [name, cluster] of world.members) {
      stream += 1;
      this.kubelets.set(name, new Kubelets(cluster, new Random(seed, stream)));
    }
    this.oracles = new Oracles(world, this.kubelets);
    const controllers = new WorkloadControllers(world.host, new Random(seed, 5));
    const deployments = new DeploymentController(world.host, new Random(seed, 25));
    const tell = (what: string): void => {
      this.oracles.violations.push({ oracle: 'extender', what, at: world.loop.now });
    };
    const volumes = new HostVolumes(world.host, new Random(seed, 26));
    const scheduler = o.isCrowded
      ? new PreemptingScheduler(world, new Random(seed, 6), { tell, judge: this.oracles.room })
      : new HostScheduler(world, new Random(seed, 6), {
          tell,
          residence: this.oracles.residence,
          state: this.oracles.state,
          volumes,
        });
    const disruptions = new Map(world.clusters.map((cluster) => [cluster, new DisruptionController(cluster)]));
    new NodeLifecycle(world.host, new Random(seed, 8)).begin();
    const hostKubelets = new Kubelets(world.host, new Random(seed, 9), (name) => this.isReal(name));
    for (const kubelets of this.kubelets.values()) {
      kubelets.onStart = (run, object) => this.oracles.started(run, object);
    }
    if (o.isCrowded) {
      for (const [name, cluster] of world.members) {
        const kubelets = this.kubelets.get(name);
        if (kubelets !== undefined) kubelets.chooseNode = (pod) => nodeInMember(cluster, pod);
      }
    }
    const chance = new Random(seed, 7);
    let garbage = false;
    /** What has lost its owner goes, one after the other. */
    const collect = (): void => {
      garbage = world.host.collectGarbage((count) => chance.int(count));
      if (garbage) world.loop.later(chance.between(1, 200), collect);
    };
    world.onChange.push((change) => {
      this.oracles.changed(change);
      disruptions.get(change.cluster)?.changed(change);
      if (change.cluster === world.host) {
        controllers.changed(change);
        deployments.changed(change);
        volumes.changed(change);
        scheduler.changed(change);
        hostKubelets.changed(change);
        if (change.type === 'DELETED' && !garbage && change.path.includes('/apis/')) {
          garbage = true;
          world.loop.later(chance.between(10, 500), collect);
        }
      } else {
        this.kubelets.get(change.cluster.name)?.changed(change);
      }
    });
    this.replicas = ['a', 'b'].slice(0, o.replicas).map((place) => new Replica(world, place));
    world.loop.afterTurn = () => {
      if (this.#due.length > 0) this.#runDue();
    };
  }

  nextNumber(): number {
    this.#number += 1;
    return this.#number;
  }

  /** Whether users of the host have all the pods that they want. */
  isFull(): boolean {
    return this.world.host.list('/api/v1/pods').length >= this.mostPods;
  }

  /** In the middle of whatever happens then. */
  afterTurns(count: number, run: () => void): void {
    this.#due.push({ turn: this.world.loop.turns + count, run });
  }

  /** A Node of the host that stands for no member. */
  isReal(nodeName: string): boolean {
    const node = this.world.host.get(`${PATHS.nodes}/${nodeName}`);
    return node !== undefined && node.metadata.labels?.[MEMBER_LABEL] === undefined;
  }

  /** Is undone after so many seconds, or when all begins to work. */
  forAWhile(seconds: number, undo: () => void): void {
    this.#undo.add(undo);
    this.world.loop.later(seconds * 1_000, () => {
      if (this.#undo.delete(undo)) undo();
    });
  }

  /** The program knows for good which cluster that is. */
  isPinned(name: string): boolean {
    // One that runs may still wait for its first answer: whoever gives it is its host, and no process can know better.
    if (name === 'host')
      return this.replicas.every(({ process }) => process?.alive === true && this.oracles.knowsHost(process));
    const member = this.world.host.get(`${PATHS.members}/${name}`);
    // One that leaves may be made anew, and pins whoever answers then.
    if (member?.metadata.deletionTimestamp !== undefined) return false;
    return (member?.['status'] as { identity?: unknown } | undefined)?.identity !== undefined;
  }

  /** Everything that was broken works from now on. */
  heal(): void {
    const { world } = this;
    this.#due = [];
    for (const undo of this.#undo) undo();
    this.#undo.clear();
    for (const mend of this.mends) mend();
    world.network.troubles.clear();
    world.network.partitions.clear();
    for (const cluster of world.clusters) {
      cluster.endLying(cluster.lie);
      for (const watch of cluster.watches) if (watch.fault !== undefined) watch.reset();
    }
    for (const kubelets of this.kubelets.values()) kubelets.asleep = false;
    for (const { member, path } of this.strangers) {
      const cluster = world.members.get(member);
      if (cluster?.get(path) !== undefined) cluster.remove('owner', path, { gracePeriodSeconds: 0 });
    }
    for (const member of world.members.keys()) {
      // A pool whose name a real node has takes no pods: there has to be another one.
      const path = `${PATHS.members}/${member}`;
      const { virtualNodes = [] } = (world.host.get(path)?.['spec'] ?? {}) as { virtualNodes?: { name: string }[] };
      const free = virtualNodes.filter(({ name }) => !this.isReal(`${member}-${name}`));
      world.host.patch('admin', path, { spec: { unschedulable: false, virtualNodes: free } });
    }
  }

  /** When the last request arrives that was sent before everything worked, in ms. */
  lastStraggler(): number {
    const { network, loop } = this.world;
    return Math.max(loop.now, network.lastArrival, ...[...this.doors.values()].map(({ lastCreation }) => lastCreation));
  }

  /** One that was told to end may take until after everything is healed. */
  async keepOneRunning(): Promise<void> {
    const [first] = this.replicas;
    if (first !== undefined && this.replicas.every(({ running }) => !running)) await first.start();
  }

  /** Users delete all that they have and make something new. Returns what they do. */
  turnOver(): string {
    const { host } = this.world;
    const workloads = [...Object.values(WORKLOADS), DEPLOYMENTS].flatMap((kind) =>
      [...host.list(kind)].map((object) => pathOf(object, kind)),
    );
    const pods = [...host.list('/api/v1/pods')].map((pod) => podPath(pod));
    for (const path of [...workloads, ...pods]) host.remove('user', path);
    for (const namespace of USER_NAMESPACES) {
      host.create('user', `/apis/apps/v1/namespaces/${namespace}/replicasets`, {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: { name: 'new', namespace },
        spec: { replicas: 3, selector: selectorOf('new'), template: { spec: podSpec('Always') } },
      });
    }
    return `users delete ${workloads.length} workloads and ${pods.length} pods, and make new ones`;
  }

  /** What an administrator does who has looked: all pods that are kept are truly to go. */
  confirmDeletions(): void {
    this.oracles.deletionsConfirmed();
    for (const { metadata, status } of this.world.host.list(PATHS.members)) {
      const { conditions = [] } = (status ?? {}) as {
        conditions?: { type: string; status: string; message: string }[];
      };
      const held = conditions.find(({ type }) => type === 'DeletionsAllowed');
      const token = /confirm-deletions=(\S+)/.exec(held?.message ?? '')?.[1];
      if (held?.status !== 'False' || token === undefined) continue;
      if (metadata.annotations?.[CONFIRM_DELETIONS_ANNOTATION] === token) continue;
      const annotations = { [CONFIRM_DELETIONS_ANNOTATION]: token };
      this.world.host.patch('admin', `${PATHS.members}/${metadata.name}`, { metadata: { annotations } });
    }
  }

  #runDue(): void {
    const { turns } = this.world.loop;
    const now = this.#due.filter(({ turn }) => turn <= turns);
    if (now.length === 0) return;
    this.#due = this.#due.filter(({ turn }) => turn > turns);
    for (const { run } of now) run();
  }
}
