import { SET_REVISION } from '../../../src/placement/set-revisions.ts';
import { DEPLOYMENTS } from '../deployments.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import type { SimObject } from '../sim-cluster.ts';
import { pathOf, WORKLOADS } from '../workload-controllers.ts';
import { USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { podSpec } from './creations.ts';

/** Of a template: few, so that users go back to former ones, too. */
const VERSION = 'example.com/version';
const VERSIONS = 3;

function some(scene: Scene, random: Random, kind: string): { object: SimObject; path: string } | undefined {
  const object = random.pick(scene.world.host.list(kind));
  return object === undefined ? undefined : { object, path: pathOf(object, kind) };
}

/** Users whose workloads become others over time. */
export const ROLL_OUTS = {
  'create-deployment': {
    weight: 0,
    act: (scene, random) => {
      if (scene.isFull()) return undefined;
      const namespace = random.pick(USER_NAMESPACES) ?? 'shop';
      const name = `dep${scene.nextNumber()}`;
      const replicas = 1 + random.int(4);
      const strategy = random.chance(0.2)
        ? { type: 'Recreate' }
        : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: random.int(2) } };
      scene.world.host.create('user', `/apis/apps/v1/namespaces/${namespace}/deployments`, {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name, namespace },
        spec: {
          replicas,
          strategy,
          selector: { matchLabels: { app: name } },
          template: { metadata: { labels: { app: name } }, spec: podSpec('Always') },
        },
      });
      return `user creates Deployment ${namespace}/${name} of ${replicas} ${JSON.stringify(strategy)}`;
    },
  },
  'roll-out': {
    weight: 0,
    act: (scene, random) => {
      const found = some(scene, random, DEPLOYMENTS);
      if (found === undefined) return undefined;
      const version = `v${random.int(VERSIONS)}`;
      const template = { metadata: { annotations: { [VERSION]: version } } };
      scene.world.host.patch('user', found.path, { spec: { template } });
      return `user rolls out ${version} of ${found.path}`;
    },
  },
  'scale-deployment': {
    weight: 0,
    act: (scene, random) => {
      const found = some(scene, random, DEPLOYMENTS);
      if (found === undefined) return undefined;
      const replicas = random.int(5);
      scene.world.host.patch('user', found.path, { spec: { replicas } });
      return `user scales ${found.path} to ${replicas}`;
    },
  },
  'update-statefulset': {
    weight: 0,
    act: (scene, random) => {
      const found = some(scene, random, WORKLOADS.StatefulSet);
      if (found === undefined) return undefined;
      const version = `v${random.int(VERSIONS)}`;
      const labels = { [SET_REVISION]: `${found.object.metadata.name}-${version}` };
      scene.world.host.patch('user', found.path, { spec: { template: { metadata: { labels } } } });
      return `user updates ${found.path} to ${version}`;
    },
  },
  'delete-deployment': {
    weight: 0,
    act: (scene, random) => {
      const found = some(scene, random, DEPLOYMENTS);
      if (found === undefined) return undefined;
      scene.world.host.remove('user', found.path);
      return `user deletes ${found.path}`;
    },
  },
} satisfies Acts;
