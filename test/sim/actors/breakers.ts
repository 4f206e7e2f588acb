import { NO_TROUBLE } from '../network.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import { podPath } from '../workload-controllers.ts';
import { PATHS } from '../world.ts';
import type { Acts } from './act.ts';
import { create, podSpec } from './creations.ts';
import { POOLS } from './host-nodes.ts';

/** Pods of one workload; few processes are told of more at once in the simulator. */
const CROWD = 15;
/** Until most of them run, and until all that is missing has been missing for so long that it is judged, in ms. */
const RUNNING_MS = 30_000;
const JUDGED_MS = 120_000;
/** One such history in the life of a world takes long enough. */
const done = new WeakSet<Scene>();

function fill(scene: Scene, random: Random): void {
  const { length } = scene.world.host.list('/api/v1/pods');
  const sets = Math.ceil((scene.mostPods - length) / CROWD);
  const spec = { replicas: CROWD, template: { spec: podSpec('Always') } };
  for (let made = 0; made < sets; made += 1) create(scene, random, 'ReplicaSet', spec);
}

/** Pods that are gone from the host while nobody looks, and what is made of that by those who look later. */
export const BREAKERS = {
  'many-pools': {
    weight: 0,
    act: (scene) => {
      const virtualNodes = POOLS.map((name) => ({ name }));
      for (const member of scene.world.members.keys())
        scene.world.host.patch('admin', `${PATHS.members}/${member}`, { spec: { virtualNodes } });
      return `admin gives all members the pools [${POOLS.join(', ')}]`;
    },
  },
  'vanish-behind-a-cut': {
    weight: 0,
    act: async (scene, random) => {
      const { host, loop, members, network } = scene.world;
      const [replica] = scene.replicas;
      const cluster = random.pick([...members.values()]);
      const isOpen = scene.doors.get('host')?.instead === undefined;
      if (replica === undefined || cluster === undefined || !isOpen || done.has(scene)) return undefined;
      done.add(scene);
      fill(scene, random);
      await loop.runUntil(loop.now + RUNNING_MS);
      for (const one of scene.replicas) one.crash();
      const pods = host.list('/api/v1/pods');
      for (const pod of pods) host.remove('user', podPath(pod), { gracePeriodSeconds: 0 });
      // Who begins now finds out what is missing, and holds deletions back.
      await replica.start();
      await loop.runUntil(loop.now + JUDGED_MS);
      replica.crash();
      // And who begins then cannot look for long.
      network.troubles.set(cluster.origin, { ...NO_TROUBLE, cutToServer: true, cutToClient: true });
      const seconds = Math.round(random.between(360, 500));
      scene.forAWhile(seconds, () => network.troubles.set(cluster.origin, NO_TROUBLE));
      await replica.start();
      await loop.runUntil(loop.now + (seconds + 20) * 1_000);
      return `${pods.length} pods vanish while nobody looks; who begins anew does not reach ${cluster.name} for ${seconds} s`;
    },
  },
} satisfies Acts;
