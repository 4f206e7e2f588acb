import { MEMBER_LABEL } from '../../../src/api/marks.ts';
import { OPTED_OUT } from '../opted-out.ts';
import { asPod, hostUidOf } from '../pod-shapes.ts';
import type { Change } from '../sim-cluster.ts';
import { PATHS, type World } from '../world.ts';
import type { Report } from './report.ts';

/** What has not opted in never leaves the host, whatever it tolerates. */
export class OptInOracle {
  readonly #world: World;
  readonly #report: Report;
  /** UIDs of host pods that have to stay. */
  readonly #staying = new Set<string>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  changed({ object, cluster, type }: Change): void {
    if (object['kind'] !== 'Pod' || type === 'DELETED') return;
    const { name, namespace, uid } = object.metadata;
    if (cluster !== this.#world.host) {
      if (this.#staying.has(hostUidOf(object) ?? ''))
        this.#report('opt-in', `${name} is in ${cluster.name}, and nothing says that it may leave the host`);
      return;
    }
    if (namespace !== OPTED_OUT) return;
    this.#staying.add(uid);
    const { nodeName } = asPod(object).spec;
    const node = nodeName === undefined ? undefined : this.#world.host.get(`${PATHS.nodes}/${nodeName}`);
    if (node?.metadata.labels?.[MEMBER_LABEL] !== undefined)
      this.#report('opt-in', `${name} is on ${String(nodeName)}, and nothing says that it may leave the host`);
  }
}
