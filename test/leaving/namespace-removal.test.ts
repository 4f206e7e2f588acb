import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import type { KubeRequest } from '../../src/kube/request.ts';
import { removeIfEmpty } from '../../src/leaving/namespace-removal.ts';
import { Violations } from '../fixtures/violations.ts';

interface Plan {
  labels?: Record<string, string>;
  /** Names of objects by plural. */
  objects?: Record<string, string[]>;
  forbidden?: string[];
  stale?: boolean;
}

const kind = (resource: string, name: string, scope = 'Namespaced') => ({
  resource,
  scope,
  verbs: ['get', 'list'],
  responseKind: { group: '', version: 'v1', kind: name },
});
const group = (name: string, resources: object[], freshness = 'Current') => ({
  metadata: { name },
  versions: [{ version: 'v1', freshness, resources }],
});

/** A member with a namespace and what it holds. Answers what becomes of it. */
async function removal({ labels = { 'spillway.dev/host': 'h1' }, objects = {}, forbidden = [], stale = false }: Plan) {
  const violations = new Violations();
  const deleted: unknown[] = [];
  const request = ({ method = 'GET', path, body }: KubeRequest): Promise<unknown> => {
    const last = path.split('/').at(-1) ?? '';
    if (path === '/api') {
      const core = [kind('pods', 'Pod'), kind('configmaps', 'ConfigMap'), kind('serviceaccounts', 'ServiceAccount')];
      return Promise.resolve({
        items: [group('', [...core, kind('nodes', 'Node', 'Cluster'), kind('events', 'Event')])],
      });
    }
    if (path === '/apis') {
      const items = [
        group('example.com', [kind('widgets', 'Widget')]),
        group('metrics.k8s.io', [kind('pods', 'PodMetrics')], 'Stale'),
      ];
      return Promise.resolve({ items: stale ? [...items, group('stale.example.com', [], 'Stale')] : items });
    }
    if (path === '/api/v1/namespaces/shop') {
      if (method === 'DELETE') deleted.push(body);
      const metadata = { name: 'shop', uid: 'n-1', resourceVersion: '7', labels };
      return Promise.resolve({ apiVersion: 'v1', kind: 'Namespace', metadata });
    }
    if (forbidden.includes(last))
      return Promise.reject(new ApiError({ cluster: 'east', method, path, code: 403, status: { kind: 'Status' } }));
    const kinds: Record<string, string> = { pods: 'Pod', configmaps: 'ConfigMap', serviceaccounts: 'ServiceAccount' };
    const items = (objects[last] ?? []).map((name) => ({ metadata: { name, uid: name, resourceVersion: '1' } }));
    return Promise.resolve({ kind: `${kinds[last] ?? 'Widget'}List`, metadata: { resourceVersion: '9' }, items });
  };
  const client = { cluster: 'east', request } as unknown as KubeClient;
  const options = { client, hostId: 'h1', invariants: violations };
  const why = removeIfEmpty(options, 'shop', AbortSignal.timeout(5_000)).catch((error: unknown) => String(error));
  return { why: await why, deleted, violations: violations.seen };
}

describe('a namespace that we made in a member', () => {
  it('goes if nothing but what every namespace has is in it, and nothing else than this one', async () => {
    const objects = { configmaps: ['kube-root-ca.crt'], serviceaccounts: ['default'], events: ['any'] };
    const { why, deleted } = await removal({ objects });
    expect(why).toBeUndefined();
    expect(deleted).toMatchObject([{ preconditions: { uid: 'n-1', resourceVersion: '7' } }]);
  });

  it.each<[string, Plan]>([
    ['holds Pod theirs', { objects: { pods: ['theirs'] } }],
    ['holds ConfigMap theirs', { objects: { configmaps: ['kube-root-ca.crt', 'theirs'] } }],
    ['holds Widget w', { objects: { widgets: ['w'] } }],
    ['may hold widgets.example.com, which we may not list there', { forbidden: ['widgets'] }],
    ['may hold objects of stale.example.com, whose server does not answer', { stale: true }],
  ])('stays: %s', async (words, plan) => {
    const { why, deleted } = await removal(plan);
    expect([why, deleted]).toEqual([words, []]);
  });

  it('I15: stays if it does not carry our label', async () => {
    const { deleted, violations } = await removal({ labels: { 'spillway.dev/host': 'h2' } });
    expect([deleted, violations]).toEqual([[], ['I15']]);
  });
});
