import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION } from '../api/marks.ts';
import { isDnsLabel } from '../kube/dns-label.ts';
import { keyFor, type KubeObject } from '../kube/object.ts';
import { WrittenObjects, type WrittenObjectsOptions } from '../kube/written-objects.ts';

/** The subject is the key of the host's Service. */
export type CopyStore<T extends KubeObject> = WrittenObjects<T, T>;

interface CopyStoreOptions extends Omit<WrittenObjectsOptions<never, never>, 'labelSelector' | 'read' | 'keep'> {
  hostId: string;
}

/**
 * The Services, or the EndpointSlices, that the host has in one member, whichever MemberCluster wrote them. What is said to stand for
 * a Service that no host can have is none of them: the member may have invented it.
 */
export function copyStore<T extends KubeObject>({ hostId, ...options }: CopyStoreOptions): CopyStore<T> {
  return new WrittenObjects<T, T>({
    ...options,
    labelSelector: `${HOST_LABEL}=${hostId}`,
    read: (copy) => {
      const { labels, annotations } = copy.metadata;
      const namespace = annotations?.[HOST_NAMESPACE_ANNOTATION] ?? '';
      const name = annotations?.[HOST_NAME_ANNOTATION] ?? '';
      if (labels?.[HOST_LABEL] !== hostId || !isDnsLabel(namespace) || !isDnsLabel(name)) return undefined;
      return { subject: keyFor(namespace, name), value: copy };
    },
  });
}
