import { GANG_LABEL, GANG_PLACED_ANNOTATION } from '../../../src/api/marks.ts';
import type { JsonObject } from '../../../src/kube/json-equal.ts';
import type { Random } from '../random.ts';
import { LIMITED, RESERVED, RESIDENCE, VOLUME_MS } from '../residence.ts';
import type { Scene } from '../scene.ts';
import { selectorOf } from '../workload-controllers.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { podSpec } from './creations.ts';

/** Somewhere in the other cluster. */
function someResidence({ world }: Scene, random: Random): string {
  return random.pick([...world.members.keys()]) ?? '';
}

function replicaSet(
  scene: Scene,
  random: Random,
  o: { labels: JsonObject; replicas: number; annotations?: JsonObject },
): string | undefined {
  if (scene.isFull()) return undefined;
  const namespace = random.pick(USER_NAMESPACES) ?? 'shop';
  const name = `res${scene.nextNumber()}`;
  const { labels, replicas, annotations = {} } = o;
  scene.world.host.create('user', `/apis/apps/v1/namespaces/${namespace}/replicasets`, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name, namespace, labels },
    spec: {
      replicas,
      selector: selectorOf(name),
      template: { metadata: { annotations }, spec: podSpec('Always') },
    },
  });
  return `user creates ReplicaSet ${namespace}/${name} ${JSON.stringify(o)}`;
}

function barePod(scene: Scene, random: Random, more: JsonObject): string {
  const namespace = random.pick(USER_NAMESPACES) ?? 'shop';
  const name = `cheat${scene.nextNumber()}`;
  scene.world.host.create('tenant', PATHS.pods(namespace), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, ...more },
    spec: podSpec('Always'),
  });
  return `${namespace}/${name} ${JSON.stringify(more)}`;
}

function madeBy(scene: Scene, apiVersion: string, kind: string): JsonObject {
  const uid = `no-such-${scene.nextNumber()}`;
  return { ownerReferences: [{ apiVersion, kind, name: 'made-up', uid, controller: true }] };
}

/** Tenants whose pods have to be in one cluster, and who write whatever might get them out of it, or keep others waiting. */
export const TENANTS = {
  'create-resident': {
    weight: 0,
    act: (scene, random) => {
      const labels = { [RESIDENCE]: someResidence(scene, random) };
      return replicaSet(scene, random, { labels, replicas: 1 + random.int(3) });
    },
  },
  cheat: {
    weight: 0,
    act: (scene, random) => {
      if (scene.isFull()) return undefined;
      const residence = { [RESIDENCE]: someResidence(scene, random) };
      const lie = random.pick(['placed', 'daemon', 'none'] as const);
      const more: JsonObject =
        lie === 'placed'
          ? {
              labels: { ...residence, [GANG_LABEL]: `lie${scene.nextNumber()}` },
              annotations: { [GANG_PLACED_ANNOTATION]: '2026-01-01T00:00:00Z' },
            }
          : lie === 'daemon'
            ? { labels: residence, ...madeBy(scene, 'example.com/v1', 'DaemonSet') }
            : { labels: residence };
      return `tenant makes ${barePod(scene, random, more)}`;
    },
  },
  'made-up-owners': {
    weight: 0,
    act: (scene, random) => {
      if (scene.isFull()) return undefined;
      const count = 6 + random.int(6);
      for (let made = 0; made < count; made += 1) {
        const labels = { [RESIDENCE]: someResidence(scene, random) };
        barePod(scene, random, { labels, ...madeBy(scene, 'apps/v1', 'Deployment') });
      }
      return `tenant makes ${count} pods of owners that do not exist`;
    },
  },
  'limited-and-slow': {
    weight: 0,
    act: (scene, random) => {
      const annotations = { [VOLUME_MS]: String(Math.round(random.between(11_000, 60_000))) };
      return replicaSet(scene, random, { labels: { [LIMITED]: 'yes' }, replicas: 2 + random.int(2), annotations });
    },
  },
  reserve: {
    weight: 0,
    act: ({ world: { host, loop, members } }) => {
      const [name = ''] = members.keys();
      const path = `${PATHS.members}/${name}`;
      if (host.get(path) === undefined) return undefined;
      const annotations = { [RESERVED.key]: String(Math.round(loop.now)) };
      host.patch('admin', path, { metadata: { annotations }, spec: { clusterTaints: [RESERVED] } });
      return `admin reserves ${name} for those whose rules tolerate it`;
    },
  },
} satisfies Acts;
