import { DESCHEDULER_LEASE } from '../../../src/api/moves-stopped.ts';
import { TEMPLATE_HASH } from '../../../src/api/released.ts';
import type { Change } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { isOfProgram, placeOf } from '../sim-process.ts';
import type { World } from '../world.ts';
import type { Report } from './report.ts';

const PATH = `/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/${DESCHEDULER_LEASE}`;

/**
 * There is no second evictor: pods are evicted, and let go of, by the process alone that holds the descheduler's Lease, whatever the reason. With
 * two of them each would keep a pace, and promise room, of its own.
 */
export class MoverOracle {
  readonly #world: World;
  readonly #report: Report;
  /** By place of the program, as whom it holds that Lease. */
  readonly #identities = new Map<string, string>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  changed({ object, cluster, path, type, by }: Change): void {
    if (cluster !== this.#world.host || path !== PATH || type === 'DELETED' || !isOfProgram(by)) return;
    const holder = holderOf(object);
    if (holder !== '') this.#identities.set(placeOf(by), holder);
  }

  /** A request leaves a process: the last moment at which it could have known better. */
  sent({ origin, outgoing, owner, path }: Call): void {
    if (owner === undefined || origin !== this.#world.host.origin) return;
    const { method, body } = outgoing;
    const isEviction = method === 'POST' && path.endsWith('/eviction');
    const isRelease = method === 'PATCH' && typeof body === 'string' && body.includes(TEMPLATE_HASH);
    if (!isEviction && !isRelease) return;
    const holder = holderOf(this.#world.host.get(PATH));
    if (holder !== '' && holder === this.#identities.get(owner.place)) return;
    this.#report('mover', `${owner.name} sends ${method} ${path}, and ${holder === '' ? 'nobody' : holder} moves pods`);
  }
}

function holderOf(lease: object | undefined): string {
  const { spec } = (lease ?? {}) as { spec?: { holderIdentity?: string } };
  return spec?.holderIdentity ?? '';
}
