import { TEMPLATE_HASH } from '../../src/api/released.ts';
import type { JsonObject } from '../../src/kube/json-equal.ts';
import type { Random } from './random.ts';
import type { Change, SimCluster, SimObject } from './sim-cluster.ts';
import { pathOf, WORKLOADS } from './workload-controllers.ts';

export const DEPLOYMENTS = '/apis/apps/v1/deployments';
/** Counts the roll-outs of a Deployment, on its ReplicaSets. */
const REVISION = 'deployment.kubernetes.io/revision';
/** Beyond what is wanted, while it rolls out. */
const SURGE = 1;

interface Deployment {
  readonly replicas?: number;
  readonly strategy?: { readonly type?: string; readonly rollingUpdate?: { readonly maxUnavailable?: number } };
  readonly template: JsonObject & { readonly metadata?: { readonly labels?: Record<string, string> } };
}

/** The controller of the host's Deployments: one ReplicaSet for each template, which takes over from the former ones bit by bit. */
export class DeploymentController {
  readonly #host: SimCluster;
  readonly #random: Random;
  readonly #due = new Set<string>();

  constructor(host: SimCluster, random: Random) {
    this.#host = host;
    this.#random = random;
  }

  /** To be told of all that happens in the host. */
  changed({ path, type, object }: Change): void {
    if (object['kind'] === 'Deployment' && type !== 'DELETED') this.#soon(path);
    if (object['kind'] !== 'ReplicaSet') return;
    const owner = deploymentOf(object);
    if (owner !== undefined) this.#soon(pathOf(named(object, owner.name), DEPLOYMENTS));
  }

  #soon(path: string): void {
    if (this.#due.has(path)) return;
    this.#due.add(path);
    this.#host.loop.later(this.#random.between(5, 300), () => {
      this.#due.delete(path);
      const object = this.#host.get(path);
      if (object !== undefined) this.#rollOut(object);
    });
  }

  #rollOut(deployment: SimObject): void {
    const { replicas = 1, strategy, template } = deployment['spec'] as Deployment;
    const hash = hashOf(JSON.stringify(template));
    const sets = this.#setsOf(deployment);
    const current = sets.find(({ metadata }) => metadata.labels?.[TEMPLATE_HASH] === hash);
    const former = sets.filter((set) => set !== current);
    if (strategy?.type === 'Recreate' && former.some(hasPods)) {
      for (const set of former) this.#scale(set, 0);
      return;
    }
    const total = sets.reduce((sum, set) => sum + replicasOf(set), 0);
    const room = Math.max(0, replicas + SURGE - total);
    const next = sets.reduce((highest, set) => Math.max(highest, revisionOf(set)), 0) + 1;
    if (current === undefined) {
      this.#makeSet(deployment, hash, { next, replicas: Math.min(replicas, former.some(hasPods) ? room : replicas) });
      return;
    }
    if (revisionOf(current) < next - 1) this.#mark(current, next);
    const own = replicasOf(current);
    const wanted = former.some(hasPods) && own < replicas ? Math.min(replicas, own + room) : replicas;
    this.#scale(current, wanted);
    if (wanted === own) this.#shrink(former, replicas - (strategy?.rollingUpdate?.maxUnavailable ?? 0), current);
  }

  /** So many of the former ones go that enough stay Ready. */
  #shrink(former: readonly SimObject[], least: number, current: SimObject): void {
    const notReady = replicasOf(current) - readyOf(current);
    const total = [...former, current].reduce((sum, set) => sum + replicasOf(set), 0);
    let most = total - least - notReady;
    for (const set of former.toSorted((a, b) => revisionOf(a) - revisionOf(b))) {
      const fewer = Math.max(0, Math.min(most, replicasOf(set)));
      most -= fewer;
      this.#scale(set, replicasOf(set) - fewer);
    }
  }

  #setsOf({ metadata: { namespace, uid } }: SimObject): SimObject[] {
    return this.#host
      .list(WORKLOADS.ReplicaSet)
      .filter((set) => set.metadata.namespace === namespace && deploymentOf(set)?.uid === uid);
  }

  #makeSet(deployment: SimObject, hash: string, { next, replicas }: { next: number; replicas: number }): void {
    const { name, namespace = '', uid } = deployment.metadata;
    const { template } = deployment['spec'] as Deployment;
    const labels = { app: name, ...template.metadata?.labels, [TEMPLATE_HASH]: hash };
    const reference = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true };
    this.#host.create('deployment-controller', `/apis/apps/v1/namespaces/${namespace}/replicasets`, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `${name}-${hash}`,
        namespace,
        labels,
        annotations: { [REVISION]: String(next) },
        ownerReferences: [reference],
      },
      spec: {
        replicas,
        selector: { matchLabels: { app: name, [TEMPLATE_HASH]: hash } },
        template: { ...template, metadata: { ...template.metadata, labels } },
      },
    });
  }

  /** Its template is the one that is wanted, again. */
  #mark(set: SimObject, revision: number): void {
    const metadata = { annotations: { [REVISION]: String(revision) } };
    this.#host.patch('deployment-controller', pathOf(set, WORKLOADS.ReplicaSet), { metadata });
  }

  #scale(set: SimObject, replicas: number): void {
    if (replicasOf(set) === replicas) return;
    this.#host.patch('deployment-controller', pathOf(set, WORKLOADS.ReplicaSet), { spec: { replicas } });
  }
}

/** The Deployment that controls a ReplicaSet. */
export function deploymentOf({ metadata }: SimObject): { name: string; uid: string } | undefined {
  return metadata.ownerReferences?.find(({ kind, controller }) => kind === 'Deployment' && controller === true);
}

function named(object: SimObject, name: string): SimObject {
  return { ...object, metadata: { ...object.metadata, name } };
}

function replicasOf(set: SimObject): number {
  return (set['spec'] as { replicas?: number }).replicas ?? 1;
}

function readyOf(set: SimObject): number {
  return (set['status'] as { readyReplicas?: number } | undefined)?.readyReplicas ?? 0;
}

function hasPods(set: SimObject): boolean {
  return replicasOf(set) > 0 || readyOf(set) > 0;
}

function revisionOf({ metadata }: SimObject): number {
  return Number(metadata.annotations?.[REVISION] ?? 0);
}

/** As short as those of Kubernetes. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(36);
}
