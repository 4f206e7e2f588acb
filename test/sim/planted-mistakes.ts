import { DELETION_MISTAKES } from './mistakes/deletion-mistakes.ts';
import type { Mistake } from './mistakes/mistake.ts';
import { MOVE_MISTAKES } from './mistakes/move-mistakes.ts';
import { NODE_MISTAKES } from './mistakes/node-mistakes.ts';
import { PLACEMENT_MISTAKES } from './mistakes/placement-mistakes.ts';
import { POD_LIFE_MISTAKES } from './mistakes/pod-life-mistakes.ts';
import { SHORT_ROOM_MISTAKES } from './mistakes/short-room-mistakes.ts';
import { TRUST_MISTAKES } from './mistakes/trust-mistakes.ts';

/** What every program of this kind gets wrong once. */
export const MISTAKES: readonly Mistake[] = [
  ...POD_LIFE_MISTAKES,
  ...DELETION_MISTAKES,
  ...TRUST_MISTAKES,
  ...NODE_MISTAKES,
  ...MOVE_MISTAKES,
  ...PLACEMENT_MISTAKES,
  ...SHORT_ROOM_MISTAKES,
];
