import { describe, expect, test } from 'vitest';
import type { Pod, ResourceList } from '../../src/kube/core-v1.ts';
import { asTemplateAsks, templateRequests } from '../../src/placement/template-requests.ts';

const pod = (generation: number | undefined, requests: ResourceList): Pod => ({
  metadata: { name: 'a', ...(generation === undefined ? {} : { generation }) },
  spec: { containers: [{ name: 'main', resources: { requests } }, { name: 'side' }] },
});
const asked = (made: Pod): unknown => made.spec.containers.map(({ resources }) => resources?.requests);

test.each([
  ['resized', 2, { cpu: '1', memory: '1Gi' }, { cpu: '4', memory: '2Gi' }],
  ['maybe resized, on an API server that does not count changes', undefined, { cpu: '1' }, { cpu: '4', memory: '2Gi' }],
  [
    'given more',
    2,
    { cpu: '8', memory: '1Gi', 'example.com/gpu': '1' },
    { cpu: '8', memory: '2Gi', 'example.com/gpu': '1' },
  ],
  ['made smaller by admission', 1, { cpu: '1' }, { cpu: '1' }],
])('of a pod that was %s', (_what, generation, had, wanted) => {
  const requests = { main: { cpu: '4', memory: '2Gi' }, gone: { cpu: '1' } };
  expect(asked(asTemplateAsks(pod(generation, had), requests))).toEqual([wanted, undefined]);
});

test('a pod that asks for no less than its template is itself, however that is written', () => {
  const same = pod(2, { cpu: '4000m', memory: '2Gi' });
  expect(asTemplateAsks(same, { main: { cpu: '4', memory: '2048Mi' } })).toBe(same);
});

describe('of a template is kept', () => {
  test('what may be resized: requests, or limits in their place', () => {
    const main = { name: 'main', image: 'app', resources: { requests: { cpu: '1', 'example.com/gpu': '1' } } };
    const limited = { name: 'limited', resources: { requests: { cpu: '1' }, limits: { cpu: '2', memory: '1Gi' } } };
    const spec = { containers: [main, { name: 'none' }], initContainers: [limited] };
    const kept = { main: { cpu: '1' }, limited: { cpu: '1', memory: '1Gi' } };
    expect(templateRequests({ spec })).toEqual(kept);
  });

  test.each([undefined, {}, { spec: { containers: 'x' } }, { spec: { containers: [{ name: 'a' }] } }])(
    'nothing of %j',
    (template) => {
      expect(templateRequests(template)).toBeUndefined();
    },
  );
});
