import type { Pod } from '../kube/core-v1.ts';
import type { PodDirectory, PodTarget } from './pod-directory.ts';
import type { LogsRoute, StreamRoute } from './routes.ts';

export type PodLookup =
  | { readonly kind: 'found'; readonly target: PodTarget }
  | { readonly kind: 'missing'; readonly text: string }
  | { readonly kind: 'unavailable'; readonly text: string };

/**
 * The member pod behind a route: the host pod must be bound to this node, be the very one that the path's UID names,
 * and have the container. What is missing is said in the kubelet's words.
 */
export function lookUpPod(directory: PodDirectory, route: StreamRoute | LogsRoute): PodLookup {
  const { namespace, name, uid } = route.pod;
  const pod = directory.get(namespace, name);
  if (pod === undefined) {
    const which = route.kind === 'containerLogs' ? `pod "${name}"` : 'pod';
    return { kind: 'missing', text: `${which} does not exist` };
  }
  if (uid !== undefined && uid !== pod.metadata.uid) {
    return { kind: 'missing', text: 'pod not found' };
  }
  if (route.kind !== 'portForward' && !hasContainer(pod, route.container)) {
    return { kind: 'missing', text: `container "${route.container}" not found in pod "${name}"` };
  }
  const target = directory.target(pod);
  if ('unavailable' in target) {
    return {
      kind: 'unavailable',
      text: `pod ${namespace}/${name} cannot be reached: ${target.unavailable} (the pod itself is not touched)`,
    };
  }
  return { kind: 'found', target };
}

function hasContainer(pod: Pod, name: string): boolean {
  const { containers, initContainers, ephemeralContainers } = pod.spec;
  return [containers, initContainers, ephemeralContainers].some((list) =>
    list?.some((container) => container.name === name),
  );
}
