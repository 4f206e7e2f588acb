/** Labels of Kubernetes' own domains that a node may put on itself (admission plugin NodeRestriction). */
const ALLOWED = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
]);

/** Whether the admission plugin NodeRestriction lets a node put a label of that key on itself. */
export function mayLabelItself(key: string): boolean {
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  const under = (parent: string): boolean => domain === parent || domain.endsWith(`.${parent}`);
  if (under('node-restriction.kubernetes.io')) return false;
  if (!under('kubernetes.io') && !under('k8s.io')) return true;
  return ALLOWED.has(key) || under('kubelet.kubernetes.io') || under('node.kubernetes.io');
}
