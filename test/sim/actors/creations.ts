import { VIRTUAL_NODE_TAINT } from '../../../src/api/marks.ts';
import type { JsonObject } from '../../../src/kube/json-equal.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import { WORKLOADS, selectorOf } from '../workload-controllers.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import { deletedWorkload } from './targets.ts';

/** As the admission of the host leaves them: what nobody serves any more is left after five minutes. */
const TOLERATIONS = [
  { key: VIRTUAL_NODE_TAINT, operator: 'Exists' },
  ...['not-ready', 'unreachable'].map((word) => ({
    key: `node.kubernetes.io/${word}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  })),
];

export function podSpec(restartPolicy: string): JsonObject {
  return {
    restartPolicy,
    containers: [{ name: 'main', image: 'busybox' }],
    tolerations: TOLERATIONS,
    terminationGracePeriodSeconds: 10,
    schedulerName: 'default-scheduler',
  };
}

/** A workload of a name that was never used before; where there are too many pods for one more, another one goes. */
export function create(scene: Scene, random: Random, kind: keyof typeof WORKLOADS, spec: JsonObject): string {
  if (scene.isFull()) return deletedWorkload(scene, random) ?? '';
  const namespace = random.pick(USER_NAMESPACES) ?? 'shop';
  const name = `${kind.toLowerCase().slice(0, 3)}${scene.nextNumber()}`;
  const path = WORKLOADS[kind];
  const at = path.lastIndexOf('/');
  const collection = `${path.slice(0, at)}/namespaces/${namespace}${path.slice(at)}`;
  const apiVersion = path.split('/').slice(2, 4).join('/');
  const selector = kind === 'ReplicaSet' ? { selector: selectorOf(name) } : {};
  const whole = { ...spec, ...selector };
  scene.world.host.create('user', collection, { apiVersion, kind, metadata: { name, namespace }, spec: whole });
  return `user creates ${kind} ${namespace}/${name} ${JSON.stringify({ ...spec, template: undefined })}`;
}

/** A pod without a controller. Default for `at`: one of few names, so that one is used again soon after its pod has gone. */
export function barePod(
  scene: Scene,
  random: Random,
  restartPolicy: string,
  more: JsonObject = {},
  at = `${PATHS.pods(random.pick(USER_NAMESPACES) ?? 'shop')}/p${random.int(6)}`,
): string {
  if (scene.isFull() || scene.world.host.get(at) !== undefined) return '';
  const [namespace = '', , name = ''] = at.split('/').slice(-3);
  scene.world.host.create('user', PATHS.pods(namespace), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app: name } },
    spec: { ...podSpec(restartPolicy), ...more },
  });
  return `user creates pod ${namespace}/${name}, restartPolicy ${restartPolicy} ${JSON.stringify(more)}`;
}
