import { HOST_LABEL, HOST_NAMESPACE_ANNOTATION, HOST_UID_ANNOTATION } from '../../../src/api/marks.ts';
import { jsonEqual } from '../../../src/kube/json-equal.ts';
import { asPod, isFinal } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import type { World } from '../world.ts';
import { refersTo } from './references.ts';
import type { Report } from './report.ts';

/** What was decided upon before the last pod went has arrived by then. */
const ON_THE_WAY_MS = 3 * 60_000;
const TOKEN = 'kubernetes.io/service-account-token';

/**
 * I13: only ConfigMaps and Secrets that pods refer to are copied, as the host has or had them, and no token ever. And no copy goes
 * that pods there use, while the host has the very object that it is of.
 */
export class CopiesOracle {
  readonly #world: World;
  readonly #report: Report;
  /** All that an object of the host ever held, by its path. */
  readonly #contents = new Map<string, Set<string>>();
  /** Pods of the host by UID; until when a gone one counts, in ms. */
  readonly #pods = new Map<string, { object: SimObject; until: number }>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  changed(change: Change): void {
    const { cluster, object, type, path, by, at } = change;
    const kind = object['kind'];
    const isHost = cluster === this.#world.host;
    if (isHost && kind === 'Pod' && asPod(object).spec.nodeName !== undefined) {
      const until = type === 'DELETED' ? at + ON_THE_WAY_MS : Infinity;
      this.#pods.set(object.metadata.uid, { object, until });
    }
    if (kind !== 'ConfigMap' && kind !== 'Secret') return;
    if (isHost) {
      const contents = this.#contents.get(path) ?? new Set();
      this.#contents.set(path, contents.add(JSON.stringify(object['data'])));
    } else if (isOfProgram(by)) {
      if (type === 'DELETED') this.#removed(change, kind);
      else this.#written(change, kind);
    }
  }

  #written({ cluster, object, by, at, path }: Change, kind: 'ConfigMap' | 'Secret'): void {
    const { name, annotations } = object.metadata;
    const namespace = annotations?.[HOST_NAMESPACE_ANNOTATION] ?? '';
    const what = `${by} writes ${path} in ${cluster.name}`;
    if (object['type'] === TOKEN) this.#report('I13', `${what}, the token of a service account`);
    const isUsed = [...this.#pods.values()].some(
      (pod) => pod.until >= at && pod.object.metadata.namespace === namespace && refersTo(pod.object, kind, name),
    );
    if (!isUsed) this.#report('I13', `${what}, to which no pod of the host refers`);
    const plural = kind === 'Secret' ? 'secrets' : 'configmaps';
    const contents = this.#contents.get(`/api/v1/namespaces/${namespace}/${plural}/${name}`);
    if (contents?.has(JSON.stringify(object['data'])) !== true) {
      this.#report('I13', `${what} with ${JSON.stringify(object['data'])}, which the host never had`);
    }
  }

  #removed({ cluster, object, by, path }: Change, kind: 'ConfigMap' | 'Secret'): void {
    const { name, namespace, annotations, labels } = object.metadata;
    const source = path.replace(
      /\/namespaces\/[^/]+/,
      `/namespaces/${annotations?.[HOST_NAMESPACE_ANNOTATION] ?? namespace ?? ''}`,
    );
    const origin = this.#world.host.get(source);
    if (labels?.[HOST_LABEL] === undefined || origin?.metadata.uid !== annotations?.[HOST_UID_ANNOTATION]) return;
    if (origin === undefined || origin['type'] === TOKEN || !jsonEqual(origin['data'], object['data'])) return;
    const user = cluster
      .list(`/api/v1/namespaces/${namespace ?? ''}/pods`)
      .find(
        (pod) =>
          pod.metadata.labels?.[HOST_LABEL] !== undefined &&
          pod.metadata.deletionTimestamp === undefined &&
          !isFinal(pod) &&
          refersTo(pod, kind, name),
      );
    if (user !== undefined) {
      this.#report('copies', `${by} removes ${path} from ${cluster.name}, which ${user.metadata.name} uses there`);
    }
  }
}
