import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, NODE_LABEL, UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { HOST_POD_INDEX } from './pod-ports.ts';

/** Index of the member pod cache: name of the virtual node, as the pods with our marks have it. */
export const VIRTUAL_NODE_INDEX = 'virtualNode';
/** The same: UID of the host pod that a pod with our marks runs for. */
export const HOST_UID_INDEX = 'hostUid';

/** The same: namespace of the host pod that a pod with our marks runs for. */
export const HOST_NAMESPACE_INDEX = 'hostNamespace';

/** The indexes of a cache of a member's pods, in which those of the host with that id are looked up. */
export function podIndexes(hostId: string): Record<string, (pod: Pod) => readonly string[]> {
  const isOurs = ({ metadata }: Pod): boolean => metadata.labels?.[HOST_LABEL] === hostId;
  return {
    [HOST_POD_INDEX]: (pod) => (isOurs(pod) ? [hostPodOf(pod)] : []),
    [VIRTUAL_NODE_INDEX]: (pod) => {
      const name = pod.metadata.labels?.[NODE_LABEL];
      return isOurs(pod) && name !== undefined ? [name] : [];
    },
    [HOST_UID_INDEX]: (pod) => {
      const uid = pod.metadata.labels?.[UID_LABEL];
      return isOurs(pod) && uid !== undefined ? [uid] : [];
    },
    [HOST_NAMESPACE_INDEX]: (pod) => {
      const namespace = pod.metadata.annotations?.[HOST_NAMESPACE_ANNOTATION];
      return isOurs(pod) && namespace !== undefined ? [namespace] : [];
    },
  };
}

function hostPodOf({ metadata: { labels, annotations } }: Pod): string {
  return `${labels?.[NODE_LABEL]}/${annotations?.[HOST_NAMESPACE_ANNOTATION]}/${annotations?.[HOST_NAME_ANNOTATION]}`;
}
