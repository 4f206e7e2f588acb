/** Something that validation.yaml refuses, in words, as it is applied, and what it says. */
export type WrongObject = readonly [what: string, object: object, refusal: string];

export function policy(kind: string, selectors: object[], namespace?: string): object {
  const metadata = { name: 'p', ...(namespace === undefined ? {} : { namespace }) };
  const rest = kind.includes('Placement') ? { placement: {} } : {};
  return { apiVersion: 'spillway.dev/v1alpha1', kind, metadata, spec: { resourceSelectors: selectors, ...rest } };
}

export const deployments = { apiVersion: 'apps/v1', kind: 'Deployment' };

export function foreignSelector(kind: string): object {
  return policy(
    kind,
    [{ ...deployments, namespace: 'shop' }, deployments, { ...deployments, namespace: 'bank' }],
    'shop',
  );
}

export function member(annotations: object): object {
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', annotations },
    spec: { credentials: { secretRef: { namespace: 'default', name: 'east' } } },
  };
}

export function gangPod(name: string, annotations: object): object {
  const metadata = { name: 'p', namespace: 'shop', labels: { 'spillway.dev/gang': name }, annotations };
  const spec = { containers: [{ name: 'main', image: 'app' }], automountServiceAccountToken: false };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec };
}

export function namespace(name: string, burst: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { 'spillway.dev/burst': burst } } };
}

const NAMESPACE_REFUSAL =
  'spec.resourceSelectors[2].namespace: must be shop, the namespace of the policy, or be left out';

export const FOREIGN_SELECTORS: readonly WrongObject[] = [
  ['a PlacementPolicy for another namespace', foreignSelector('PlacementPolicy'), NAMESPACE_REFUSAL],
  ['an OverridePolicy for another namespace', foreignSelector('OverridePolicy'), NAMESPACE_REFUSAL],
];

/** Annotations and labels. */
export const WRONG_MARKS: readonly WrongObject[] = [
  [
    'a price in words',
    member({ 'spillway.dev/price': 'cheap' }),
    'metadata.annotations[spillway.dev/price]: must be a decimal number such as 0.25, of at most 12 digits before and after the point, not cheap',
  ],
  [
    'a price without end',
    member({ 'spillway.dev/price': '9'.repeat(400) }),
    'metadata.annotations[spillway.dev/price]: must be a decimal number such as 0.25, of at most 12 digits',
  ],
  ['a negative price', member({ 'spillway.dev/price': '-1' }), 'metadata.annotations[spillway.dev/price]: must be'],
  [
    'an identity that is none',
    member({ 'spillway.dev/confirm-identity': 'yes' }),
    'metadata.annotations[spillway.dev/confirm-identity]: must be the UID of the namespace kube-system',
  ],
  [
    'a namespace with a typing error',
    namespace('bank', 'enable'),
    'metadata.labels[spillway.dev/burst]: must be enabled (pods may burst), policies (where a policy says so) or disabled, not enable',
  ],
  [
    'a namespace of the cluster itself that is to burst',
    namespace('kube-other', 'enabled'),
    'metadata.labels[spillway.dev/burst]: pods of the cluster itself never leave it',
  ],
  [
    'a gang without a size',
    gangPod('ring', {}),
    'metadata.annotations[spillway.dev/gang-size]: must be the number of pods of the gang, from 1 to 10000, not ""',
  ],
  [
    'a gang beyond reason',
    gangPod('ring', { 'spillway.dev/gang-size': '10001' }),
    'metadata.annotations[spillway.dev/gang-size]: must be the number of pods of the gang, from 1 to 10000, not "10001"',
  ],
  [
    'a gang without patience',
    gangPod('ring', { 'spillway.dev/gang-size': '2', 'spillway.dev/gang-timeout-seconds': '1' }),
    'metadata.annotations[spillway.dev/gang-timeout-seconds]: must be a number from 5 to 86400, not "1"',
  ],
  [
    'a gang without a name',
    gangPod('', { 'spillway.dev/gang-size': '2' }),
    'metadata.labels[spillway.dev/gang]: must be the name of the gang',
  ],
];

const AT_ONCE =
  'Kubernetes would delete all pods there that do not tolerate it, at once, whatever disruption budgets say and whether they fit elsewhere or not. ' +
  'To have them moved one after the other where they fit: ';

const OUR_TAINTS =
  'there is spillway.dev/drain for people, and spillway.dev/virtual-node, spillway.dev/member-unreachable and spillway.dev/member-not-ready are for ' +
  'Spillway alone. To have all pods moved one after the other where they fit: ';

/** Taints that node-taints.yaml refuses: by which words of kubectl, and what is said then. */
export const WRONG_TAINTS: readonly (readonly [node: string, taint: string, refusal: string])[] = [
  [
    'east',
    'gone:NoExecute',
    `east is a virtual node: for gone:NoExecute ${AT_ONCE}put the taint into spec.taints of MemberCluster east, or ` +
      'kubectl taint node east spillway.dev/drain:NoSchedule. ' +
      'To evict all that budgets let go: kubectl spillway drain east. To keep new pods away: kubectl spillway cordon east',
  ],
  [
    'east-gpu',
    'gone=x:NoExecute',
    `east-gpu is a virtual node: for gone:NoExecute ${AT_ONCE}put the taint into spec.taints of MemberCluster east ` +
      'or of the pool in its spec.virtualNodes, or kubectl taint node east-gpu spillway.dev/drain:NoSchedule. ' +
      'To evict all that budgets let go: kubectl drain east-gpu. To keep new pods away: kubectl cordon east-gpu',
  ],
  [
    'east',
    'spillway.dev/drain:NoExecute',
    'To have them moved one after the other where they fit: kubectl taint node east spillway.dev/drain:NoSchedule.',
  ],
  // Only while a node is not Ready Kubernetes says so itself.
  [
    'east',
    'node.kubernetes.io/unreachable:NoExecute',
    'east is a virtual node: for node.kubernetes.io/unreachable:NoExecute Kubernetes would delete all pods there',
  ],
  [
    'east',
    'node.kubernetes.io/not-ready:NoExecute',
    'east is a virtual node: for node.kubernetes.io/not-ready:NoExecute Kubernetes would delete all pods there',
  ],
  [
    'east',
    'spillway.dev/drian:NoSchedule',
    `east is a virtual node, and spillway.dev/drian is no taint of Spillway: ${OUR_TAINTS}kubectl taint node east spillway.dev/drain:NoSchedule. ` +
      'To evict all that budgets let go: kubectl spillway drain east. To keep new pods away: kubectl spillway cordon east. ' +
      'Taints of your own need another prefix',
  ],
  [
    'east-gpu',
    'spillway.dev/cordon=x:PreferNoSchedule',
    `east-gpu is a virtual node, and spillway.dev/cordon is no taint of Spillway: ${OUR_TAINTS}kubectl taint node east-gpu spillway.dev/drain:NoSchedule. ` +
      'To evict all that budgets let go: kubectl drain east-gpu. To keep new pods away: kubectl cordon east-gpu. ',
  ],
  [
    'east',
    'spillway.dev/drain:PreferNoSchedule',
    'east is a virtual node, and spillway.dev/drain:PreferNoSchedule would empty nothing, as it keeps no new pods away. ' +
      'To have all pods moved one after the other where they fit: kubectl taint node east spillway.dev/drain:NoSchedule. ',
  ],
];
