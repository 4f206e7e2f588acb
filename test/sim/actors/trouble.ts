import { NO_TROUBLE, type Trouble } from '../network.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';

export const CONNECTING = 'connections take long to';

/** Puts some cluster into that trouble for a while. */
export function trouble(scene: Scene, random: Random, which: Partial<Trouble>, words: string): string {
  const cluster = random.pick(scene.world.clusters) ?? scene.world.host;
  const seconds = Math.round(random.between(1, random.chance(0.3) ? 120 : 20));
  const { troubles } = scene.world.network;
  const before = troubles.get(cluster.origin) ?? NO_TROUBLE;
  troubles.set(cluster.origin, { ...before, ...which });
  scene.world.loop.later(seconds * 1_000, () => {
    const now = troubles.get(cluster.origin) ?? NO_TROUBLE;
    const healed = Object.fromEntries(Object.keys(which).map((key) => [key, NO_TROUBLE[key as keyof Trouble]]));
    troubles.set(cluster.origin, { ...now, ...healed });
  });
  return `for ${seconds} s ${words} ${cluster.name}`;
}
