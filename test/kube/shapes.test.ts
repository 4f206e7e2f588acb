import * as models from '@kubernetes/client-node';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJson, stringifyJson } from '../../src/kube/json.ts';
import { isQuantity, parseQuantity } from '../../src/kube/quantity.ts';
import {
  CONFIG_MAPS,
  EVENTS,
  LIMIT_RANGES,
  misshapen,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  RESOURCE_QUOTAS,
  SECRETS,
  STORAGE_CLASSES,
  type Resource,
} from '../../src/kube/resource.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { nodeProjection, podProjection } from '../../src/members/pod-projection.ts';
import hostPods from '../fixtures/host-pods.json' with { type: 'json' };

const metadata = { name: 'a', namespace: 'x', uid: 'u', resourceVersion: '1' };
const pod = { metadata, spec: { containers: [{ name: 'app' }] } };

const wrong: [Resource, object, string][] = [
  [PODS, { metadata }, 'spec is missing'],
  [PODS, { metadata, spec: {} }, 'spec.containers is missing'],
  [PODS, { metadata, spec: { containers: 'none' } }, 'spec.containers is not a list'],
  [PODS, { metadata, spec: { containers: [null] } }, 'spec.containers[0] is not an object'],
  [PODS, { metadata, spec: { containers: [{}] } }, 'spec.containers[0].name is missing'],
  [PODS, { ...pod, status: { reason: {} } }, 'status.reason is not a string'],
  [PODS, { ...pod, status: { message: ['x'] } }, 'status.message is not a string'],
  [PODS, { ...pod, status: { startTime: 'soon' } }, 'status.startTime is not a time'],
  [
    PODS,
    { ...pod, status: { containerStatuses: [{ name: 'app', state: { terminated: { exitCode: '0' } } }] } },
    'status.containerStatuses[0].state.terminated.exitCode is not a number',
  ],
  [
    PODS,
    { metadata, spec: { containers: [{ name: 'app', resources: { requests: { cpu: 'much' } } }] } },
    'spec.containers[0].resources.requests.cpu is not a quantity',
  ],
  [PODS, { ...pod, metadata: { ...metadata, ownerReferences: {} } }, 'metadata.ownerReferences is not a list'],
  [PODS, { ...pod, metadata: { ...metadata, finalizers: [1] } }, 'metadata.finalizers[0] is not a string'],
  [NODES, { metadata, spec: { taints: [{ key: 1, effect: 'NoSchedule' }] } }, 'spec.taints[0].key is not a string'],
  [NODES, { metadata, status: { allocatable: { cpu: {} } } }, 'status.allocatable.cpu is not a quantity'],
  [NAMESPACES, { metadata, status: { phase: 1 } }, 'status.phase is not a string'],
  [EVENTS, { metadata, reason: 'x' }, 'involvedObject is missing'],
  [EVENTS, { metadata, involvedObject: {}, message: {} }, 'message is not a string'],
  [RESOURCE_QUOTAS, { metadata, status: { hard: [] } }, 'status.hard is not an object'],
  [PERSISTENT_VOLUME_CLAIMS, { metadata, spec: { accessModes: 'all' } }, 'spec.accessModes is not a list'],
];

describe('what an object must be like', () => {
  it.each(wrong)('%o', (resource, object, problem) => {
    expect(misshapen(resource, object)).toBe(problem);
  });

  it.each<[string, (deep: unknown) => unknown]>([
    ['extra', (deep) => ({ ...pod, extra: deep })],
    ['spec.extra', (deep) => ({ metadata, spec: { ...pod.spec, extra: [deep] } })],
    ['spec.securityContext', (deep) => ({ metadata, spec: { ...pod.spec, securityContext: { deep } } })],
  ])('no part nested without end: %s', (where, make) => {
    for (const [depth, problem] of [
      [100, undefined],
      [250, `${where} is nested too deeply`],
      [100_000, `${where} is nested too deeply`],
    ] as const) {
      const deep = JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as unknown;
      expect(misshapen(PODS, make(deep))).toBe(problem);
    }
  });

  it('without nulls, and all other fields as they were', () => {
    const object = parseJson(
      '{"metadata":{"labels":{"a":null,"__proto__":"x","b":"c"},"uid":null,"extra":null,"name":"a"},"spec":{"containers":[]}}',
    );
    expect(misshapen(PODS, object)).toBeUndefined();
    expect(stringifyJson(object)).toBe(
      '{"metadata":{"labels":{"__proto__":"x","b":"c"},"extra":null,"name":"a"},"spec":{"containers":[]}}',
    );
  });

  it('is what real pods are like', () => {
    for (const one of Object.values(hostPods as object)) expect(misshapen(PODS, structuredClone(one))).toBeUndefined();
  });

  it.each<[Resource, { getAttributeTypeMap(): readonly Attribute[] }]>([
    [PODS, models.V1Pod],
    [NODES, models.V1Node],
    [NAMESPACES, models.V1Namespace],
    [EVENTS, models.CoreV1Event],
    [PERSISTENT_VOLUME_CLAIMS, models.V1PersistentVolumeClaim],
    [PERSISTENT_VOLUMES, models.V1PersistentVolume],
    [STORAGE_CLASSES, models.V1StorageClass],
    [RESOURCE_QUOTAS, models.V1ResourceQuota],
    [LIMIT_RANGES, models.V1LimitRange],
    [CONFIG_MAPS, models.V1ConfigMap],
    [SECRETS, models.V1Secret],
  ])('is what a $kind with every field that Kubernetes has is like', (resource, model) => {
    const whole = filled(model) as Record<string, unknown>;
    expect(misshapen(resource, whole)).toBeUndefined();
    // Go writes null for what is empty, wherever that is.
    for (const path of allPaths(whole).filter((one) => one.length === 2)) {
      expect(misshapen(resource, replaced(structuredClone(whole), path, null))).toSatisfy(
        (problem) => problem === undefined || String(problem).endsWith(' is missing'),
      );
    }
  });

  it('lets numbers beyond a double pass', () => {
    const long = `{"metadata":{"name":"a"},"spec":{"containers":[],"terminationGracePeriodSeconds":9223372036854775807}}`;
    expect(misshapen(PODS, parseJson(long))).toBeUndefined();
  });

  it('knows a quantity by its look', () => {
    const parses = (text: string): boolean => {
      try {
        parseQuantity(text);
        return true;
      } catch {
        return false;
      }
    };
    const texts = fc.oneof(
      fc.string(),
      fc.stringMatching(/^[+-]?\d{0,3}(\.\d{0,3})?([numkMGTPE]|[KMG]i|e[+-]?\d{1,3})?$/),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(isQuantity(text)).toBe(parses(text));
      }),
    );
  });

  it('keeps what is cached of pods and nodes from throwing, whatever is put anywhere', () => {
    const [toPod, toNode] = [podProjection('us'), nodeProjection()];
    const whole = {
      metadata: {
        ...metadata,
        labels: { 'spillway.dev/host': 'us' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x' }],
      },
      spec: {
        containers: [
          { name: 'app', ports: [{ containerPort: 1, hostPort: 2 }], resources: { requests: { cpu: '1' } } },
        ],
        nodeName: 'n',
        overhead: { cpu: '1' },
        taints: [],
        resources: { requests: {} },
      },
      status: { phase: 'Running', nominatedNodeName: 'n', images: [{ names: ['a'] }], allocatable: { cpu: '1' } },
    };
    const paths = allPaths(whole);
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, value) => {
        const foreign = { ...whole, metadata: { ...whole.metadata, labels: {} } };
        for (const one of [whole, foreign]) {
          const pod = replaced(structuredClone(one), path, value) as KubeObject;
          if (misshapen(PODS, pod) === undefined) toPod(pod);
          const node = replaced(structuredClone(one), path, value) as KubeObject;
          if (misshapen(NODES, node) === undefined) toNode(node);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

function allPaths(value: unknown, at: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [at];
  const below = Object.entries(value).flatMap(([key, one]) => allPaths(one, [...at, key]));
  return at.length < 2 ? below : [at, ...below];
}

function replaced(object: unknown, [first, ...rest]: string[], value: unknown): unknown {
  if (first === undefined) return structuredClone(value);
  if (typeof object !== 'object' || object === null) return object;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(object) ? [...object] : { ...object };
  return Object.assign(copy, { [first]: replaced((object as Record<string, unknown>)[first], rest, value) });
}

interface Attribute {
  baseName: string;
  type: string;
}

/** An object of the model in which every field is there. */
function filled(model: { getAttributeTypeMap(): readonly Attribute[] }): object {
  return Object.fromEntries(model.getAttributeTypeMap().map(({ baseName, type }) => [baseName, sample(type)]));
}

function sample(type: string): unknown {
  const list = /^Array<(.*)>$/.exec(type)?.[1];
  if (list !== undefined) return [sample(list)];
  const map = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  // Maps of texts are quantities in half of all places, which are texts as well.
  if (map !== undefined) return { key: map === 'string' ? '1' : sample(map) };
  if (type === 'Date' || type === 'V1MicroTime') return '2026-01-01T00:00:00Z';
  if (type === 'string') return 'text';
  if (type === 'number') return 1;
  if (type === 'boolean') return true;
  if (type === 'IntOrString') return 1;
  const model: unknown = Reflect.get(models, type);
  return typeof model === 'function' && 'getAttributeTypeMap' in model
    ? filled(model as unknown as { getAttributeTypeMap(): readonly Attribute[] })
    : {};
}
