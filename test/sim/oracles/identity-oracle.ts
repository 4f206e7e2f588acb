import { CONFIRM_IDENTITY_ANNOTATION } from '../../../src/api/marks.ts';
import type { SimCluster } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { PATHS, type World } from '../world.ts';
import type { Report } from './report.ts';

/** Whose UID says which cluster it is. */
const KUBE_SYSTEM = `${PATHS.namespaces}/kube-system`;

/**
 * I3: a process that was told that another cluster answers under an address writes nothing there any more, and nothing
 * anywhere once that is so of the host.
 */
export class IdentityOracle {
  readonly #world: World;
  readonly #report: Report;
  /** The UID of kube-system as each process was told it last: `process origin`. */
  readonly #told = new Map<string, string>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  received({ origin, path, owner }: Call, text: string): void {
    if (owner === undefined || text === '' || !path.startsWith(PATHS.namespaces)) return;
    const key = `${owner.name} ${origin}`;
    if (path === KUBE_SYSTEM) {
      const uid = /"uid":"([^"]+)"/.exec(text)?.[1];
      if (uid !== undefined) this.#told.set(key, uid);
    } else if (path === PATHS.namespaces && origin !== this.#world.host.origin) {
      // The cache of a member's namespaces may be the first to tell that the former cluster is back. That another one answers
      // counts from the probe on: of a list nothing is believed before all of it has arrived.
      const cluster = this.#world.clusters.find((one) => one.origin === origin);
      const uid = this.#uidOf(cluster);
      if (cluster === undefined || uid === undefined || !text.includes(`"uid":"${uid}"`)) return;
      if (this.#counts(cluster, uid)) this.#told.set(key, uid);
    }
  }

  /** Of the cluster that is there, but for a while. */
  #uidOf(cluster: SimCluster | undefined): string | undefined {
    return cluster?.get(KUBE_SYSTEM)?.metadata.uid;
  }

  /**
   * Whether that is the cluster which belongs there. One that was wiped is another one, and belongs there only once an administrator has
   * said so, or nothing says which one did before.
   */
  #counts(cluster: SimCluster, told: string): boolean {
    const member = this.#world.host.get(`${PATHS.members}/${cluster.name}`);
    const { identity: pinned } = (member?.['status'] ?? {}) as { identity?: string };
    if (told === pinned) return true;
    const isNamed = member?.metadata.annotations?.[CONFIRM_IDENTITY_ANNOTATION] === told;
    return told === this.#uidOf(cluster) && (pinned === undefined || isNamed);
  }

  /** Whether the process of that name was ever told which cluster answers there. */
  wasTold(process: string, origin: string): boolean {
    return this.#told.has(`${process} ${origin}`);
  }

  sent({ origin, outgoing, owner }: Call): void {
    if (owner === undefined || outgoing.method === 'GET' || outgoing.path.includes('reviews')) return;
    const { host } = this.#world;
    for (const cluster of this.#world.clusters) {
      if (cluster.origin !== origin && cluster !== host) continue;
      const told = this.#told.get(`${owner.name} ${cluster.origin}`);
      if (told === undefined || this.#counts(cluster, told)) continue;
      const what = `${owner.name} sends ${outgoing.method} ${origin}${outgoing.path}`;
      this.#report('I3', `${what} although it was told that ${cluster.name} is another cluster`);
    }
  }
}
