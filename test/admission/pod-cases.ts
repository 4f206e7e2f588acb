import { GANG_LABEL } from '../../src/api/marks.ts';

/** What a pod gets when it is created. */
export type Gets = readonly ('outage' | 'toleration' | 'gate' | 'scheduler' | 'host')[];

export interface PodCase {
  readonly what: string;
  /** See NAMESPACES. */
  readonly namespace: string;
  readonly metadata?: object;
  readonly spec?: object;
  readonly gets: Gets;
}

/** Namespaces of the host, with their label spillway.dev/burst. */
export const NAMESPACES: Readonly<Record<string, string | undefined>> = {
  shop: 'enabled',
  bank: 'policies',
  plain: undefined,
  typo: 'yes',
  'kube-system': 'enabled',
};
/** MemberClusters with their pools, and the virtual nodes they make. */
export const MEMBERS: Readonly<Record<string, readonly string[]>> = { east: [], west: ['gpu', 'cpu'] };
export const VIRTUAL_NODES = ['east', 'west-gpu', 'west-cpu'];
export const SCHEDULER = 'spillway-scheduler';

const ALL: Gets = ['toleration', 'scheduler'];
/** Of a pod that can go nowhere else. */
const ONLY: Gets = ['outage', ...ALL];
const select = (nodeSelector: object): object => ({ nodeSelector });
const terms = (...nodeSelectorTerms: object[]): object => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const line = (key: string, operator: string, ...values: string[]): object => ({
  key,
  operator,
  ...(values.length === 0 ? {} : { values }),
});
const term = (...matchExpressions: object[]): object => ({ matchExpressions });
const named = (...values: string[]): object => ({ matchFields: [line('metadata.name', 'In', ...values)] });
const tolerate = (...tolerations: object[]): object => ({ tolerations });
const OURS = { key: 'spillway.dev/virtual-node', operator: 'Exists' };
const plain = (what: string, spec: object, gets: Gets): PodCase => ({ what, namespace: 'plain', spec, gets });
const shop = (what: string, rest: Omit<PodCase, 'what' | 'namespace'>): PodCase => ({
  what,
  namespace: 'shop',
  ...rest,
});
const gang = { labels: { [GANG_LABEL]: 'ring' }, annotations: { 'spillway.dev/gang-size': '2' } };
const owned = (kind: string, controller: boolean, apiVersion = 'apps/v1'): object => ({
  ownerReferences: [{ apiVersion, kind, name: 'x', uid: 'u', controller }],
});

export const POD_CASES: readonly PodCase[] = [
  shop('a pod of a namespace that bursts', { gets: ALL }),
  { what: 'a pod of a namespace that bursts by policies', namespace: 'bank', gets: ALL },
  { what: 'a pod of any other namespace', namespace: 'plain', gets: [] },
  { what: 'a pod of a namespace with another value', namespace: 'typo', gets: [] },
  { what: 'a pod of kube-system, whatever its label', namespace: 'kube-system', gets: [] },
  {
    what: 'a pod of kube-system that asks for a virtual node',
    namespace: 'kube-system',
    spec: select({ type: 'virtual-kubelet' }),
    gets: [],
  },
  shop('a pod that is to stay', { metadata: { labels: { 'spillway.dev/burst': 'disabled' } }, gets: [] }),
  shop('a pod that is to stay, and asks for a virtual node', {
    metadata: { labels: { 'spillway.dev/burst': 'disabled' } },
    spec: select({ 'spillway.dev/member': 'east' }),
    gets: ONLY,
  }),

  plain('type in the nodeSelector', select({ type: 'virtual-kubelet' }), ALL),
  plain('another type', select({ type: 'kwok' }), []),
  plain('member in the nodeSelector', select({ 'spillway.dev/member': 'east' }), ONLY),
  plain('node in the nodeSelector', select({ 'spillway.dev/node': 'west-gpu', disk: 'ssd' }), ONLY),
  plain('a name in the nodeSelector', select({ 'kubernetes.io/hostname': 'east' }), ONLY),
  plain('a name of a pool in the nodeSelector', select({ 'kubernetes.io/hostname': 'west-gpu' }), ONLY),
  plain('the name of a member that has pools', select({ 'kubernetes.io/hostname': 'west' }), []),
  plain('the name of a real node', select({ 'kubernetes.io/hostname': 'worker-1' }), []),
  plain('labels of real nodes', select({ disk: 'ssd', 'kubernetes.io/os': 'linux' }), []),
  plain('type in an affinity', terms(term(line('type', 'In', 'kwok', 'virtual-kubelet'))), ALL),
  plain('any type in an affinity', terms(term(line('type', 'Exists'))), []),
  plain(
    'member in the second of two terms',
    terms(term(line('disk', 'Exists')), term(line('spillway.dev/member', 'Exists'))),
    ALL,
  ),
  plain(
    'member in a second line',
    terms(term(line('disk', 'In', 'ssd'), line('spillway.dev/member', 'In', 'east'))),
    ONLY,
  ),
  plain('no member', terms(term(line('spillway.dev/member', 'DoesNotExist'))), []),
  plain('not that member', terms(term(line('spillway.dev/member', 'NotIn', 'east'))), []),
  plain('a name in an affinity', terms(term(line('kubernetes.io/hostname', 'In', 'worker-1', 'west-cpu'))), ALL),
  plain('not that name in an affinity', terms(term(line('kubernetes.io/hostname', 'NotIn', 'east'))), []),
  plain('a name as a field', terms(named('east')), ALL),
  plain('the name of a real node as a field', terms(named('worker-1')), []),
  plain(
    'field and label in one term',
    terms({ ...named('worker-1'), ...term(line('spillway.dev/node', 'Exists')) }),
    ONLY,
  ),

  plain(
    'member in both of two terms',
    terms(term(line('spillway.dev/member', 'In', 'east')), term(line('spillway.dev/node', 'Exists'))),
    ONLY,
  ),
  plain(
    'member, and the toleration of everything',
    { ...select({ 'spillway.dev/member': 'east' }), ...tolerate({ operator: 'Exists' }) },
    ALL,
  ),

  shop('bound by its creator', { spec: { nodeName: 'worker-1' }, gets: [] }),
  shop('of a DaemonSet', { metadata: owned('DaemonSet', true), gets: [] }),
  shop('of a DaemonSet that is not its controller', { metadata: owned('DaemonSet', false), gets: ALL }),
  shop('of a DaemonSet of another API group', { metadata: owned('DaemonSet', true, 'example.com/v1'), gets: ALL }),
  shop('of a DaemonSet of another API group, with the toleration', {
    metadata: owned('DaemonSet', true, 'example.com/v1'),
    spec: tolerate(OURS),
    gets: ['scheduler'],
  }),
  shop('of a ReplicaSet', { metadata: owned('ReplicaSet', true), gets: ALL }),
  shop('made from a file', { metadata: { annotations: { 'kubernetes.io/config.source': 'file' } }, gets: [] }),

  shop('with other tolerations', { spec: tolerate({ key: 'a', operator: 'Exists' }), gets: ALL }),
  shop('with the toleration', { spec: tolerate(OURS), gets: ['scheduler'] }),
  shop('with the toleration of one effect', { spec: tolerate({ ...OURS, effect: 'NoSchedule' }), gets: ['scheduler'] }),
  shop('with the toleration of no value', {
    spec: tolerate({ key: 'spillway.dev/virtual-node', operator: 'Equal' }),
    gets: ['scheduler'],
  }),
  shop('with the toleration of another effect', { spec: tolerate({ ...OURS, effect: 'PreferNoSchedule' }), gets: ALL }),
  shop('with the toleration of a value that is never there', {
    spec: tolerate({ key: 'spillway.dev/virtual-node', operator: 'Equal', value: 'x' }),
    gets: ALL,
  }),
  shop('with the toleration of everything', { spec: tolerate({ operator: 'Exists' }), gets: ALL }),
  plain('with the toleration, of any namespace', tolerate(OURS), ['scheduler']),
  plain('with the toleration of everything, of any namespace', tolerate({ operator: 'Exists' }), ['host']),
  plain(
    'with the toleration of all that keeps it from being bound',
    tolerate({ operator: 'Exists', effect: 'NoSchedule' }),
    ['host'],
  ),
  plain('with the toleration of all that would end it', tolerate({ operator: 'Exists', effect: 'NoExecute' }), []),
  plain('with the toleration of everything, and of the taint by name', tolerate({ operator: 'Exists' }, OURS), [
    'scheduler',
  ]),
  plain(
    'with the toleration of everything, and the choice of a zone',
    { ...terms(term(line('zone', 'In', 'a')), term(line('disk', 'Exists'))), ...tolerate({ operator: 'Exists' }) },
    ['host'],
  ),
  plain(
    'with the toleration of everything, and the name of a real node',
    { ...select({ 'kubernetes.io/hostname': 'worker-1' }), ...tolerate({ operator: 'Exists' }) },
    [],
  ),
  plain(
    'with the toleration of everything, and names of real nodes in each of two terms',
    {
      ...terms(named('worker-1'), term(line('kubernetes.io/hostname', 'In', 'worker-2'))),
      ...tolerate({ operator: 'Exists' }),
    },
    [],
  ),
  plain(
    'with the toleration of everything, kept on the host by itself',
    { ...terms(term(line('spillway.dev/member', 'DoesNotExist'))), ...tolerate({ operator: 'Exists' }) },
    [],
  ),
  shop('with the toleration of everything, that is to stay', {
    metadata: { labels: { 'spillway.dev/burst': 'disabled' } },
    spec: tolerate({ operator: 'Exists' }),
    gets: ['host'],
  }),
  shop('with the toleration of everything, of a DaemonSet', {
    metadata: owned('DaemonSet', true),
    spec: { ...terms(named('worker-1')), ...tolerate({ operator: 'Exists' }) },
    gets: [],
  }),
  shop('with the toleration of everything, said to be of a DaemonSet', {
    metadata: owned('DaemonSet', true),
    spec: tolerate({ operator: 'Exists' }),
    gets: ['host'],
  }),
  {
    what: 'a pod of kube-system that tolerates everything',
    namespace: 'kube-system',
    spec: tolerate({ operator: 'Exists' }),
    gets: ['host'],
  },
  shop('with a scheduler of its own', { spec: { schedulerName: 'mine' }, gets: ['toleration'] }),
  shop('with the default scheduler by name', { spec: { schedulerName: 'default-scheduler' }, gets: ALL }),

  shop('of a gang', { metadata: gang, gets: ['toleration', 'gate', 'scheduler'] }),
  shop('of a gang, with another gate', {
    metadata: gang,
    spec: { schedulingGates: [{ name: 'example.com/wait' }] },
    gets: ['toleration', 'gate', 'scheduler'],
  }),
  shop('of a gang, with the gate', {
    metadata: gang,
    spec: { schedulingGates: [{ name: 'spillway.dev/gang' }] },
    gets: ALL,
  }),
  { what: 'of a gang that stays', namespace: 'plain', metadata: gang, gets: [] },
  {
    what: 'of a gang that asks for a virtual node by name',
    namespace: 'plain',
    metadata: gang,
    spec: select({ 'kubernetes.io/hostname': 'east' }),
    gets: ['outage', 'toleration', 'gate', 'scheduler'],
  },
  {
    what: 'of a gang, with the toleration, of any namespace',
    namespace: 'plain',
    metadata: gang,
    spec: tolerate(OURS),
    gets: ['gate', 'scheduler'],
  },
];

/** The pod as its creator sends it. */
export function podOf({ namespace, metadata, spec }: PodCase): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace, ...metadata },
    spec: { containers: [{ name: 'main', image: 'web' }], ...spec },
  };
}
