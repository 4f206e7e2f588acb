/** What a pod asks of nodes, and what becomes of it at admission. */
export interface ConstraintCase {
  readonly what: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec: object;
  /** Undefined: nothing is changed. */
  readonly split?: {
    readonly nodeSelector?: object;
    readonly affinity: object;
    /** The annotation, read. */
    readonly constraints: object;
  };
}

const line = (key: string, operator = 'Exists', ...values: string[]): object => ({
  key,
  operator,
  ...(values.length === 0 ? {} : { values }),
});
const kept = (key: string, operator = 'Exists', ...values: string[]): object => ({ key, operator, values });
const term = (...matchExpressions: object[]): object => (matchExpressions.length === 0 ? {} : { matchExpressions });
const keptTerm = (...matchExpressions: object[]): object => ({ matchExpressions, matchFields: [] });
const required = (...nodeSelectorTerms: object[]): object => ({
  requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
});
const NONE = { requiredDuringSchedulingIgnoredDuringExecution: null };
const affinity = (...terms: object[]): { affinity: object } => ({ affinity: { nodeAffinity: required(...terms) } });
const VIRTUAL = line('spillway.dev/member');
const ssd = line('disk', 'In', 'ssd');
const field = { matchFields: [line('metadata.name', 'In', 'east')] };
const preferred = {
  preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term(line('fast')) }],
};
const apart = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'rack' }] } };

export const CONSTRAINT_CASES: readonly ConstraintCase[] = [
  {
    what: 'a label of real nodes',
    spec: { nodeSelector: { disk: 'ssd' } },
    split: {
      ...affinity(term(ssd), term(VIRTUAL)),
      constraints: { nodeSelector: { disk: 'ssd' }, nodeAffinity: NONE },
    },
  },
  {
    what: 'labels of real and of virtual nodes',
    annotations: { other: 'x' },
    spec: {
      nodeSelector: { type: 'virtual-kubelet', 'example.com/gpu': 'a100', 'kubernetes.io/arch': 'arm64', zone: '' },
    },
    split: {
      nodeSelector: { type: 'virtual-kubelet' },
      ...affinity(
        term(line('example.com/gpu', 'In', 'a100'), line('kubernetes.io/arch', 'In', 'arm64'), line('zone', 'In', '')),
        term(VIRTUAL),
      ),
      constraints: {
        nodeSelector: { 'example.com/gpu': 'a100', 'kubernetes.io/arch': 'arm64', type: 'virtual-kubelet', zone: '' },
        nodeAffinity: NONE,
      },
    },
  },
  {
    what: 'only labels of virtual nodes',
    spec: {
      nodeSelector: { 'spillway.dev/member': 'east', 'topology.kubernetes.io/zone': 'z1', 'kubernetes.io/os': 'linux' },
      ...affinity(term(line('kubernetes.io/hostname', 'In', 'east'))),
    },
  },
  { what: 'no constraints', spec: {} },
  { what: 'only preferences', spec: { affinity: { nodeAffinity: preferred } } },
  {
    what: 'ORed terms, each by itself',
    spec: affinity(
      term(line('spillway.dev/node', 'In', 'east'), line('gpu', 'In', 'a100', 'h100')),
      term(line('spillway.dev/node', 'In', 'west-gpu'), line('cpu', 'NotIn', 'slow'), line('cores', 'Gt', '31')),
      term(line('type', 'In', 'kwok')),
    ),
    split: {
      ...affinity(
        term(line('spillway.dev/node', 'In', 'east'), line('gpu', 'In', 'a100', 'h100')),
        term(line('spillway.dev/node', 'In', 'west-gpu'), line('cpu', 'NotIn', 'slow'), line('cores', 'Gt', '31')),
        term(line('type', 'In', 'kwok')),
        term(line('spillway.dev/node', 'In', 'east'), VIRTUAL),
        term(line('spillway.dev/node', 'In', 'west-gpu'), VIRTUAL),
        term(line('type', 'In', 'kwok'), VIRTUAL),
      ),
      constraints: {
        nodeSelector: {},
        nodeAffinity: required(
          keptTerm(kept('spillway.dev/node', 'In', 'east'), kept('gpu', 'In', 'a100', 'h100')),
          keptTerm(
            kept('spillway.dev/node', 'In', 'west-gpu'),
            kept('cpu', 'NotIn', 'slow'),
            kept('cores', 'Gt', '31'),
          ),
          keptTerm(kept('type', 'In', 'kwok')),
        ),
      },
    },
  },
  {
    what: 'selector and terms',
    spec: { nodeSelector: { disk: 'ssd' }, ...affinity(term(line('gpu')), term(line('fpga'))) },
    split: {
      ...affinity(term(line('gpu'), ssd), term(line('fpga'), ssd), term(VIRTUAL), term(VIRTUAL)),
      constraints: {
        nodeSelector: { disk: 'ssd' },
        nodeAffinity: required(keptTerm(kept('gpu')), keptTerm(kept('fpga'))),
      },
    },
  },
  {
    what: 'a term without lines, which matches no node',
    spec: { nodeSelector: { disk: 'ssd' }, ...affinity(term(), term(line('gpu'))) },
    split: {
      ...affinity(term(), term(line('gpu'), ssd), term(VIRTUAL)),
      constraints: { nodeSelector: { disk: 'ssd' }, nodeAffinity: required(keptTerm(), keptTerm(kept('gpu'))) },
    },
  },
  {
    what: 'a field beside labels, and other affinities',
    spec: { affinity: { nodeAffinity: { ...required({ ...field, ...term(line('gpu')) }), ...preferred } } },
    split: {
      affinity: {
        nodeAffinity: { ...required({ ...field, ...term(line('gpu')) }, { ...field, ...term(VIRTUAL) }), ...preferred },
      },
      constraints: {
        nodeSelector: {},
        nodeAffinity: required({ matchExpressions: [kept('gpu')], matchFields: [kept('metadata.name', 'In', 'east')] }),
      },
    },
  },
  {
    what: 'an affinity of another kind',
    spec: { nodeSelector: { disk: 'ssd' }, affinity: apart },
    split: {
      affinity: { ...apart, ...affinity(term(ssd), term(VIRTUAL)).affinity },
      constraints: { nodeSelector: { disk: 'ssd' }, nodeAffinity: NONE },
    },
  },
  {
    what: 'preferences only, and a selector',
    spec: { nodeSelector: { disk: 'ssd' }, affinity: { nodeAffinity: preferred } },
    split: {
      affinity: { nodeAffinity: { ...required(term(ssd), term(VIRTUAL)), ...preferred } },
      constraints: { nodeSelector: { disk: 'ssd' }, nodeAffinity: NONE },
    },
  },
  {
    what: 'a user who says what goes down',
    annotations: { 'spillway.dev/member-constraints': '{"nodeSelector":{"gpu":"a100"}}' },
    spec: { nodeSelector: { disk: 'ssd' } },
  },
];
