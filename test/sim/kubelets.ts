import { bind } from './host-scheduler.ts';
import { asPod, endedStatus, hostUidOf, illStatus, isFinal, isReady, runningStatus } from './pod-shapes.ts';
import type { Random } from './random.ts';
import { podPath } from './workload-controllers.ts';
import type { Change, SimCluster, SimObject } from './sim-cluster.ts';

/** One pod whose containers were started, as its kubelet knows it. */
export interface Run {
  readonly cluster: string;
  readonly memberUid: string;
  readonly hostUid: string | undefined;
  readonly name: string;
  readonly startedAt: number;
  endedAt: number | undefined;
  /** Of the last containers that ended by themselves or were ended. */
  exitCode: number | undefined;
}

/**
 * The scheduler and the kubelets of a member: they bind pods, start containers, end them, and keep a record of what really
 * ran. What they do takes time.
 */
export class Kubelets {
  /** By UID of the pod in the member. */
  readonly runs = new Map<string, Run>();
  readonly byHostUid = new Map<string, Run[]>();
  onStart: ((run: Run, object: SimObject) => void) | undefined;
  /** The scheduler of a member where room is short: undefined while no node has any. Default: any node, by chance. */
  chooseNode: ((object: SimObject) => string | undefined) | undefined;
  readonly #cluster: SimCluster;
  readonly #random: Random;
  readonly #isMine: ((nodeName: string) => boolean) | undefined;
  /** Nothing is started or ended while its machines stand still. */
  asleep = false;
  /** What ran when the machines lost their power, until they have it again. */
  #cutShort: Set<Run> | undefined;
  /** When they had it again last, in ms. */
  onSince = 0;

  /** `isMine`: whether pods of that node are for these kubelets; default: all are, and those without a node get one. */
  constructor(cluster: SimCluster, random: Random, isMine?: (nodeName: string) => boolean) {
    this.#cluster = cluster;
    this.#random = random;
    this.#isMine = isMine;
  }

  /** To be told of all that happens in the member. */
  changed({ path, type, object, previous }: Change): void {
    if (!path.includes('/pods/')) return;
    if (type === 'DELETED') {
      // Nobody asks the kubelet before a forced deletion; it ends what runs when it hears of it.
      const run = this.runs.get(object.metadata.uid);
      if (run !== undefined && run.endedAt === undefined) run.endedAt = this.#cluster.loop.now;
      return;
    }
    const pod = asPod(object);
    if (this.#isMine?.(pod.spec.nodeName ?? '') === false) return;
    if (type === 'ADDED' && this.#isMine === undefined)
      this.#soon(path, object, 5, 400, (now) => this.#bind(path, now));
    if (pod.spec.nodeName !== undefined && (previous === undefined || asPod(previous).spec.nodeName === undefined)) {
      this.#soon(path, object, 50, 3_000, (now) => this.#start(path, now));
    }
    if (object.metadata.deletionTimestamp !== undefined && previous?.metadata.deletionTimestamp === undefined) {
      const grace = (object.metadata.deletionGracePeriodSeconds ?? 0) * 1_000;
      this.#soon(path, object, 10, Math.max(20, this.#random.chance(0.7) ? 500 : grace), (now) => this.#end(path, now));
    }
  }

  /** What runs to its end at that moment, as containers do. */
  finish(path: string, exitCode: number): void {
    const object = this.#cluster.get(path);
    const run = object === undefined ? undefined : this.runs.get(object.metadata.uid);
    if (object === undefined || run === undefined || run.endedAt !== undefined || isFinal(object)) return;
    const { restartPolicy = 'Always' } = asPod(object).spec;
    if (restartPolicy === 'Always' || (restartPolicy === 'OnFailure' && exitCode !== 0)) this.#restart(path, object);
    else this.#finished(path, object, run, exitCode);
  }

  /** Under pressure a kubelet fails a pod and leaves it there. */
  evict(path: string, conditions: readonly { type: string; status: string; reason: string }[]): void {
    const object = this.#cluster.get(path);
    const run = object === undefined ? undefined : this.runs.get(object.metadata.uid);
    if (object === undefined || run === undefined || run.endedAt !== undefined || isFinal(object)) return;
    this.#finished(path, object, run, 137);
    const told = asPod(this.#cluster.get(path) ?? object).status?.conditions ?? [];
    this.#report(path, { reason: 'Evicted', conditions: [...told, ...conditions] });
  }

  get isOff(): boolean {
    return this.#cutShort !== undefined;
  }

  /** Whatever runs does not any more, and nobody is told. */
  powerOff(): void {
    this.asleep = true;
    this.#cutShort = new Set();
    for (const run of this.runs.values()) {
      if (run.endedAt !== undefined) continue;
      [run.endedAt, run.exitCode] = [this.#cluster.loop.now, 137];
      this.#cutShort.add(run);
    }
  }

  /** Kubelets begin anew what is to run, and tell of what is not to run again. */
  powerOn(): void {
    const cutShort = this.#cutShort ?? new Set();
    this.#cutShort = undefined;
    this.asleep = false;
    this.onSince = this.#cluster.loop.now;
    for (const object of this.#cluster.list('/api/v1/pods')) {
      const run = this.runs.get(object.metadata.uid);
      if (run === undefined || !cutShort.has(run)) continue;
      this.#soon(podPath(object), object, 500, 8_000, (now) => {
        if (isFinal(now) || now.metadata.deletionTimestamp !== undefined) return;
        const { restartPolicy = 'Always' } = asPod(now).spec;
        if (restartPolicy === 'Never') {
          this.#finished(podPath(now), now, run, 137);
          return;
        }
        [run.endedAt, run.exitCode] = [undefined, undefined];
        this.#restart(podPath(now), now);
      });
    }
  }

  /** Its containers crash over and over from now on. Returns the UID of what runs; undefined: nothing did. */
  sicken(path: string): string | undefined {
    const object = this.#cluster.get(path);
    const run = object === undefined ? undefined : this.runs.get(object.metadata.uid);
    if (object === undefined || run === undefined || run.endedAt !== undefined || isFinal(object)) return undefined;
    this.#report(path, illStatus(asPod(object), this.#now()));
    return object.metadata.uid;
  }

  /** They run well again, if it is the same pod. */
  recover(path: string, uid: string): void {
    const object = this.#cluster.get(path);
    if (object?.metadata.uid !== uid || this.runs.get(uid)?.endedAt !== undefined || isFinal(object)) return;
    if (!isReady(object)) this.#restart(path, object);
  }

  /** The cluster is as it once was: what runs, or ran and is over, is told again. */
  restored(): void {
    for (const object of this.#cluster.list('/api/v1/pods')) {
      const run = this.runs.get(object.metadata.uid);
      if (run === undefined || isFinal(object)) continue;
      this.#soon(podPath(object), object, 50, 3_000, (now) => {
        const pod = asPod(now);
        const at = this.#now();
        if (run.endedAt !== undefined) this.#report(podPath(now), endedStatus(pod, run.exitCode ?? 137, at, at));
        else if (pod.status?.phase !== 'Running') this.#report(podPath(now), runningStatus(pod, 'node', at, 0));
      });
    }
  }

  /** Does that later, if the pod is still there and nothing is asleep. */
  #soon(path: string, { metadata }: SimObject, low: number, high: number, run: (object: SimObject) => void): void {
    this.#cluster.loop.later(this.#random.between(low, high), () => {
      const object = this.#cluster.get(path);
      if (object?.metadata.uid !== metadata.uid) return;
      if (this.asleep) this.#soon(path, object, 1_000, 3_000, run);
      else run(object);
    });
  }

  #bind(path: string, object: SimObject): void {
    if (asPod(object).spec.nodeName !== undefined || object.metadata.deletionTimestamp !== undefined) return;
    const nodes = [...this.#cluster.list('/api/v1/nodes')];
    const choose = this.chooseNode ?? (() => this.#random.pick(nodes)?.metadata.name);
    const node = choose(object);
    if (node === undefined) {
      this.#findNoNode(path, object);
      return;
    }
    bind(this.#cluster, path, object, node);
  }

  #findNoNode(path: string, object: SimObject): void {
    const { conditions = [] } = asPod(object).status ?? {};
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node fits' };
    if (!conditions.some(({ reason }) => reason === 'Unschedulable'))
      this.#report(path, { conditions: [...conditions, condition] });
    this.#soon(path, object, 500, 3_000, (now) => this.#bind(path, now));
  }

  #start(path: string, object: SimObject): void {
    const { uid, deletionTimestamp, name } = object.metadata;
    if (deletionTimestamp !== undefined || isFinal(object) || this.runs.has(uid)) return;
    const run: Run = {
      cluster: this.#cluster.name,
      memberUid: uid,
      hostUid: hostUidOf(object),
      name,
      startedAt: this.#cluster.loop.now,
      endedAt: undefined,
      exitCode: undefined,
    };
    this.runs.set(uid, run);
    if (run.hostUid !== undefined) {
      this.byHostUid.set(run.hostUid, [...(this.byHostUid.get(run.hostUid) ?? []), run]);
    }
    this.onStart?.(run, object);
    this.#report(path, runningStatus(asPod(object), 'node', this.#now(), 0));
    const { restartPolicy = 'Always' } = asPod(object).spec;
    if (restartPolicy === 'Always') return;
    const exitCode = this.#random.chance(0.75) ? 0 : 1 + this.#random.int(3);
    this.#soon(path, object, 200, this.#random.chance(0.5) ? 5_000 : 120_000, () => this.finish(path, exitCode));
  }

  #restart(path: string, object: SimObject): void {
    const pod = asPod(object);
    const restarts = (pod.status?.containerStatuses?.[0]?.restartCount ?? 0) + 1;
    const startedAt = pod.status?.startTime ?? this.#now();
    const status = runningStatus(pod, 'node', this.#now(), restarts);
    this.#report(path, { ...status, startTime: startedAt });
    if (pod.spec.restartPolicy === 'OnFailure') this.#soon(path, object, 500, 20_000, () => this.finish(path, 0));
  }

  /** Asked to end: containers get their signal, the last status is written, then the pod goes. */
  #end(path: string, object: SimObject): void {
    const run = this.runs.get(object.metadata.uid);
    if (run !== undefined && run.endedAt === undefined) {
      this.#finished(path, object, run, this.#random.chance(0.5) ? 143 : 0);
    }
    this.#soon(path, object, 5, 100, (now) => {
      const { uid } = now.metadata;
      this.#cluster.remove('kubelet', path, { gracePeriodSeconds: 0, preconditions: { uid } });
    });
  }

  #finished(path: string, object: SimObject, run: Run, exitCode: number): void {
    run.endedAt = this.#cluster.loop.now;
    run.exitCode = exitCode;
    const pod = asPod(object);
    const startedAt = pod.status?.containerStatuses?.[0]?.state?.running?.startedAt ?? this.#now();
    this.#report(path, endedStatus(pod, exitCode, startedAt, this.#now()));
  }

  #report(path: string, status: object): void {
    this.#cluster.patch('kubelet', `${path}/status`, { status });
  }

  #now(): string {
    return new Date().toISOString().replace(/\.\d+/, '');
  }
}
