import type { Acts } from './act.ts';
import { CONNECTING, trouble } from './trouble.ts';

/** Lives and deaths of the program. */

export const REPLICAS = {
  crash: {
    weight: 1,
    act: (scene, random) => {
      const replica = random.pick(scene.replicas);
      if (replica?.running !== true) return undefined;
      replica.crash();
      return `replica ${replica.place} dies`;
    },
  },
  'crash-soon': {
    weight: 3,
    act: (scene, random) => {
      const replica = random.pick(scene.replicas);
      if (replica?.running !== true) return undefined;
      const turns = 1 + random.int(60);
      scene.afterTurns(turns, () => replica.crash());
      return `replica ${replica.place} dies after ${turns} more turns`;
    },
  },
  start: {
    weight: 6,
    act: async (scene, random) => {
      const replica = random.pick(scene.replicas.filter(({ running }) => !running));
      if (replica === undefined || scene.doors.get('host')?.instead !== undefined) return undefined;
      await replica.start();
      return `replica ${replica.place} starts`;
    },
  },
  stop: {
    weight: 0.5,
    act: async (scene, random) => {
      const replica = random.pick(scene.replicas);
      if (replica?.running !== true) return undefined;
      await replica.stop();
      return `replica ${replica.place} is told to end`;
    },
  },
  'long-outage': {
    weight: 0.25,
    act: async (scene, random) => {
      const { loop } = scene.world;
      if (scene.doors.get('host')?.instead !== undefined) return undefined;
      for (const replica of scene.replicas) replica.crash();
      const minutes = Math.round(random.between(1, 16));
      await loop.runUntil(loop.now + minutes * 60_000);
      await scene.replicas[0]?.start();
      return `no replica ran for ${minutes} min; one starts`;
    },
  },
  'clock-jump': {
    weight: 0.5,
    act: (scene, random) => {
      const replica = random.pick(scene.replicas);
      if (replica?.process === undefined) return undefined;
      const seconds = Math.round(random.between(-1_800, 1_800));
      replica.process.clockOffsetMs += seconds * 1_000;
      return `the clock of replica ${replica.place} jumps by ${seconds} s`;
    },
  },
  partition: {
    weight: 1.5,
    act: (scene, random) => {
      const replica = random.pick(scene.replicas);
      const cluster = random.chance(0.6) ? scene.world.host : random.pick(scene.world.clusters);
      if (replica === undefined || cluster === undefined) return undefined;
      const { partitions } = scene.world.network;
      const apart = `${replica.place} ${cluster.origin}`;
      const seconds = Math.round(random.between(5, 60));
      partitions.add(apart);
      scene.world.loop.later(seconds * 1_000, () => partitions.delete(apart));
      const words = `for ${seconds} s there is no way between replica ${replica.place} and ${cluster.name}`;
      // What waits for a connection meanwhile was decided upon while its replica still held its Leases.
      return random.chance(0.5) ? words : `${words}; ${trouble(scene, random, { connectMs: 60_000 }, CONNECTING)}`;
    },
  },
} satisfies Acts;
