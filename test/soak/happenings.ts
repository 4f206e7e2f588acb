import type { BurstLoad } from '../../hack/burst-load.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { workloadOf } from '../../src/placement/owner-chain.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Fields, isReady, podsOf, read } from '../fixtures/live-pods.ts';
import type { RandomScheduling } from '../fixtures/random-scheduling.ts';
import { type Tried, triesOf, wronglyAnswered } from './cheats.ts';
import { CHEATS, type Lab, MEMBERS } from './lab.ts';
import { chainOf, type State } from './state.ts';
import { dividedByRoom, type Made, pathOf, staticPolicies } from './workloads.ts';

/** What a round did, for people; and what of it changes what can be compared afterwards. */
export interface Round {
  readonly done: string[];
  /** UIDs of workloads that shrank. */
  readonly shrunk: Set<string>;
  /** UIDs of workloads whose rules or members were others meanwhile, with the reason. */
  readonly disturbed: Map<string, string>;
  /** UIDs of workloads that make all their pods anew. */
  readonly rolledOut: Set<string>;
  /** Workloads whose size changed, as `namespace/name`. */
  readonly scaled: Set<string>;
  /** UIDs of workloads divided by room that had another size, or other pods, before: what room there was when these came is not known. */
  readonly changed: Set<string>;
  /** What a tenant who cheats was answered wrongly. */
  readonly cheated: string[];
  lost: boolean;
  /** When the member that was lost was within reach again. */
  backAt: number | undefined;
}

/**
 * How long a member is out of reach: longer than it takes until pods of workloads that want that are moved (20 s), and not as long as it takes until
 * all of its pods are shown as not ready (60 s).
 */
const LOST_MS = 50_000;
/** Of these as many as possible are to be compared with their division. */
const JUDGED = ['static', 'limits', 'tiers', 'gpu'];
const SCALED = ['static', 'limits', 'room', 'tiers', 'burst', 'gpu', 'rollouts'];

export class Happenings {
  readonly #lab: Lab;
  readonly #random: RandomScheduling;
  readonly #made: readonly Made[];
  readonly #loads: readonly BurstLoad[];
  #round = 0;

  constructor(lab: Lab, random: RandomScheduling, made: readonly Made[], loads: readonly BurstLoad[]) {
    this.#lab = lab;
    this.#random = random;
    this.#made = made;
    this.#loads = loads;
  }

  /** Things that people, machines and cheats do, at random. `state`: what was there right before. */
  async next(state: State, disturbed: ReadonlyMap<string, string>): Promise<Round> {
    this.#round += 1;
    const round: Round = {
      done: [],
      shrunk: new Set(),
      disturbed: new Map(),
      rolledOut: new Set(),
      scaled: new Set(),
      changed: new Set(),
      cheated: [],
      lost: this.#round % 2 === 1,
      backAt: undefined,
    };
    const lost = round.lost ? this.#cut(round) : undefined;
    const spot = await this.#cordonSpot(round);
    await this.#edit(state, round);
    const chosen = this.#someOf((one) => SCALED.includes(one.namespace) && isScalable(one), 18);
    for (const one of chosen.slice(0, 6).filter(({ kind }) => kind === 'Deployment')) await this.#rollOut(one, round);
    for (const one of chosen.slice(6)) await this.#scale(one, this.#random.number(0, 6), round);
    if (!round.lost) {
      for (const one of this.#disturbedOf(state, disturbed, round)) await this.#rollOut(one, round);
      await this.#makeAnew(chosen, round);
    }
    for (const one of this.#someOf(({ namespace }) => namespace === 'core', 3))
      await this.#scale(one, this.#random.number(0, 2), round);
    await this.#deletePods(state, round);
    await this.#runJobs(round);
    await this.#remakeGang(state, round);
    await this.#cheat(round);
    for (const load of this.#loads) load.millicores = this.#random.number(0, 1_000);
    await lost;
    await spot();
    return round;
  }

  /** What is not compared with its division, nor touched otherwise in this round. */
  #disturbedOf({ owners }: State, disturbed: ReadonlyMap<string, string>, { scaled, rolledOut }: Round): Made[] {
    const names = new Set(
      [...owners.values()]
        .filter(({ metadata: { uid = '' } }) => disturbed.has(uid) && !rolledOut.has(uid))
        .map(({ kind, metadata: { namespace = '', name } }) => `${kind} ${namespace}/${name}`),
    );
    return this.#someOf(
      ({ kind, namespace, name }) =>
        kind === 'Deployment' &&
        JUDGED.includes(namespace) &&
        names.has(`${kind} ${namespace}/${name}`) &&
        !scaled.has(`${namespace}/${name}`),
      30,
    );
  }

  /** Workloads that are divided by room: from nothing again, when nothing of the former ones is left. */
  async #makeAnew(others: readonly Made[], round: Round): Promise<void> {
    const { host } = this.#lab;
    const some = this.#someOf((made) => made.namespace === 'room' && !others.includes(made), 8);
    const anew = some.map((one) => {
      const { object } = dividedByRoom(Number(one.name.split('-').at(-1)), this.#random.number(1, 6));
      return { one, object };
    });
    const remake = async ({ one, object }: (typeof anew)[number]): Promise<void> => {
      await host.api.call('DELETE', `${pathOf(one)}?propagationPolicy=Background`);
      const isGone = async (): Promise<boolean> => (await podsOf(host, 'room', `app=${one.name}`)).length === 0;
      await until(`${one.name} has no pods`, isGone, { timeoutMs: 180_000, intervalMs: 500 });
      // Whoever answers the scheduler hears of it a moment later.
      await sleep(2_000);
      await host.api.call('POST', pathOf(one).replace(/\/[^/]+$/, ''), object);
    };
    await Promise.all(anew.map(remake));
    round.done.push(...some.map(({ name }) => `room/${name} made anew`));
  }

  #someOf(which: (made: Made) => boolean, count: number): Made[] {
    const left = this.#made.filter(which);
    return Array.from({ length: Math.min(count, left.length) }, () => {
      const [one] = left.splice(this.#random.number(0, left.length - 1), 1);
      if (one === undefined) throw new Error('there are no more');
      return one;
    });
  }

  async #cut(round: Round): Promise<void> {
    // Most workloads that want to be moved have a pod in the first one.
    const name = this.#round === 1 ? MEMBERS[0] : this.#random.pick(MEMBERS);
    round.done.push(`${name} lost for ${LOST_MS / 1000} s`);
    const way = this.#lab.ways.get(name);
    const rule = way?.inject({ kind: 'reset', when: 'before' });
    way?.resetConnections();
    await sleep(LOST_MS);
    rule?.remove();
    round.backAt = Date.now();
  }

  /** The cloud takes a spot node back for a while. */
  async #cordonSpot(round: Round): Promise<() => Promise<void>> {
    const name = this.#random.pick(MEMBERS);
    const member = this.#lab.members.get(name);
    const path = `/api/v1/nodes/${name}-spot-0`;
    round.done.push(`${name}-spot-0 cordoned`);
    await member?.api.call('PATCH', path, { spec: { unschedulable: true } });
    return async () => {
      await member?.api.call('PATCH', path, { spec: { unschedulable: null } });
    };
  }

  async #edit(state: State, round: Round): Promise<void> {
    if (!this.#random.chance(0.5)) return;
    const policy = this.#random.pick(staticPolicies(this.#random));
    const { name } = policy['metadata'] as { name: string };
    round.done.push(`policy ${name} edited`);
    await this.#lab.host.apply([policy]);
    for (const { kind, metadata } of state.owners.values()) {
      if (kind === 'Deployment' && metadata.namespace === 'static' && metadata.labels?.['rule'] === name)
        round.disturbed.set(metadata.uid ?? '', 'its policy was edited');
    }
  }

  async #rollOut(made: Made, round: Round): Promise<void> {
    const annotations = { round: String(this.#round) };
    const patch = { spec: { template: { metadata: { annotations } } } };
    const { metadata } = (await this.#lab.host.api.call('PATCH', pathOf(made), patch)) as { metadata: { uid: string } };
    round.rolledOut.add(metadata.uid);
    if (made.namespace === 'room') round.changed.add(metadata.uid);
    round.done.push(`${made.namespace}/${made.name} rolled out`);
  }

  async #scale(made: Made, replicas: number, round: Round): Promise<void> {
    const before = await read<{ metadata: { uid: string }; spec: { replicas: number } }>(this.#lab.host, pathOf(made));
    if (before === undefined) return;
    await this.#lab.host.api.call('PATCH', `${pathOf(made)}/scale`, { spec: { replicas } });
    round.scaled.add(`${made.namespace}/${made.name}`);
    if (replicas < before.spec.replicas) round.shrunk.add(before.metadata.uid);
    if (made.namespace === 'room') round.changed.add(before.metadata.uid);
    round.done.push(`${made.namespace}/${made.name} ${before.spec.replicas} to ${replicas}`);
  }

  async #deletePods(state: State, round: Round): Promise<void> {
    // Of a ReplicaSet that shrinks in the same moment one more that goes is one less that it chooses.
    const some = state.pods.filter((pod) => {
      const { namespace = '', labels } = pod.metadata;
      return isReady(pod) && SCALED.includes(namespace) && !round.scaled.has(`${namespace}/${labels?.['app'] ?? ''}`);
    });
    for (let count = 0; count < 10 && some.length > 0; count += 1) {
      const pod = this.#random.pick(some);
      const { metadata } = pod;
      if (metadata.namespace === 'room') round.changed.add(workloadOf(chainOf(state, pod)).object.metadata.uid ?? '');
      const path = `/api/v1/namespaces/${metadata.namespace ?? ''}/pods/${metadata.name}`;
      await this.#lab.host.api.call('DELETE', path).catch(() => undefined);
    }
    round.done.push('10 pods deleted');
  }

  /** The Jobs of a former round are done, and are made anew. */
  async #runJobs(round: Round): Promise<void> {
    for (const made of this.#someOf(({ kind }) => kind === 'Job', 5)) {
      const job = await read<{ metadata: Fields; spec: Fields }>(this.#lab.host, pathOf(made));
      if (job === undefined) continue;
      const { template, parallelism, completions } = job.spec as {
        template: { metadata: Fields; spec: Fields };
      } & Fields;
      const { app } = template.metadata['labels'] as Fields;
      const anew = { metadata: { labels: { app } }, spec: template.spec };
      await this.#lab.host.api.call('DELETE', `${pathOf(made)}?propagationPolicy=Background`);
      await this.#lab.host.api.call('POST', pathOf(made).replace(/\/[^/]+$/, ''), {
        metadata: { name: `${made.name}-again-${this.#round}` },
        spec: { template: anew, parallelism, completions },
      });
      round.done.push(`${made.namespace}/${made.name} again`);
    }
  }

  async #remakeGang({ pods }: State, round: Round): Promise<void> {
    const [gang] = this.#someOf(({ namespace }) => namespace === 'gangs', 1);
    if (gang === undefined) return;
    for (const { metadata } of pods.filter(({ metadata: { labels } }) => labels?.['app'] === gang.name)) {
      if (metadata.namespace !== 'gangs') continue;
      await this.#lab.host.api.call('DELETE', `/api/v1/namespaces/gangs/pods/${metadata.name}`).catch(() => undefined);
    }
    round.done.push(`gang ${gang.name} made anew`);
  }

  /** Whatever a tenant may write to get out of the host, or to keep Spillway busy. */
  async #cheat(round: Round): Promise<void> {
    const { tenant } = this.#lab;
    const path = `/api/v1/namespaces/${CHEATS}/pods`;
    const name = `cheat-${this.#round}`;
    await this.#shrinkHuge();
    const tried: Tried[] = [];
    for (const [index, one] of triesOf().entries()) {
      const containers = [{ name: 'main', image: 'registry.example/app:v1', resources: { requests: { cpu: '10m' } } }];
      const pod = { metadata: { name: `${name}-${index}`, ...one.metadata }, spec: { containers, ...one.spec } };
      const error = await tenant.call('POST', path, pod).then(() => undefined, String);
      // Where there is no room for it nothing was tried.
      if (error?.includes('exceeded quota') === true) throw new Error(error);
      tried.push({ one, error });
    }
    round.cheated.push(...wronglyAnswered(tried));
    const huge = `/apis/apps/v1/namespaces/${CHEATS}/deployments`;
    const annotations = {
      'federation.kubernetes.io/deployment-preferences': '{"rebalance":true,"clusters":{"*":{"weight":1000000}}}',
    };
    const template = {
      metadata: { labels: { app: 'huge' } },
      spec: { containers: [{ name: 'main', image: 'app:v1' }] },
    };
    const deployment = { selector: { matchLabels: { app: 'huge' } }, template };
    const body = { metadata: { name: 'huge', annotations }, spec: { ...deployment, replicas: 2 ** 31 - 1 } };
    await tenant.call('POST', huge, body).catch(() => undefined);
    await tenant.call('PATCH', `${huge}/huge`, { spec: { replicas: 2 ** 31 - 1 } });
    // Those of the round before.
    const old = (await tenant.call('GET', path)) as { items: Pod[] };
    for (const { metadata } of old.items) {
      if (metadata.name.startsWith('cheat-') && !metadata.name.startsWith(`${name}-`))
        await tenant.call('DELETE', `${path}/${metadata.name}`).catch(() => undefined);
    }
    const refused = tried.filter(({ error }) => error !== undefined).length;
    round.done.push(`a tenant cheated ${tried.length} times, ${refused} refused`);
  }

  /** Of the most pods that there may be to one, in one step; as long as they are there the quota leaves room for no other pod. */
  async #shrinkHuge(): Promise<void> {
    const made: Made = { kind: 'Deployment', namespace: CHEATS, name: 'huge' };
    if ((await read(this.#lab.host, pathOf(made))) === undefined) return;
    await this.#lab.tenant.call('PATCH', pathOf(made), { spec: { replicas: 1 } });
    const isCounted = async (): Promise<boolean> => {
      const path = `/api/v1/namespaces/${CHEATS}/resourcequotas/pods`;
      const quota = await read<{ status?: { used?: { pods?: string } } }>(this.#lab.host, path);
      return Number(quota?.status?.used?.pods) <= 10;
    };
    await until('the quota has room for other pods again', isCounted, { timeoutMs: 180_000, intervalMs: 500 });
  }
}

const SCALABLE: readonly Made['kind'][] = ['Deployment', 'StatefulSet', 'ReplicaSet', 'ReplicationController'];
const isScalable = ({ kind }: Made): boolean => SCALABLE.includes(kind);
