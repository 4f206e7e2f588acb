import { describe, expect, it } from 'vitest';
import { overridersSchema } from '../../src/api/overriders.ts';
import { applyOverriders } from '../../src/overrides/apply-overriders.ts';
import type { JsonRecord } from '../../src/kube/json-fields.ts';
import type { Loose } from '../fixtures/translation.ts';
import { rendered } from './rendered-pod.ts';

const pod = rendered() as unknown as JsonRecord;
/** As a policy gives them, defaults and all. */
const apply = (overriders: object, object: JsonRecord = pod) =>
  applyOverriders(object, overridersSchema.parse(overriders));
const specOf = (object: JsonRecord): Loose => object['spec'] as Loose;
const specAfter = (overriders: object, object: JsonRecord = pod): Loose => specOf(apply(overriders, object).object);
const container = (spec: Loose, name: string): Loose => {
  const lists = ['containers', 'initContainers'].flatMap((list) => (spec[list] ?? []) as Loose[]);
  const found = lists.find((one) => one['name'] === name);
  if (found === undefined) throw new Error(`there is no container ${name}`);
  return found;
};

describe.each(['command', 'args'] as const)('%sOverrider', (field) => {
  const words = (entry: object, name = 'app') =>
    container(specAfter({ [`${field}Overrider`]: [{ containerName: name, ...entry }] }), name)[field];
  const own = { command: ['serve'], args: ['--port', '80', '--fast'] }[field];

  it.each([
    [{ operator: 'add', value: ['-a', '-b'] }, [...own, '-a', '-b']],
    [{ operator: 'add', value: [] }, own],
    [{ operator: 'add' }, own],
    [{ operator: 'remove', value: ['other'] }, own],
    [{ operator: 'remove', value: [own.at(-1), 'other'] }, own.length === 1 ? undefined : own.slice(0, -1)],
    [{ operator: 'remove', value: [] }, own],
    [{ operator: 'replace', value: ['x'] }, ['x']],
    [{ operator: 'replace', value: [] }, undefined],
    [{ operator: 'remove', value: own }, undefined],
  ])('%j', (entry, expected) => {
    expect(words(entry)).toEqual(expected);
  });

  it('makes a list where there was none, and reaches init containers', () => {
    expect(words({ operator: 'add', value: ['-a'] }, 'side')).toEqual(['-a']);
    expect(words({ operator: 'remove', value: ['-a'] }, 'side')).toBeUndefined();
    expect(words({ operator: 'add', value: ['-a'] }, 'init')).toEqual([...(field === 'args' ? ['--fast'] : []), '-a']);
  });

  it('takes out every equal element', () => {
    const twice = { ...pod, spec: { containers: [{ name: 'app', [field]: ['-a', 'b', '-a'] }] } };
    const overriders = { [`${field}Overrider`]: [{ containerName: 'app', operator: 'remove', value: ['-a'] }] };
    expect(container(specAfter(overriders, twice), 'app')[field]).toEqual(['b']);
  });

  it('changes nothing for a container that is not there', () => {
    const overriders = { [`${field}Overrider`]: [{ containerName: 'nobody', operator: 'add', value: ['-a'] }] };
    expect(apply(overriders)).toEqual({ object: pod, changes: [] });
    expect(apply(overriders).object).toBe(pod);
  });
});

describe.each(['labels', 'annotations'] as const)('%sOverrider', (field) => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', [field]: { a: '1', 'b/c': '2' } } };
  const after = (operator: string, value: object, from: JsonRecord = object) =>
    (apply({ [`${field}Overrider`]: [{ operator, value }] }, from).object['metadata'] as Loose)[field];

  it.each([
    ['add', { d: '4' }, { a: '1', 'b/c': '2', d: '4' }],
    ['add', { a: '9' }, { a: '9', 'b/c': '2' }],
    ['add', { a: '1' }, { a: '1', 'b/c': '2' }],
    ['replace', { 'b/c': '9', d: '4' }, { a: '1', 'b/c': '9' }],
    ['remove', { a: 'whatever', d: '' }, { 'b/c': '2' }],
    ['remove', { a: '', 'b/c': '' }, undefined],
  ])('%s %j', (operator, value, expected) => {
    expect(after(operator, value)).toEqual(expected);
  });

  it('makes the map where there is none, but only to add', () => {
    const bare = { ...object, metadata: { name: 'c' } };
    expect(after('add', { a: '1' }, bare)).toEqual({ a: '1' });
    expect(apply({ [`${field}Overrider`]: [{ operator: 'replace', value: { a: '1' } }] }, bare).object).toBe(bare);
    expect(apply({ [`${field}Overrider`]: [{ operator: 'remove', value: { a: '' } }] }, bare).object).toBe(bare);
  });

  it('changes the pod, whose labels the workload has nothing to do with', () => {
    const { object: changed, changes } = apply({
      [`${field}Overrider`]: [{ operator: 'add', value: { region: 'eu' } }],
    });
    expect((changed['metadata'] as Loose)[field]).toMatchObject({ region: 'eu' });
    expect(changes).toEqual([`${field}Overrider`]);
    expect(changed['spec']).toBe(pod['spec']);
  });

  it('refuses keys that no object can have', () => {
    expect(() => after('add', { 'a b': '1' })).toThrow('"a b" is not a key');
    expect(() => after('add', { '/a': '1' })).toThrow('is not a key');
  });
});

it('labels must be label values, annotations need not', () => {
  expect(() => apply({ labelsOverrider: [{ operator: 'add', value: { a: 'b c' } }] })).toThrow(
    '"b c" is not a label value',
  );
  expect(apply({ annotationsOverrider: [{ operator: 'add', value: { a: 'b c' } }] }).changes).toHaveLength(1);
  expect(apply({ labelsOverrider: [{ operator: 'remove', value: { app: 'b c' } }] }).changes).toHaveLength(1);
});

describe('envOverrider', () => {
  const env = (entry: object, name = 'app') => container(specAfter({ envOverrider: [entry] }), name)['env'];
  const MODE = { name: 'MODE', value: 'plain' };
  const URL = { name: 'URL', value: 'http://$(MODE)' };

  it.each([
    [{ operator: 'add', value: [{ name: 'X', value: '1' }] }, [MODE, URL, { name: 'X', value: '1' }]],
    [{ operator: 'add', value: [{ name: 'MODE', value: 'eu' }] }, [{ name: 'MODE', value: 'eu' }, URL]],
    [
      {
        operator: 'replace',
        value: [
          { name: 'X', value: '1' },
          { name: 'URL', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        ],
      },
      [MODE, { name: 'URL', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
    ],
    [{ operator: 'remove', value: [{ name: 'MODE' }, { name: 'X' }] }, [URL]],
    [{ operator: 'remove', value: [{ name: 'MODE' }, { name: 'URL' }] }, undefined],
  ])('%j', (entry, expected) => {
    expect(env({ containerName: 'app', ...entry })).toEqual(expected);
  });

  it('is for all containers and init containers without a name', () => {
    const spec = specAfter({ envOverrider: [{ operator: 'add', value: [{ name: 'X', value: '1' }] }] });
    for (const name of ['app', 'side', 'init'])
      expect(container(spec, name)['env']).toContainEqual({ name: 'X', value: '1' });
  });

  it('leaves one variable of a name, where the last one was', () => {
    const twice = {
      ...pod,
      spec: {
        containers: [
          {
            name: 'app',
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '$(A)' },
              { name: 'A', value: '2' },
            ],
          },
        ],
      },
    };
    const spec = specAfter({ envOverrider: [{ operator: 'replace', value: [{ name: 'A', value: '3' }] }] }, twice);
    expect(container(spec, 'app')['env']).toEqual([
      { name: 'B', value: '$(A)' },
      { name: 'A', value: '3' },
    ]);
  });
});

describe('resourcesOverrider', () => {
  const resources = (entry: object, name = 'app') =>
    container(specAfter({ resourcesOverrider: [{ containerName: name, ...entry }] }), name)['resources'];

  it.each([
    [
      { operator: 'add', requests: { cpu: '2', 'example.com/gpu': 1 } },
      { requests: { cpu: '2', 'example.com/gpu': 1 }, limits: { memory: '1Gi' } },
    ],
    [
      { operator: 'replace', requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: 1 } },
      { requests: { cpu: '2' }, limits: { memory: '1Gi' } },
    ],
    [{ operator: 'remove', limits: { memory: 0 } }, { requests: { cpu: '100m' } }],
    [{ operator: 'remove', requests: { cpu: 0 }, limits: { memory: 0 } }, undefined],
  ])('%j', (entry, expected) => {
    expect(resources(entry)).toEqual(expected);
  });

  it('gives amounts to a container that had none', () => {
    expect(resources({ operator: 'add', limits: { cpu: '1' } }, 'side')).toEqual({ limits: { cpu: '1' } });
    expect(resources({ operator: 'replace', limits: { cpu: '1' } }, 'side')).toBeUndefined();
  });
});

describe('initContainersOverrider', () => {
  const names = (entry: object) =>
    ((specAfter({ initContainersOverrider: [entry] })['initContainers'] ?? []) as Loose[]).map(
      ({ name }) => name as string,
    );

  it.each([
    [{ operator: 'add', value: [{ name: 'wait', image: 'w' }] }, ['init', 'wait']],
    [{ operator: 'add', position: 'First', value: [{ name: 'wait', image: 'w' }] }, ['wait', 'init']],
    [{ operator: 'add', position: 'First', value: [{ name: 'init', image: 'w' }] }, ['init']],
    [{ operator: 'replace', value: [{ name: 'wait', image: 'w' }] }, ['init']],
    [{ operator: 'remove', value: [{ name: 'init' }] }, []],
  ])('%j', (entry, expected) => {
    expect(names(entry)).toEqual(expected);
  });

  it('takes the whole container as it was written', () => {
    const wait = { name: 'wait', image: 'w', restartPolicy: 'Always', env: [{ name: 'A', value: '1' }] };
    const spec = specAfter({ initContainersOverrider: [{ operator: 'add', value: [wait] }] });
    expect(container(spec, 'wait')).toEqual(wait);
  });
});

describe('imagePullSecretsOverrider', () => {
  const after = (entry: object, from: object[] | undefined) =>
    specAfter({ imagePullSecretsOverrider: [entry] }, { ...pod, spec: { imagePullSecrets: from } })['imagePullSecrets'];

  it.each([
    [{ operator: 'add', value: ['a', 'b', 'b'] }, undefined, [{ name: 'a' }, { name: 'b' }]],
    [{ operator: 'add', value: ['b'] }, [{ name: 'a' }], [{ name: 'a' }, { name: 'b' }]],
    [{ operator: 'add', value: ['a'] }, [{ name: 'a' }], [{ name: 'a' }]],
    [{ operator: 'remove', value: ['a'] }, [{ name: 'a' }, { name: 'b' }], [{ name: 'b' }]],
    [{ operator: 'remove', value: ['a'] }, [{ name: 'a' }], undefined],
    [{ operator: 'replace', value: ['c'] }, [{ name: 'a' }], [{ name: 'c' }]],
    [{ operator: 'replace', value: [] }, [{ name: 'a' }], undefined],
  ])('%j of %j', (entry, from, expected) => {
    expect(after(entry, from)).toEqual(expected);
  });
});

describe('tolerationsOverrider', () => {
  const gpu = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule' };
  const spot = { key: 'spot', value: 'yes' };
  const after = (operator: string, value: object[], from: object[] = [gpu]) =>
    specAfter({ tolerationsOverrider: [{ operator, value }] }, { ...pod, spec: { tolerations: from } })['tolerations'];

  it.each<[string, object[], object[] | undefined, unknown]>([
    ['add', [spot], undefined, [gpu, spot]],
    ['add', [gpu], undefined, [gpu]],
    ['add', [{ ...spot, operator: 'Equal' }], [spot], [{ ...spot, operator: 'Equal' }]],
    ['add', [{ ...gpu, tolerationSeconds: 5 }], undefined, [{ ...gpu, tolerationSeconds: 5 }]],
    ['add', [{ ...gpu, effect: 'NoExecute' }], undefined, [gpu, { ...gpu, effect: 'NoExecute' }]],
    ['remove', [{ key: 'gpu' }], [gpu, spot], [spot]],
    ['remove', [{ key: 'spot', operator: 'Equal' }], [gpu, spot], [gpu]],
    ['remove', [{ key: 'gpu', effect: 'NoExecute' }], undefined, [gpu]],
    ['remove', [{}], undefined, [gpu]],
    ['remove', [gpu], undefined, undefined],
    ['replace', [spot], undefined, [spot]],
    ['replace', [], undefined, undefined],
  ])('%s %j of %j', (operator, value, from, expected) => {
    expect(after(operator, value, from)).toEqual(expected);
  });
});

describe('fields with one value', () => {
  it.each([
    ['add', { disk: 'hdd', zone: 'b' }, { disk: 'hdd', zone: 'b' }],
    ['replace', { disk: 'hdd', zone: 'b' }, { disk: 'hdd' }],
    ['remove', { disk: '' }, undefined],
  ])('nodeSelectorOverrider %s %j', (operator, value, expected) => {
    expect(specAfter({ nodeSelectorOverrider: [{ operator, value }] })['nodeSelector']).toEqual(expected);
  });

  it.each([
    ['add', 'gvisor', undefined, 'gvisor'],
    ['add', 'gvisor', 'kata', 'gvisor'],
    ['replace', 'gvisor', undefined, undefined],
    ['replace', 'gvisor', 'kata', 'gvisor'],
    ['remove', undefined, 'kata', undefined],
  ])('runtimeClassOverrider %s %s of %s', (operator, value, from, expected) => {
    const object = { ...pod, spec: from === undefined ? {} : { runtimeClassName: from } };
    const overrider = { operator, ...(value === undefined ? {} : { value }) };
    expect(specAfter({ runtimeClassOverrider: overrider }, object)['runtimeClassName']).toBe(expected);
  });

  it('serviceAccountOverrider names the account and mounts no token', () => {
    const spec = specAfter({ serviceAccountOverrider: { value: 'puller' } });
    expect(spec['serviceAccountName']).toBe('puller');
    expect(spec['automountServiceAccountToken']).toBe(false);
  });

  it.each([
    [{ operator: 'add', value: 'fast' }, 'slow', 'fast'],
    [{ operator: 'add', value: 'fast' }, undefined, 'fast'],
    [{ operator: 'replace', value: 'fast' }, undefined, undefined],
    [{ operator: 'replace', value: 'fast', from: 'slow' }, 'slow', 'fast'],
    [{ operator: 'replace', value: 'fast', from: 'other' }, 'slow', 'slow'],
    [{ operator: 'replace', value: 'fast', from: '' }, '', 'fast'],
    [{ operator: 'remove' }, 'slow', undefined],
  ])('storageClassOverrider %j of %j', (entry, from, expected) => {
    const spec = from === undefined ? { accessModes: [] } : { accessModes: [], storageClassName: from };
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'c' }, spec };
    expect(specAfter({ storageClassOverrider: [entry] }, claim)['storageClassName']).toBe(expected);
    const volume = { name: 'v', ephemeral: { volumeClaimTemplate: { spec } } };
    const volumes = specAfter(
      { storageClassOverrider: [entry] },
      { ...pod, spec: { volumes: [{ name: 'e', emptyDir: {} }, volume] } },
    )['volumes'];
    expect(volumes).toEqual([
      { name: 'e', emptyDir: {} },
      {
        name: 'v',
        ephemeral: {
          volumeClaimTemplate: {
            spec: { accessModes: [], ...(expected === undefined ? {} : { storageClassName: expected }) },
          },
        },
      },
    ]);
  });
});

describe('plaintext', () => {
  it.each(['/spec/hostAliases', '/spec/template/spec/hostAliases', '/spec/jobTemplate/spec/template/spec/hostAliases'])(
    'takes %s for a path of the pod',
    (path) => {
      expect(specAfter({ plaintext: [{ path, operator: 'add', value: [{ ip: '10.0.0.1' }] }] })['hostAliases']).toEqual(
        [{ ip: '10.0.0.1' }],
      );
    },
  );

  it('takes the metadata of a template for the metadata of the pod', () => {
    const { object } = apply({
      plaintext: [{ path: '/spec/template/metadata/labels/app', operator: 'replace', value: 'w' }],
    });
    expect(object['metadata']).toMatchObject({ labels: { app: 'w' } });
  });

  it.each([
    ['/spec/replicas', 'that is a field of workloads'],
    ['/spec/strategy/type', 'that is a field of workloads'],
    ['/spec/template', 'that is a field of workloads'],
    ['/spec/template/metadata/name', 'policies may not change what an object is'],
    ['/metadata/name', 'policies may not change what an object is'],
    ['/metadata/ownerReferences/0', 'policies may not change what an object is'],
    ['/status/phase', 'policies may not change what an object is'],
    ['/kind', 'policies may not change what an object is'],
    ['/spec/containers/9/image', 'there is nothing at that path'],
  ])('refuses %s', (path, problem) => {
    expect(() => apply({ plaintext: [{ path, operator: 'replace', value: 1 }] }, pod)).toThrow(problem);
  });

  it('is for objects of any kind', () => {
    const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { a: '1' } };
    const patch = [
      { path: '/data/b', operator: 'add', value: '2' },
      { path: '/data/a', operator: 'remove' },
    ];
    expect(apply({ plaintext: patch }, config).object).toEqual({ ...config, data: { b: '2' } });
  });
});

describe('order', () => {
  it('is the same whatever the order they are written in: each sees what those before it did', () => {
    const overriders = {
      plaintext: [{ path: '/metadata/labels/seen', operator: 'add', value: 'plaintext' }],
      annotationsOverrider: [{ operator: 'add', value: { order: 'annotations' } }],
      labelsOverrider: [{ operator: 'add', value: { seen: 'labels' } }],
      argsOverrider: [{ containerName: 'app', operator: 'replace', value: ['a'] }],
      commandOverrider: [{ containerName: 'app', operator: 'replace', value: ['c'] }],
      imageOverrider: [
        { component: 'Tag', operator: 'replace', value: 'v2' },
        { component: 'Tag', operator: 'add', value: '-eu' },
      ],
    };
    const { object, changes } = apply(overriders);
    expect(changes).toEqual([
      'imageOverrider',
      'commandOverrider',
      'argsOverrider',
      'labelsOverrider',
      'annotationsOverrider',
      'plaintext',
    ]);
    expect(object['metadata']).toMatchObject({ labels: { seen: 'plaintext' } });
    expect(container(specOf(object), 'app')['image']).toBe('registry.example/web:v2-eu');
  });

  it('has a step for every overrider of the schema, in the order of its documentation', () => {
    const everything = {
      imageOverrider: [{ component: 'Tag', operator: 'replace', value: 'v2' }],
      commandOverrider: [{ containerName: 'app', operator: 'add', value: ['x'] }],
      argsOverrider: [{ containerName: 'app', operator: 'add', value: ['x'] }],
      labelsOverrider: [{ operator: 'add', value: { x: 'y' } }],
      annotationsOverrider: [{ operator: 'add', value: { x: 'y' } }],
      envOverrider: [{ operator: 'add', value: [{ name: 'X', value: 'y' }] }],
      resourcesOverrider: [{ operator: 'add', requests: { cpu: '7' } }],
      initContainersOverrider: [{ operator: 'add', value: [{ name: 'x', image: 'y' }] }],
      imagePullSecretsOverrider: [{ operator: 'add', value: ['x'] }],
      tolerationsOverrider: [{ operator: 'add', value: [{ key: 'x' }] }],
      nodeSelectorOverrider: [{ operator: 'add', value: { x: 'y' } }],
      serviceAccountOverrider: { value: 'x' },
      runtimeClassOverrider: { operator: 'add', value: 'x' },
      storageClassOverrider: [{ operator: 'add', value: 'x' }],
      fieldOverrider: [
        { fieldPath: '/metadata/annotations/json', json: [{ subPath: '/a', operator: 'add', value: 1 }] },
      ],
      plaintext: [{ path: '/spec/hostname', operator: 'add', value: 'x' }],
    };
    const object = {
      ...pod,
      metadata: { ...(pod['metadata'] as object), annotations: { json: '{}' } },
      spec: { ...(pod['spec'] as object), volumes: [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: {} } } }] },
    };
    expect(Object.keys(everything)).toEqual(Object.keys(overridersSchema.shape));
    expect(apply(everything, object).changes).toEqual(Object.keys(overridersSchema.shape));
  });
});
