import type { EventSubject } from './event-correlator.ts';
import type { KubeObject } from './object.ts';

/** An object that says of what kind it is, as Events are about it. */
export function subjectOf({
  apiVersion,
  kind,
  metadata,
}: KubeObject & Pick<EventSubject, 'apiVersion' | 'kind'>): EventSubject {
  const { namespace, name, uid } = metadata;
  return { apiVersion, kind, namespace, name, uid };
}
