import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { KubeRequest } from '../../../src/kube/request.ts';
import { NamespaceRemoval } from '../../../src/members/leaving/namespace-removal.ts';
import { Violations } from '../../fixtures/violations.ts';

interface Plan {
  labels?: Record<string, string>;
  /** Names of objects by plural. */
  objects?: Record<string, string[]>;
  forbidden?: string[];
  /** Codes of answers, by plural or path. */
  answers?: Record<string, number>;
  /** Looks one after the other, and how many ms after the first each is. Default: one. */
  looks?: number[];
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
async function removal({
  labels = { 'spillway.dev/host': 'h1' },
  objects = {},
  forbidden = [],
  answers = {},
  stale = false,
  looks = [0],
}: Plan) {
  const violations = new Violations();
  const deleted: unknown[] = [];
  const request = ({ method = 'GET', path, body }: KubeRequest): Promise<unknown> => {
    const last = path.split('/').at(-1) ?? '';
    const code = forbidden.includes(last) ? 403 : (answers[path] ?? answers[last]);
    if (code !== undefined)
      return Promise.reject(new ApiError({ cluster: 'east', method, path, code, status: { kind: 'Status' } }));
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
    const kinds: Record<string, string> = { pods: 'Pod', configmaps: 'ConfigMap', serviceaccounts: 'ServiceAccount' };
    const items = (objects[last] ?? []).map((name) => ({ metadata: { name, uid: name, resourceVersion: '1' } }));
    return Promise.resolve({ kind: `${kinds[last] ?? 'Widget'}List`, metadata: { resourceVersion: '9' }, items });
  };
  const client = { cluster: 'east', request } as unknown as KubeClient;
  let now = 0;
  const removal = new NamespaceRemoval({ client, hostId: 'h1', invariants: violations, clock: () => now });
  let why: string | undefined;
  for (now of looks) {
    why = await removal
      .removeIfEmpty('shop', AbortSignal.timeout(5_000))
      .catch((error: unknown) => `again: ${String(error)}`);
  }
  return { why, deleted, violations: violations.seen };
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
    ...[400, 405, 406, 418].map((code): [string, Plan] => [
      `may hold widgets.example.com, which cannot be listed there: cluster east: it answered ${code} (${code})`,
      { answers: { widgets: code } },
    ]),
    [
      'may hold widgets.example.com, which cannot be listed there: cluster east: it answered 500 (500, transient)',
      { answers: { widgets: 500 }, looks: [0, 60_000, 120_000] },
    ],
    [
      'could not be looked through or removed: cluster east: it answered 500 (500, transient)',
      { answers: { '/apis': 500 }, looks: [0, 60_000, 120_000] },
    ],
  ])('stays: %s', async (words, plan) => {
    const { why, deleted } = await removal(plan);
    expect([why, deleted]).toEqual([words, []]);
  });

  it.each<[string, Plan]>([
    ['500', { answers: { widgets: 500 }, looks: [0, 60_000, 119_999] }],
    ['500', { answers: { '/apis': 500 } }],
    ['500', { answers: { widgets: 500 }, looks: [0, 119_999, 800_000] }],
    ['404', { answers: { widgets: 404 } }],
  ])('is looked at again for two minutes when the answer may pass by itself: %s', async (code, plan) => {
    const { why, deleted } = await removal(plan);
    expect(why).toMatch(new RegExp(`^again: ApiError: .*: ${code} `));
    expect(deleted).toEqual([]);
  });

  it('I15: stays if it does not carry our label', async () => {
    const { why, deleted, violations } = await removal({ labels: { 'spillway.dev/host': 'h2' }, looks: [0, 200_000] });
    expect([deleted, violations]).toEqual([[], ['I15', 'I15']]);
    expect(why).toMatch(/^again: /);
  });
});
