import type { Acts } from './act.ts';
import { CONNECTING, trouble } from './trouble.ts';

/** What becomes of messages. */

export const NETWORKS = {
  lossy: {
    weight: 2,
    act: (scene, random) =>
      trouble(scene, random, { lostRequest: 0.2, lostAnswer: 0.2 }, 'messages are lost to and from'),
  },
  late: {
    weight: 2,
    act: (scene, random) => trouble(scene, random, { late: 0.4 }, 'requests arrive very late at'),
  },
  'lost-answers': {
    weight: 3,
    act: (scene, random) => trouble(scene, random, { lostAnswer: 0.7 }, 'no answers come from'),
  },
  resets: {
    weight: 2,
    act: (scene, random) => trouble(scene, random, { reset: 0.4 }, 'connections break to'),
  },
  refusals: {
    weight: 1.5,
    act: (scene, random) => trouble(scene, random, { refused: 0.6 }, '429 and 5xx come from'),
  },
  slow: {
    weight: 1,
    act: (scene, random) => trouble(scene, random, { slowMs: 3_000 }, 'messages are slow to and from'),
  },
  'cut-out': {
    weight: 1.5,
    act: (scene, random) => trouble(scene, random, { cutToServer: true }, 'nothing gets through to'),
  },
  'cut-in': {
    weight: 1.5,
    act: (scene, random) => trouble(scene, random, { cutToClient: true }, 'nothing comes back from'),
  },
  cut: {
    weight: 1.5,
    act: (scene, random) => trouble(scene, random, { cutToServer: true, cutToClient: true }, 'there is no way to'),
  },
  connecting: {
    weight: 1,
    act: (scene, random) => trouble(scene, random, { connectMs: 20_000 }, CONNECTING),
  },
  'refused-writes': {
    weight: 0.7,
    act: (scene, random) => {
      const door = random.pick([...scene.doors.values()]);
      if (door === undefined) return undefined;
      const seconds = Math.round(random.between(5, 120));
      door.refusesWrites = true;
      scene.forAWhile(seconds, () => {
        door.refusesWrites = false;
      });
      return `for ${seconds} s ${door.name} stores nothing but Leases`;
    },
  },
  'come-in-an-hour': {
    weight: 0.5,
    act: (scene, random) => {
      const door = random.pick([...scene.doors.values()]);
      if (door === undefined) return undefined;
      const seconds = Math.round(random.between(2, 20));
      door.refusesWatches = true;
      door.cluster.cutWatches();
      scene.forAWhile(seconds, () => {
        door.refusesWatches = false;
      });
      return `for ${seconds} s ${door.name} tells who wants to watch to come in an hour`;
    },
  },
} satisfies Acts;
