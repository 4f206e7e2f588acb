import type { SimObject } from '../sim-cluster.ts';
import type { Acts } from './act.ts';

/** API servers and their caches. */

export const API_SERVERS = {
  'cut-watches': {
    weight: 1,
    act: (scene, random) => {
      const cluster = random.pick(scene.world.clusters);
      cluster?.cutWatches();
      return `all watches of ${cluster?.name} break`;
    },
  },
  compact: {
    weight: 1,
    act: (scene, random) => {
      const cluster = random.pick(scene.world.clusters);
      if (cluster === undefined) return undefined;
      cluster.api.compact();
      for (const watch of cluster.watches) if (random.chance(0.5)) watch.expire();
      return `${cluster.name} forgets its history`;
    },
  },
  'bad-watch': {
    weight: 3,
    act: (scene, random) => {
      const cluster = random.pick(scene.world.clusters);
      const watches = [...(cluster?.watches ?? [])].filter(
        ({ collection, fault }) => collection.endsWith('/pods') && fault === undefined,
      );
      const watch = random.pick(watches);
      const kind = random.pick(['silent', 'doubled', 'reordered', 'stale', 'lossy'] as const);
      if (watch === undefined || kind === undefined) return undefined;
      watch.fault = kind;
      return `a watch of ${watch.collection} of ${cluster?.name} is ${kind}`;
    },
  },
  lie: {
    weight: 1,
    act: (scene, random) => {
      const cluster = random.pick(scene.world.clusters);
      if (cluster === undefined) return undefined;
      const share = random.chance(0.5) ? 1 : random.next();
      const seconds = Math.round(random.between(1, 20));
      const salt = random.int(100);
      const isHidden = ({ kind, metadata }: SimObject): boolean =>
        kind === 'Pod' &&
        (share === 1 || (metadata.name.charCodeAt(metadata.name.length - 1) * 31 + salt) % 100 < share * 100);
      cluster.beginLying(isHidden);
      scene.world.loop.later(seconds * 1_000, () => cluster.endLying(isHidden));
      return `for ${seconds} s lists of ${cluster.name} lack ${share === 1 ? 'all' : 'some'} pods`;
    },
  },
} satisfies Acts;
