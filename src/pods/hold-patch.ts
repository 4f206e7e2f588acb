import { MIRRORED_CONDITION } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { isShownIgnored } from './daemon-pod.ts';
import { heldBack, intentOf } from './creation-intent.ts';
import type { Hold } from './hold.ts';
import { mirroredUid } from './host-status.ts';

/**
 * The `pods/status` patch that shows a hold: `Mirrored` False with reason and message, and the pod's own reason and
 * message, which kubectl prints. Undefined when that is what the pod shows already, or when it was created before:
 * then its status is the member's, and the memory of it in `Mirrored` must not be lost. Nor must that of a creation that
 * was begun: as long as it is not `settled` that nothing came of it, `Mirrored` stays Unknown and says where it would be.
 */
export function holdPatch(hostPod: Pod, hold: Hold, now: string, settled = false): Record<string, unknown> | undefined {
  if (mirroredUid(hostPod) !== undefined) return undefined;
  const { reason, message } = hold;
  const before = conditionOf(hostPod, MIRRORED_CONDITION);
  const shown = heldBack(message, settled ? undefined : intentOf(hostPod));
  if (before?.reason === reason && before.message === shown.message) return undefined;
  const second = now.replace(/\.\d+Z$/, 'Z');
  // Since when it is so for this reason: what a member refuses counts from then on, not from an outage before.
  const lastTransitionTime = before?.reason === reason ? (before.lastTransitionTime ?? second) : second;
  // A pod that counted as ready without running, and now is to run, does not any more.
  const unready = { type: 'Ready', status: 'False', reason, message, lastTransitionTime: second };
  const wasIgnored = isShownIgnored(hostPod);
  return {
    metadata: { uid: hostPod.metadata.uid },
    status: {
      ...(wasIgnored ? { phase: 'Pending' } : {}),
      reason,
      message,
      conditions: [
        { type: MIRRORED_CONDITION, ...shown, reason, lastTransitionTime },
        ...(wasIgnored ? [unready] : []),
      ],
    },
  };
}
