import { NODE_LABEL, OUT_OF_SERVICE_TAINT } from '../../../src/api/marks.ts';
import { asPod, hostUidOf } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { PATHS, type World } from '../world.ts';
import { createdFor } from './creation-calls.ts';
import type { Report } from './report.ts';

/** What was sent before has arrived by then, and caches show it, in ms. */
const LATE_MS = 90_000;

/** So long others wait for a deletion that is not answered, in ms. */
const PATIENCE_MS = 30_000;

/** What follows from an administrator's word that nothing runs on a virtual node any more. */
export class FencingOracle {
  readonly #world: World;
  readonly #report: Report;
  /** Since when each Node has had the taint, and until when it had it; Infinity while it has, in ms. */
  readonly #tainted = new Map<string, { since: number; until: number }>();
  /** Until when each member did not answer, by its object in the host; Infinity while it does not, in ms. */
  readonly #lost = new Map<string, number>();
  /** UIDs of host pods that the program removed by that word, their virtual nodes, and when, in ms. */
  readonly #ended = new Map<string, { node: string; at: number }>();

  /** By origin and path, when the program first asked for the end of a copy, and when that was answered last, in ms. */
  readonly #asked = new Map<string, { first: number; answered: number }>();
  /** By process and UID of the host pod, when the process first asked for a copy, in ms. */
  readonly #creations = new Map<string, number>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  sent(call: Call): void {
    const { origin, outgoing, owner } = call;
    const where = `${origin} ${pathOf(outgoing)}`;
    if (owner !== undefined && outgoing.method === 'DELETE' && !this.#asked.has(where))
      this.#asked.set(where, { first: this.#world.loop.now, answered: Number.NEGATIVE_INFINITY });
    const uid = createdFor(call);
    const creation = `${owner?.name} ${uid}`;
    if (uid !== undefined && !this.#creations.has(creation)) this.#creations.set(creation, this.#world.loop.now);
  }

  received({ origin, outgoing }: Call): void {
    const asked = outgoing.method === 'DELETE' ? this.#asked.get(`${origin} ${pathOf(outgoing)}`) : undefined;
    if (asked !== undefined) asked.answered = this.#world.loop.now;
  }

  changed({ cluster, object, type, at }: Change): void {
    const { namespace, name: of } = object.metadata;
    if (object['kind'] === 'Pod' && type === 'ADDED')
      this.#asked.delete(`${cluster.origin} /api/v1/namespaces/${namespace}/pods/${of}`);
    if (cluster !== this.#world.host) return;
    if (object['kind'] === 'MemberCluster' && type === 'DELETED') this.#forgotten(object.metadata.name);
    else if (object['kind'] === 'MemberCluster') this.#member(object, at);
    if (object['kind'] !== 'Node') return;
    const { taints = [] } = (object['spec'] ?? {}) as { taints?: { key: string }[] };
    const isTainted = type !== 'DELETED' && taints.some(({ key }) => key === OUT_OF_SERVICE_TAINT);
    const { name } = object.metadata;
    const known = this.#tainted.get(name);
    if (isTainted && known?.until !== Infinity) this.#tainted.set(name, { since: at, until: Infinity });
    else if (!isTainted && known?.until === Infinity) this.#tainted.set(name, { ...known, until: at });
  }

  #member({ metadata: { name }, status }: SimObject & { status?: unknown }, at: number): void {
    const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
    const isLost = conditions.some((one) => one.type === 'Reachable' && one.status === 'False');
    if (isLost) this.#lost.set(name, Number.POSITIVE_INFINITY);
    else if (this.#lost.get(name) === Number.POSITIVE_INFINITY) this.#lost.set(name, at);
  }

  /** Whether pods on that Node may be ended without asking the member: somebody says so, and it does not answer. */
  isOutOfService(nodeName: string): boolean {
    const known = this.#tainted.get(nodeName);
    const member = [...this.#world.members.keys()].find((name) => nodeName === name || nodeName.startsWith(`${name}-`));
    const { now } = this.#world.loop;
    const wasLost = now - (this.#lost.get(member ?? '') ?? Number.NEGATIVE_INFINITY) < LATE_MS;
    // Who acts for it knows before the host is told.
    const isLost = wasLost || this.#isCut(member ?? '');
    return known !== undefined && now - known.until < LATE_MS && isLost;
  }

  /** What was written down goes with the object that it stands in, as one that leaves by force tells. */
  #forgotten(member: string): void {
    for (const [uid, { node }] of this.#ended)
      if (node === member || node.startsWith(`${member}-`)) this.#ended.delete(uid);
  }

  #isCut(member: string): boolean {
    const { members, network } = this.#world;
    return network.troubles.get(members.get(member)?.origin ?? '')?.cutToServer === true;
  }

  /** The program removes that host pod although its member has a copy. Returns whether it may. */
  removes(hostPod: SimObject, by: string): boolean {
    const { nodeName = '' } = asPod(hostPod).spec;
    if (!this.isOutOfService(nodeName)) return false;
    const { uid, name } = hostPod.metadata;
    this.#ended.set(uid, { node: nodeName, at: this.#world.loop.now });
    if (!this.#isStored(uid))
      this.#report('fenced', `${by} ends ${name}, and nobody would know it if its copy comes back`);
    return true;
  }

  /** The host says for good that it was ended, to every process. */
  isWrittenDown(uid: string): boolean {
    return this.#ended.has(uid) || this.#isStored(uid);
  }

  /** The program makes a copy of that host pod, which was made at `since` and is `of` the member since `onSince`. */
  makes({ object, by, cluster }: Change, since: number, onSince: number): void {
    // What was asked for before may arrive after what has come back.
    if (since < onSince) return;
    const node = object.metadata.labels?.[NODE_LABEL];
    // Behind a slow webhook it may be carried out while the member is still away, and nothing is back.
    const askedAt = this.#creations.get(`${by} ${hostUidOf(object) ?? ''}`) ?? Number.POSITIVE_INFINITY;
    for (const pod of cluster.list('/api/v1/pods')) {
      const { namespace, name, labels, deletionTimestamp } = pod.metadata;
      const asked = this.#asked.get(`${cluster.origin} /api/v1/namespaces/${namespace}/pods/${name}`);
      // What does not let itself be deleted keeps nothing else from being made.
      const { first, answered } = asked ?? { first: Number.POSITIVE_INFINITY, answered: Number.NEGATIVE_INFINITY };
      if (answered >= onSince || (first >= onSince && this.#world.loop.now - first >= PATIENCE_MS)) continue;
      if (deletionTimestamp !== undefined || labels?.[NODE_LABEL] !== node) continue;
      // Who had asked for it before that one was ended could not know.
      const endedAt = this.#ended.get(hostUidOf(pod) ?? '')?.at;
      if (endedAt === undefined || askedAt < endedAt) continue;
      this.#report(
        'fenced',
        `${by} makes ${object.metadata.name} in ${cluster.name} before it ends ${name}, which is back`,
      );
    }
  }

  #isStored(uid: string): boolean {
    return [...this.#world.host.list(PATHS.members)].some(({ status }) => {
      const { fencing } = (status ?? {}) as { fencing?: { pods?: Record<string, string> } };
      return Object.hasOwn(fencing?.pods ?? {}, uid);
    });
  }
}

function pathOf({ path }: Call['outgoing']): string {
  return path.split('?')[0] ?? '';
}
