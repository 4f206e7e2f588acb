/** The spec of a MemberCluster that nobody should be able to apply, in words, and what the API server says. */
export type WrongMember = readonly [what: string, spec: object, refusal: string];

function explicit(...pairs: [string, string][]): object {
  return { namespaces: { mapping: 'Explicit', explicit: pairs.map(([from, to]) => ({ host: from, member: to })) } };
}

export const WRONG_MEMBERS: readonly WrongMember[] = [
  ['no credentials', { credentials: undefined }, 'spec.credentials: Required value'],
  ['an unknown field', { taintmode: 'None' }, 'unknown field "spec.taintmode"'],
  ['an unknown taint mode', { taintMode: 'Sometimes' }, 'spec.taintMode: Unsupported value: "Sometimes"'],
  [
    'an unknown service account mode',
    { serviceAccount: { mode: 'Own' } },
    'spec.serviceAccount.mode: Unsupported value',
  ],
  [
    'mode Host without an address of the host',
    { serviceAccount: { mode: 'Host' } },
    'spec.serviceAccount.apiServer: Required value: mode Host needs the address of the API server of the host',
  ],
  [
    'mode Host for some without an address of the host',
    { serviceAccount: { allowed: ['Host'] } },
    'spec.serviceAccount.apiServer: Required value',
  ],
  ['two pools of one name', { virtualNodes: [{ name: 'a' }, { name: 'a' }] }, 'spec.virtualNodes[1]: Duplicate value'],
  ['a pool name that is no label', { virtualNodes: [{ name: 'A_b' }] }, 'spec.virtualNodes[0].name: Invalid value'],
  [
    'a bad node selector',
    { virtualNodes: [{ name: 'a', nodeSelector: { 'a b': 'c' } }] },
    'spec.virtualNodes[0].nodeSelector',
  ],
  ['Explicit without pairs', { namespaces: { mapping: 'Explicit' } }, 'spec.namespaces.explicit: Required value'],
  ['Prefixed without a prefix', { namespaces: { mapping: 'Prefixed' } }, 'spec.namespaces.prefix: Required value'],
  ['a prefix for nothing', { namespaces: { prefix: 'a-' } }, 'spec.namespaces.prefix: Forbidden'],
  [
    'a prefix into kube-',
    { namespaces: { mapping: 'Prefixed', prefix: 'kube-' } },
    'spec.namespaces.prefix: Invalid value',
  ],
  ['a system namespace', explicit(['a', 'kube-system']), 'spec.namespaces.explicit: Invalid value: system namespaces'],
  [
    'a shared namespace',
    explicit(['a', 'x'], ['b', 'x']),
    'spec.namespaces.explicit: Invalid value: two host namespaces',
  ],
  ['a quantity below zero', { capacity: { headroom: { cpu: -1 } } }, 'spec.capacity.headroom: Invalid value'],
  ['a quantity that is none', { capacity: { caps: { cpu: 'lots' } } }, 'spec.capacity.caps.cpu: Invalid value'],
  [
    'a class of the host that is two in the member',
    {
      podPriority: {
        classes: [
          { host: 'a', member: 'x' },
          { host: 'a', member: 'y' },
        ],
      },
    },
    'spec.podPriority.classes[1]: Duplicate value',
  ],
  [
    'a class that is nothing in the member',
    { podPriority: { classes: [{ host: 'a' }] } },
    'spec.podPriority.classes[0].member: Required value',
  ],
  [
    'a PriorityClass that cannot be',
    { podPriority: { default: 'Not_A_Name' } },
    'spec.podPriority.default: Invalid value: "Not_A_Name"',
  ],
  ['a label of ours', { labels: { 'spillway.dev/x': 'y' } }, 'spec.labels: Invalid value: labels of spillway.dev'],
  ['a taint of ours', { taints: [{ key: 'spillway.dev/x', effect: 'NoSchedule' }] }, 'spec.taints: Invalid value'],
  [
    'a taint of ours for a pool',
    { virtualNodes: [{ name: 'a', taints: [{ key: 'spillway.dev/x', effect: 'NoSchedule' }] }] },
    'spec.virtualNodes[0].taints: Invalid value: taint keys of spillway.dev',
  ],
  [
    'a taint of a state for a pool',
    { virtualNodes: [{ name: 'a', taints: [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }] }] },
    'spec.virtualNodes[0].taints: Invalid value: taints of node.kubernetes.io',
  ],
  [
    'two taints of one key and effect',
    {
      virtualNodes: [
        {
          name: 'a',
          taints: [
            { key: 'a', value: 'x', effect: 'NoSchedule' },
            { key: 'a', value: 'y', effect: 'NoSchedule' },
          ],
        },
      ],
    },
    'spec.virtualNodes[0].taints[1]: Duplicate value',
  ],
  ['an unknown effect', { taints: [{ key: 'a', effect: 'Evict' }] }, 'spec.taints[0].effect: Unsupported value'],
  ['a probe without a pause', { probe: { periodSeconds: 0 } }, 'spec.probe.periodSeconds: Invalid value: 0'],
  ['text for a number', { probe: { periodSeconds: '10' } }, 'spec.probe.periodSeconds: Invalid value: "string"'],
  [
    'nodes that are Ready in a way that there is not',
    { probe: { nodesReady: 'Always' } },
    'spec.probe.nodesReady: Unsupported value: "Always": supported values: "WhileServed", "WhileReachable"',
  ],
  ['an unknown way with Services', { services: { mode: 'Some' } }, 'spec.services.mode: Unsupported value: "Some"'],
  [
    'Services of namespaces without any',
    { services: { namespaces: ['data'] } },
    'spec.services.namespaces: Forbidden: namespaces are only allowed when mode is Mirror',
  ],
  [
    'Services of a system namespace',
    { services: { mode: 'Mirror', namespaces: ['kube-system'] } },
    'spec.services.namespaces: Invalid value: system namespaces',
  ],
  ['an unknown network', { network: 'Tunnel' }, 'spec.network: Unsupported value: "Tunnel"'],
];

/** Names that it may not have: they become names and labels of virtual nodes. */
export const WRONG_MEMBER_NAMES: readonly string[] = ['a.b', 'local', 'x'.repeat(41)];

export const NAME_REFUSAL = 'metadata.name: Invalid value: must';
