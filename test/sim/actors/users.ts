import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { barePod, create, podSpec } from './creations.ts';
import { someWorkload } from './targets.ts';

/** Users of the host make things. */

export const USERS = {
  rest: {
    weight: 12,
    act: (_scene, _random) => 'nothing happens',
  },
  'long-rest': {
    weight: 0.1,
    act: async ({ world: { loop } }) => {
      await loop.runUntil(loop.now + 100_000);
      return 'nothing happened for 100 s';
    },
  },
  'create-never': {
    weight: 8,
    act: (scene, random) => barePod(scene, random, 'Never'),
  },
  'create-always': {
    weight: 6,
    act: (scene, random) => barePod(scene, random, 'Always'),
  },
  'create-replicaset': {
    weight: 3,
    act: (scene, random) =>
      create(scene, random, 'ReplicaSet', { replicas: 1 + random.int(4), template: { spec: podSpec('Always') } }),
  },
  'create-statefulset': {
    weight: 3,
    act: (scene, random) =>
      create(scene, random, 'StatefulSet', { replicas: 1 + random.int(3), template: { spec: podSpec('Always') } }),
  },
  'create-job': {
    weight: 5,
    act: (scene, random) =>
      create(scene, random, 'Job', {
        completions: 1 + random.int(3),
        template: { spec: podSpec(random.chance(0.8) ? 'Never' : 'OnFailure') },
      }),
  },
  scale: {
    weight: 4,
    act: (scene, random) => {
      const found = someWorkload(scene, random);
      if (found === undefined || found.object['kind'] === 'Job') return undefined;
      const replicas = random.int(5);
      scene.world.host.patch('user', found.path, { spec: { replicas } });
      return `user scales ${found.path} to ${replicas}`;
    },
  },
  'create-many': {
    weight: 0.3,
    act: (scene, random) =>
      create(scene, random, 'ReplicaSet', { replicas: 8 + random.int(8), template: { spec: podSpec('Always') } }),
  },
  'create-and-delete': {
    weight: 0.7,
    act: (scene, random) => {
      const namespace = random.pick(USER_NAMESPACES) ?? 'shop';
      const path = `${PATHS.pods(namespace)}/q${scene.nextNumber()}`;
      const did = barePod(scene, random, 'Never', {}, path);
      const { host, loop } = scene.world;
      // A creation that its member carries out after all when the manager has given it up.
      const isSlow = random.chance(0.6);
      for (const door of scene.doors.values()) {
        if (!isSlow || door.cluster === host || door.creationMs !== undefined) continue;
        door.creationMs = () => random.between(25_000, 58_000);
        scene.forAWhile(10, () => {
          door.creationMs = undefined;
        });
      }
      const seconds = Math.round(random.between(1, 40));
      loop.later(seconds * 1_000, () => host.remove('user', path));
      return `${did}, for ${seconds} s${isSlow ? '; creations take up to 58 s' : ''}`;
    },
  },
} satisfies Acts;
