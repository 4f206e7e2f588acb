import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import type { SimCluster } from '../sim-cluster.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';

/** Between two things that the controllers of a cluster do for a namespace that ends, in ms. */
const STEP_MS = 300;

/** Deletes it with all that is in it, which takes as long as that takes to go. `gone`: then, and when all is to be well again. */
function end(scene: Scene, random: Random, cluster: SimCluster, path: string, gone: () => void): void {
  const uid = cluster.get(path)?.metadata.uid;
  cluster.remove(cluster === scene.world.host ? 'user' : 'owner', path);
  const goOn = (): void => {
    if (cluster.get(path)?.metadata.uid !== uid) {
      gone();
      return;
    }
    cluster.collectGarbage((count) => random.int(count));
    cluster.loop.later(random.between(1, STEP_MS), goOn);
  };
  goOn();
}

function isThere(cluster: SimCluster, path: string): boolean {
  const found = cluster.get(path);
  return found !== undefined && found.metadata.deletionTimestamp === undefined;
}

/** Namespaces with all that is in them. */
export const NAMESPACES = {
  'delete-namespace': {
    weight: 0,
    act: (scene, random) => {
      const { host, loop } = scene.world;
      const name = random.pick(USER_NAMESPACES) ?? 'shop';
      const path = `${PATHS.namespaces}/${name}`;
      // Users of the other one go on.
      if (!USER_NAMESPACES.every((one) => isThere(host, `${PATHS.namespaces}/${one}`))) return undefined;
      const seconds = Math.round(random.between(0, 60));
      end(scene, random, host, path, () => {
        loop.later(seconds * 1_000, () => {
          host.create('user', PATHS.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
        });
      });
      return `user deletes namespace ${name}, and makes it anew ${seconds} s after it has gone`;
    },
  },
  'owner-deletes-namespace': {
    weight: 0,
    act: (scene, random) => {
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      if (cluster === undefined) return undefined;
      const system = new Set(['kube-system', 'default']);
      const others = cluster.list(PATHS.namespaces).filter(({ metadata }) => !system.has(metadata.name));
      const name = random.pick(others)?.metadata.name ?? '';
      const path = `${PATHS.namespaces}/${name}`;
      if (!isThere(cluster, path)) return undefined;
      end(scene, random, cluster, path, () => undefined);
      return `owner deletes namespace ${name} of ${member}`;
    },
  },
} satisfies Acts;
