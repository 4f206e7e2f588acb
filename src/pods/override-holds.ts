import type { ObjectIdentity } from '../overrides/selection.ts';
import type { Hold } from './hold.ts';

/** Why a pod waits because of override policies. Reasons are API, see docs/reference/events.md. */

export function policiesNotRead(problem: string): Hold {
  return {
    reason: 'OverridePoliciesNotRead',
    message:
      `The override policies of this cluster cannot be read: ${problem}. No pod is sent to a member without them. ` +
      'It is tried again by itself; the kinds are in manifests/crds, the rights to read them in manifests/rbac.yaml.',
  };
}

export function overrideRefused(message: string): Hold {
  return { reason: 'OverrideRefused', message };
}

export function ownerNotRead({ kind, name, unread }: ObjectIdentity): Hold {
  const why = unread === undefined ? '' : `: ${unread}`;
  return overrideRefused(
    `An override policy chooses objects of kind ${kind} by their labels, and those of ${kind} "${name}", which owns the pod, ` +
      `cannot be read${why}. This does not pass by itself. Let the policy choose by name or kind, or choose pods by their labels.`,
  );
}

export function ownersNotRead(problem: string): Hold {
  return overrideRefused(
    `An override policy chooses pods by what owns them, and what owns this one cannot be read: ${problem}. No pod is sent to a ` +
      'member without its overrides. It is tried again by itself: see that what serves this kind in this cluster answers (its ' +
      'webhook, its API service), or let the policy choose pods by their own labels.',
  );
}

export function recordTooLong(bytes: number, most: number): Hold {
  return overrideRefused(
    `What override policies change in the pod takes ${bytes} bytes to write down, and ${most} fit an annotation. ` +
      'This does not pass by itself. Move long values to a ConfigMap.',
  );
}
