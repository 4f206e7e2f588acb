import { expect, test } from 'vitest';
import { boundPod, type Loose, translated } from '../fixtures/translation.ts';
import type { TranslateContext } from '../../src/pods/translate.ts';

function envOf(container: Loose, context: Partial<TranslateContext> = {}, metadata: Loose = {}): unknown {
  const pod = boundPod({ serviceAccountName: 'builder', containers: [{ name: 'app', ...container }] }, metadata);
  return (translated(pod, context).spec['containers'] as Loose[])[0]?.['env'];
}
const field = (name: string, fieldPath: string): Loose => ({
  name,
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } },
});

test('the downward API speaks of the host', () => {
  const env = [
    field('NS', 'metadata.namespace'),
    field('UID', 'metadata.uid'),
    field('NODE', 'spec.nodeName'),
    field('SA', 'spec.serviceAccountName'),
    field('NAME', 'metadata.name'),
    field('APP', "metadata.labels['app']"),
  ];
  expect(envOf({ env })).toEqual([
    { name: 'NS', value: 'shop' },
    { name: 'UID', value: boundPod().metadata.uid },
    { name: 'NODE', value: 'east' },
    { name: 'SA', value: 'builder' },
    env[4],
    env[5],
  ]);
});

test('a label or annotation that is not copied becomes a literal, safe from expansion', () => {
  const env = [
    field('OWN', "metadata.annotations['spillway.dev/note']"),
    field('LAST', "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']"),
    field('NONE', "metadata.labels['spillway.dev/constructor']"),
  ];
  const annotations = {
    'spillway.dev/note': 'costs $$5 $(HOME)',
    'kubectl.kubernetes.io/last-applied-configuration': '{}',
  };
  expect(envOf({ env }, {}, { annotations })).toEqual([
    { name: 'OWN', value: 'costs $$$$5 $$(HOME)' },
    { name: 'LAST', value: '{}' },
    { name: 'NONE', value: '' },
  ]);
});

test('other fields of a variable survive its rewriting', () => {
  expect(envOf({ env: [{ ...field('NS', 'metadata.namespace'), newField: 1 }] })).toEqual([
    { name: 'NS', newField: 1, value: 'shop' },
  ]);
});

const serviceEnv = [
  { name: 'DB_SERVICE_HOST', value: '10.96.0.9' },
  { name: 'DB_PORT', value: 'tcp://10.96.0.9:5432' },
];

test('service variables come first, so that $(NAME) finds them', () => {
  const own = { name: 'URL', value: 'pg://$(DB_SERVICE_HOST)' };
  expect(envOf({ env: [own] }, { serviceEnv })).toEqual([...serviceEnv, own]);
  expect(envOf({}, { serviceEnv })).toEqual(serviceEnv);
  expect(envOf({ env: null }, { serviceEnv })).toEqual(serviceEnv);
});

test('a variable of the container wins over a service variable', () => {
  const own = { name: 'DB_PORT', value: '5432' };
  expect(envOf({ env: [own] }, { serviceEnv })).toEqual([serviceEnv[0], own]);
});

test('so does one from a ConfigMap or a Secret, prefix included', () => {
  const environmentKeys = (kind: string, name: string): string[] =>
    `${kind}/${name}` === 'ConfigMap/settings' ? ['PORT'] : [];
  const envFrom = [{ prefix: 'DB_', configMapRef: { name: 'settings' } }, { secretRef: { name: 'other' } }];
  expect(envOf({ envFrom }, { serviceEnv, environmentKeys })).toEqual([serviceEnv[0]]);
  const secret = (kind: string): string[] => (kind === 'Secret' ? ['DB_SERVICE_HOST'] : []);
  expect(envOf({ envFrom }, { serviceEnv, environmentKeys: secret })).toEqual([serviceEnv[1]]);
});

test('init containers get them too', () => {
  const { spec } = translated(boundPod({ initContainers: [{ name: 'init' }] }), { serviceEnv });
  expect(spec['initContainers']).toEqual([{ name: 'init', env: serviceEnv }]);
});

test('files of the downward API refer to the marks', () => {
  const items = [
    { path: 'ns', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } },
    { path: 'uid', fieldRef: { fieldPath: 'metadata.uid' }, mode: 256 },
    { path: 'name', fieldRef: { fieldPath: 'metadata.name' } },
    { path: 'cpu', resourceFieldRef: { resource: 'limits.cpu' } },
  ];
  const mapped = [
    { path: 'ns', fieldRef: { apiVersion: 'v1', fieldPath: "metadata.annotations['spillway.dev/host-namespace']" } },
    { path: 'uid', fieldRef: { fieldPath: "metadata.annotations['spillway.dev/host-uid']" }, mode: 256 },
    items[2],
    items[3],
  ];
  const volumes = [
    { name: 'plain', downwardAPI: { items, defaultMode: 420 } },
    { name: 'mixed', projected: { sources: [{ downwardAPI: { items } }, { secret: { name: 's' } }] } },
  ];
  expect(translated(boundPod({ volumes })).spec['volumes']).toEqual([
    { name: 'plain', downwardAPI: { items: mapped, defaultMode: 420 } },
    { name: 'mixed', projected: { sources: [{ downwardAPI: { items: mapped } }, { secret: { name: 's' } }] } },
  ]);
});
