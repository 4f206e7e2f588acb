import { NO_TROUBLE } from '../network.ts';
import { SimCluster } from '../sim-cluster.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';

/**
 * A cluster of the same name and address that is another one: it has the same names in it, and none of the same UIDs. A member may
 * lack the namespaces of users, where pods could be made that no namespace of others stands in the way of.
 */
function otherOf(scene: Scene, cluster: SimCluster, random: Random): SimCluster {
  const other = new SimCluster(cluster.name, scene.world.loop);
  other.generation = 2;
  const ofUsers = cluster === scene.world.host || random.chance(0.5) ? USER_NAMESPACES : [];
  const namespaces = ['kube-system', 'default', 'spillway-system', 'kube-node-lease', ...ofUsers];
  for (const name of namespaces) {
    other.create('setup', PATHS.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  for (const [path, { metadata, ...rest }] of cluster.api.objects) {
    if (!/\/(?:nodes|memberclusters|secrets|configmaps)\//.test(path) || other.get(path) !== undefined) continue;
    const { name, namespace, labels } = metadata;
    other.api.put(path, {
      ...rest,
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(labels === undefined ? {} : { labels }),
      },
    });
  }
  return other;
}

function slowConnections({ world: { network, loop } }: Scene, origin: string, seconds: number): void {
  const { troubles } = network;
  troubles.set(origin, { ...(troubles.get(origin) ?? NO_TROUBLE), connectMs: 30_000 });
  loop.later(seconds * 1_000, () => {
    troubles.set(origin, { ...(troubles.get(origin) ?? NO_TROUBLE), connectMs: 0 });
  });
}

/** Addresses that lead elsewhere for a while. */
export const SWAPS = {
  swap: {
    weight: 0.4,
    act: (scene, random) => {
      const name = random.chance(0.4) ? 'host' : (random.pick([...scene.world.members.keys()]) ?? 'host');
      const door = scene.doors.get(name);
      // Whoever starts meanwhile would take the other one for the one that it is to work for.
      if (door === undefined || door.instead !== undefined || !scene.isPinned(name)) return undefined;
      const seconds = Math.round(random.between(2, 90));
      door.swap(otherOf(scene, door.cluster, random));
      scene.forAWhile(seconds, () => door.swap(undefined));
      // What waits for a connection meanwhile was decided upon while it was the right one.
      if (random.chance(0.5)) slowConnections(scene, door.cluster.origin, seconds);
      return `for ${seconds} s another cluster answers in the place of ${name}`;
    },
  },
} satisfies Acts;
