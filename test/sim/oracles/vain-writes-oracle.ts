import { isJsonObject } from '../../../src/kube/json-equal.ts';
import type { SimCluster } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { NO_TROUBLE } from '../network.ts';
import type { World } from '../world.ts';
import type { Report } from './report.ts';

/** Where caches of pods follow them; those of one node ask for a part of it. */
const ALL_PODS = '/api/v1/pods';
const ONE_POD = /^(\/api\/v1\/namespaces\/[^/]+\/pods\/[^/]+)(?:\/[a-z]+)?$/;
const VERSION = /"resourceVersion":"(\d+)"/g;
/** By then all caches of a process have what one of them was told, in ms. */
const TOLD_MS = 10_000;

/**
 * I8: no write to a pod leaves it as it was. A patch that names a version was made for what is there when it is taken. One that
 * names none is judged only where whoever sends it had long been told of just that version, and does not repeat what was not answered.
 */
export class VainWritesOracle {
  readonly #world: World;
  readonly #report: Report;
  /** By process and origin: the versions of pods that it was told of, and when first, in ms. */
  readonly #told = new Map<string, Map<string, number>>();
  /** By process, origin and path: the last patch, and whether it was answered. */
  readonly #last = new Map<string, { call: Call; isAnswered: boolean }>();
  readonly #repeated = new WeakSet<Call>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  sent(call: Call): void {
    if (!isPatchOfPod(call)) return;
    const key = placeOf(call);
    const last = this.#last.get(key);
    if (last?.isAnswered === false && last.call.outgoing.body === call.outgoing.body) this.#repeated.add(call);
    this.#last.set(key, { call, isAnswered: false });
  }

  received(call: Call, text: string): void {
    const { path, origin, owner } = call;
    if (owner === undefined || text === '') return;
    if (path === ALL_PODS) this.#tell(`${owner.name} ${origin}`, text);
    else if (isPatchOfPod(call)) {
      const last = this.#last.get(placeOf(call));
      if (last?.call === call) last.isAnswered = true;
    }
  }

  #tell(who: string, text: string): void {
    let told = this.#told.get(who);
    if (told === undefined) this.#told.set(who, (told = new Map()));
    const { now } = this.#world.loop;
    for (const [, version = ''] of text.matchAll(VERSION)) if (!told.has(version)) told.set(version, now);
  }

  /** A patch was taken, and nothing is stored but what was there before. */
  changedNothing(cluster: SimCluster, call: Call): void {
    const { owner, outgoing, path } = call;
    const pod = cluster.get(ONE_POD.exec(path)?.[1] ?? '');
    if (owner === undefined || pod === undefined || !isPatchOfPod(call)) return;
    const { resourceVersion } = pod.metadata;
    if (!isBound(outgoing.body) && !this.#knew(cluster, call, resourceVersion)) return;
    this.#report('I8', `${owner.name} patches ${path} in ${cluster.name} with what is there: ${String(outgoing.body)}`);
  }

  /** Whether it was decided upon that version, by all that its process was told. */
  #knew(cluster: SimCluster, call: Call, version: string): boolean {
    const { owner, origin } = call;
    const at = this.#told.get(`${owner?.name} ${origin}`)?.get(version);
    if (at === undefined || this.#repeated.has(call) || call.askedAt - at < TOLD_MS) return false;
    const watches = [...cluster.watches.of(ALL_PODS)].filter((watch) => watch.call.owner === owner);
    const isSlow = (this.#world.network.troubles.get(origin) ?? NO_TROUBLE).slowMs > 0;
    return !isSlow && watches.length > 0 && watches.every(({ fault }) => fault === undefined);
  }
}

function isPatchOfPod({ outgoing, path }: Call): boolean {
  return outgoing.method === 'PATCH' && path.includes('/pods/');
}

function placeOf({ owner, origin, path }: Call): string {
  return `${owner?.name} ${origin}${path}`;
}

/** It says for which version of the pod it was made. */
function isBound(body: Call['outgoing']['body']): boolean {
  const patch: unknown = JSON.parse(String(body));
  const metadata = isJsonObject(patch) ? patch['metadata'] : undefined;
  return isJsonObject(metadata) && metadata['resourceVersion'] !== undefined;
}
