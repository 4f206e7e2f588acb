/** The spec of an override policy that nobody should be able to apply, in words, and what the API server says. */
export type WrongOverride = readonly [what: string, spec: object, refusal: string];

/** A spec with one rule of these overriders. */
export const rule = (overriders: object) => ({ overrideRules: [{ overriders }] });
const image = (entry: object) => rule({ imageOverrider: [{ component: 'Registry', operator: 'add', ...entry }] });
const patch = (entry: object) => rule({ plaintext: [entry] });

export const WRONG_OVERRIDES: readonly WrongOverride[] = [
  ['an unknown operator', image({ operator: 'set', value: 'a' }), 'imageOverrider[0].operator: Unsupported value'],
  [
    'an unknown part of an image',
    image({ component: 'Host', value: 'a' }),
    'imageOverrider[0].component: Unsupported value',
  ],
  ['add without a value', image({}), 'imageOverrider[0].value: Required value: value is required when'],
  [
    'no repository',
    image({ component: 'Repository', operator: 'remove' }),
    'imageOverrider[0].operator: Invalid value',
  ],
  [
    'a predicate that is no pointer',
    image({ predicate: { path: 'spec' }, value: 'a' }),
    'imageOverrider[0].predicate.path: Invalid value',
  ],
  ['a patch without a value', patch({ path: '/spec/hostname', operator: 'add' }), 'plaintext[0].value: Required value'],
  ['a patch of the whole object', patch({ path: '', operator: 'add', value: {} }), 'plaintext[0].path: Invalid value'],
  [
    'a patch of the name',
    patch({ path: '/metadata/name', operator: 'replace', value: 'x' }),
    'plaintext[0].path: Invalid value: must not lead',
  ],
  [
    'a patch of finalizers',
    patch({ path: '/metadata/finalizers/0', operator: 'remove' }),
    'plaintext[0].path: Invalid value: must not lead',
  ],
  [
    'a patch of the status',
    patch({ path: '/status/phase', operator: 'remove' }),
    'plaintext[0].path: Invalid value: must not lead',
  ],
  [
    'a patch of the node',
    patch({ path: '/spec/nodeName', operator: 'remove' }),
    'plaintext[0].path: Invalid value: must not lead',
  ],
  [
    'a label of ours',
    rule({ labelsOverrider: [{ operator: 'add', value: { 'spillway.dev/uid': 'x' } }] }),
    'labelsOverrider[0].value: Invalid value: keys of spillway.dev',
  ],
  [
    'command without a container',
    rule({ commandOverrider: [{ operator: 'add' }] }),
    'commandOverrider[0].containerName: Required value',
  ],
  [
    'args to replace by nothing',
    rule({ argsOverrider: [{ containerName: 'a', operator: 'replace' }] }),
    'argsOverrider[0].value: Required value',
  ],
  [
    'JSON and YAML at once',
    rule({
      fieldOverrider: [
        {
          fieldPath: '/data/a',
          json: [{ subPath: '', operator: 'remove' }],
          yaml: [{ subPath: '', operator: 'remove' }],
        },
      ],
    }),
    'fieldOverrider[0]: Invalid value: exactly one of json and yaml',
  ],
  [
    'neither JSON nor YAML',
    rule({ fieldOverrider: [{ fieldPath: '/data/a' }] }),
    'fieldOverrider[0]: Invalid value: exactly one of json and yaml',
  ],
  [
    'resources without amounts',
    rule({ resourcesOverrider: [{ operator: 'add' }] }),
    'resourcesOverrider[0]: Required value',
  ],
  [
    'an amount that is none',
    rule({ resourcesOverrider: [{ operator: 'add', limits: { cpu: 'lots' } }] }),
    'limits.cpu: Invalid value',
  ],
  [
    'a selector without a kind',
    { resourceSelectors: [{ apiVersion: 'v1' }] },
    'spec.resourceSelectors[0].kind: Required value',
  ],
  [
    'In without values',
    {
      resourceSelectors: [
        { apiVersion: 'v1', kind: 'Pod', labelSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
      ],
    },
    'matchExpressions[0].values: Invalid value',
  ],
  [
    'a field of members that is none',
    {
      overrideRules: [
        {
          overriders: {},
          targetCluster: { fieldSelector: { matchExpressions: [{ key: 'name', operator: 'In', values: ['a'] }] } },
        },
      ],
    },
    'matchExpressions[0].key: Unsupported value',
  ],
  ['a rule without overriders', { overrideRules: [{}] }, 'spec.overrideRules[0].overriders: Required value'],
  ['an unknown applyTo', { applyTo: 'All' }, 'spec.applyTo: Unsupported value'],
  [
    'an overrider that is none',
    rule({ replicasOverrider: [] }),
    'unknown field "spec.overrideRules[0].overriders.replicasOverrider"',
  ],
];
