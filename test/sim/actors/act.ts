import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';

/** Does something to the world and says what; undefined or empty: there was nothing to do it to. */
export type Act = (scene: Scene, random: Random) => Promise<string | undefined> | string | undefined;

/** What somebody may do, each with how often it comes beside all else. */
export type Acts = Record<string, { readonly weight: number; readonly act: Act }>;
