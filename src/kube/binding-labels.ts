/**
 * What the binding of a pod copies from its node, over labels of that name that the pod may have (admission plugin PodTopologyLabels,
 * KEP-4742): from Kubernetes 1.35 on.
 */
export const BINDING_LABELS: readonly string[] = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];
