import type { EventSubject } from '../kube/event-correlator.ts';
import type { Pod } from '../kube/core-v1.ts';

/** A pod as Events are about it; pods of a list do not say of what kind they are. */
export function podSubject({ metadata: { namespace, name, uid } }: Pod): EventSubject {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}
