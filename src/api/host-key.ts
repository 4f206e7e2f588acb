import { keyFor, type ObjectMeta } from '../kube/object.ts';
import { HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION } from './marks.ts';

/** The key of the host object that a member object stands for, by its marks, which are the member's to change; undefined: they name none. */
export function hostKeyOf({
  metadata: { annotations },
}: {
  metadata: Pick<ObjectMeta, 'annotations'>;
}): string | undefined {
  const name = annotations?.[HOST_NAME_ANNOTATION];
  return name === undefined ? undefined : keyFor(annotations?.[HOST_NAMESPACE_ANNOTATION], name);
}
