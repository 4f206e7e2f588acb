import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { MIRRORED_CONDITION } from '../../../src/api/marks.ts';
import type { OutageRule } from '../../../src/api/outage-tolerations.ts';
import type { Pod, PodStatus, Toleration } from '../../../src/kube/core-v1.ts';
import type { KubeClient, KubeRequest } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { Informer, InformerHandler } from '../../../src/kube/informer.ts';
import { keyOf } from '../../../src/kube/object.ts';
import { outageMetrics } from '../../../src/pods/outages/outage-metrics.ts';
import { TolerationKeeper } from '../../../src/pods/outages/toleration-keeper.ts';
import { hostPod } from '../../fixtures/pods.ts';

const DEFAULTS = ['not-ready', 'unreachable'].map((key) => ({
  key: `node.kubernetes.io/${key}`,
  operator: 'Exists' as const,
  effect: 'NoExecute' as const,
  tolerationSeconds: 300,
}));
const OURS = DEFAULTS.map(({ key, effect }) => ({ key, operator: 'Equal' as const, effect }));
const MIRRORED: PodStatus = { phase: 'Running', conditions: [{ type: MIRRORED_CONDITION, status: 'True' }] };

let ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
});

function podOf(name: string, parts: Parameters<typeof hostPod>[0] = {}): Pod {
  return hostPod({
    status: MIRRORED,
    ...parts,
    metadata: { name, uid: `uid-${name}`, ...parts.metadata },
    spec: { tolerations: DEFAULTS, ...parts.spec },
  });
}

interface Keeping {
  /** May the manager patch pods? */
  granted?: boolean | 'never asked';
  toleration?: OutageRule['toleration'];
  nodeFails?: boolean;
  refuse?: () => { code: number; reason: string } | undefined;
  /** Admission of the host leaves the tolerations of pods as they were. */
  merges?: boolean;
}

/** Host pods that a test changes, a host that records what it is asked, and the keeper between them. */
function keeping({
  granted = true,
  toleration = 'Forever',
  nodeFails = false,
  refuse = () => undefined,
  merges = false,
}: Keeping = {}) {
  const pods = new Map<string, Pod>();
  const looks: string[] = [];
  const logged: string[] = [];
  const handlers = new Set<InformerHandler<Pod>>();
  const hostPods = {
    get: (key: string) => {
      looks.push(key);
      return pods.get(key);
    },
    values: () => pods.values(),
    on: (handler: InformerHandler<Pod>) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
  } as unknown as Informer<Pod>;
  const show = (pod: Pod): void => {
    const before = pods.get(keyOf(pod));
    pods.set(keyOf(pod), pod);
    for (const handler of handlers) {
      if (before === undefined) handler.added?.(pod);
      else handler.updated?.(pod, before);
    }
  };
  const requests: KubeRequest[] = [];
  const questions: unknown[] = [];
  const request = async (asked: KubeRequest): Promise<unknown> => {
    await Promise.resolve();
    if (asked.path.endsWith('/selfsubjectaccessreviews')) {
      questions.push(asked.body);
      if (granted === 'never asked') {
        const status = { kind: 'Status', status: 'Failure', code: 403, reason: 'Forbidden' } as const;
        throw new ApiError({ cluster: 'host', method: 'POST', path: asked.path, code: 403, status });
      }
      return { status: { allowed: granted } };
    }
    requests.push(asked);
    const refusal = refuse();
    if (refusal !== undefined) {
      const status = { kind: 'Status', status: 'Failure', ...refusal } as const;
      throw new ApiError({ cluster: 'host', method: 'PATCH', path: asked.path, code: refusal.code, status });
    }
    const { value: tolerations } = (asked.body as { value: Toleration[] }[]).at(-1) ?? { value: [] };
    const name = asked.path.split('/').at(-1) ?? '';
    return { ...podOf(name, merges ? {} : { spec: { tolerations } }), kind: 'Pod', apiVersion: 'v1' };
  };
  const state: { frozen: string | undefined; nodeFails: boolean } = { frozen: undefined, nodeFails };
  const told: string[] = [];
  const stop = new AbortController();
  const keeper = new TolerationKeeper({
    nodeName: 'east',
    host: { cluster: 'host', request } as unknown as KubeClient,
    hostPods,
    rule: { toleration, admissionSeconds: 300 },
    nodeFails: () => state.nodeFails,
    frozen: () => state.frozen,
    events: { record: (_subject, _type, reason) => told.push(reason) },
    metrics: outageMetrics(new Registry()),
    logger: pino({}, { write: (line: string) => void logged.push(line) }),
    settleMs: 20,
  });
  const run = keeper.run(stop.signal);
  ends.push(async () => {
    stop.abort();
    await run;
  });
  return { keeper, show, requests, questions, state, told, looks, logged };
}

const seen = async (look: () => void): Promise<void> => await vi.waitFor(look, { timeout: 5_000, interval: 5 });
const named = (requests: readonly KubeRequest[]): string[] => requests.map(({ path }) => path.split('/').at(-1) ?? '');

describe('what keeps pods through an outage', () => {
  it('gives it to pods that came without, by one write that no other pod and no other change can get', async () => {
    const { show, requests } = keeping();
    show(podOf('web'));
    await seen(() => expect(requests).toHaveLength(1));
    const [request] = requests;
    expect(request).toMatchObject({ method: 'PATCH', path: '/api/v1/namespaces/shop/pods/web' });
    expect(request?.contentType).toBe('application/json-patch+json');
    expect(request?.body).toEqual([
      { op: 'test', path: '/metadata/uid', value: 'uid-web' },
      { op: 'test', path: '/spec/tolerations', value: DEFAULTS },
      { op: 'replace', path: '/spec/tolerations', value: [...OURS, ...DEFAULTS] },
    ]);
  });

  it('writes nothing to pods that have it, to those of DaemonSets, without a copy, finished, or on their way out', async () => {
    const { show, requests } = keeping();
    const controller = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true };
    show(podOf('has-it', { spec: { tolerations: [...OURS, ...DEFAULTS] } }));
    show(podOf('of-a-daemon-set', { metadata: { ownerReferences: [controller] } }));
    show(podOf('without-a-copy', { status: { phase: 'Pending' } }));
    show(podOf('finished', { status: { ...MIRRORED, phase: 'Succeeded' } }));
    show(podOf('going', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }));
    show(podOf('web'));
    await seen(() => expect(named(requests)).toEqual(['web']));
    const another = { ...controller, apiVersion: 'example.com/v1' };
    show(podOf('of-another-kind', { metadata: { ownerReferences: [another] } }));
    await seen(() => expect(named(requests)).toEqual(['web', 'of-another-kind']));
  });

  it('writes nothing to a pod that is over, or was given it, before its turn', async () => {
    const { show, requests } = keeping();
    show(podOf('short'));
    show(podOf('short', { status: { ...MIRRORED, phase: 'Succeeded' } }));
    show(podOf('given'));
    show(podOf('given', { spec: { tolerations: [...OURS, ...DEFAULTS] } }));
    show(podOf('web'));
    await seen(() => expect(named(requests)).toEqual(['web']));
  });

  it('is switched off by Keep', async () => {
    const kept = keeping({ toleration: 'Keep' });
    const given = keeping({ toleration: 60 });
    for (const { show } of [kept, given]) show(podOf('web'));
    await seen(() => expect(given.requests).toHaveLength(1));
    expect(kept.requests).toEqual([]);
    expect(JSON.stringify(given.requests[0]?.body)).toContain('"tolerationSeconds":60');
  });

  it('waits while nothing may be written', async () => {
    const { show, requests, state, looks } = keeping();
    state.frozen = 'the lease is lost';
    show(podOf('web'));
    show(podOf('other'));
    await seen(() => expect(looks.length).toBeGreaterThan(4));
    expect(requests).toEqual([]);
    state.frozen = undefined;
    await seen(() => expect(named(requests).toSorted()).toEqual(['other', 'web']));
  });

  it.each([
    ['the right', false],
    ['even the right to ask', 'never asked'],
  ] as const)('tries no pod where %s is missing, asks once, and says so', async (_what, granted) => {
    const { show, requests, questions, told, looks } = keeping({ granted });
    for (let index = 0; index < 20; index++) show(podOf(`web-${String(index)}`));
    await seen(() => expect(told).toEqual(['OutageTolerationsRefused']));
    await seen(() => expect(new Set(looks).size).toBe(20));
    expect(requests).toEqual([]);
    expect(questions).toHaveLength(1);
  });

  it('tries one pod where a policy is against it, and says so', async () => {
    const { show, requests, told, looks } = keeping({ refuse: () => ({ code: 403, reason: 'Forbidden' }) });
    for (let index = 0; index < 20; index++) show(podOf(`web-${String(index)}`));
    await seen(() => expect(told).toEqual(['OutageTolerationsRefused']));
    await seen(() => expect(new Set(looks).size).toBe(20));
    // Two are in work at a time.
    expect(requests.length).toBeLessThanOrEqual(2);
  });

  it('leaves a pod alone that has changed meanwhile, until the watch shows it', async () => {
    let refusal: { code: number; reason: string } | undefined = { code: 422, reason: 'Invalid' };
    const { show, requests, logged } = keeping({ refuse: () => refusal });
    show(podOf('web'));
    await seen(() => expect(requests).toHaveLength(1));
    refusal = undefined;
    const [first] = DEFAULTS;
    show(podOf('web', { spec: { tolerations: first === undefined ? [] : [first] } }));
    await seen(() => expect(requests).toHaveLength(2));
    // Not tried again by itself: that would be a failure of the queue, which logs them.
    expect(logged).toEqual([]);
  });

  it('takes back what a pod was given where the Node is to fail with its member, by the seconds that every pod has', async () => {
    const { show, requests } = keeping({ nodeFails: true });
    show(podOf('as-it-came'));
    show(podOf('with-nothing', { spec: { tolerations: [] } }));
    show(podOf('of-its-own', { spec: { tolerations: DEFAULTS.map((one) => ({ ...one, tolerationSeconds: 5 })) } }));
    show(podOf('given', { spec: { tolerations: [...OURS, ...DEFAULTS] } }));
    await seen(() => expect(named(requests)).toEqual(['given']));
    const withdrawn = OURS.map((one) => ({ ...one, tolerationSeconds: 300 }));
    expect(requests[0]?.body).toContainEqual({
      op: 'replace',
      path: '/spec/tolerations',
      value: [...withdrawn, ...OURS, ...DEFAULTS],
    });
  });

  it('says so where admission of the host leaves them as they were, and rests', async () => {
    const { show, requests, told, logged } = keeping({ merges: true });
    show(podOf('web'));
    await seen(() => expect(told).toEqual(['OutageTolerationsRefused']));
    expect(logged.join()).toContain('an admission plugin of it merges them');
    show(podOf('next'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(named(requests)).toEqual(['web']);
  });

  it('takes back what admission gave, also where nothing is given here', async () => {
    const { show, requests } = keeping({ nodeFails: true, toleration: 'Keep' });
    show(podOf('given', { spec: { tolerations: [...OURS, ...DEFAULTS] } }));
    await seen(() => expect(named(requests)).toEqual(['given']));
  });

  it('looks at all pods again when the spec of the member says the other thing, and at none when it does not', async () => {
    const { keeper, show, requests, state } = keeping();
    const given = podOf('given', { spec: { tolerations: [...OURS, ...DEFAULTS] } });
    show(given);
    show(podOf('web'));
    await seen(() => expect(named(requests)).toEqual(['web']));
    keeper.changed();
    state.nodeFails = true;
    keeper.changed();
    await seen(() => expect(named(requests)).toEqual(['web', 'given']));
    const withdrawn = OURS.map((one) => ({ ...one, tolerationSeconds: 300 }));
    show({ ...given, spec: { ...given.spec, tolerations: [...withdrawn, ...OURS, ...DEFAULTS] } });
    state.nodeFails = false;
    keeper.changed();
    const ofGiven = () => requests.filter(({ path }) => path.endsWith('/given'));
    await seen(() => expect(ofGiven()).toHaveLength(2));
    const value = [...OURS, ...withdrawn, ...OURS, ...DEFAULTS];
    expect(ofGiven().at(-1)?.body).toContainEqual({ op: 'replace', path: '/spec/tolerations', value });
  });

  it('asks again for a pod that is said to be gone and stays in the cache: another cluster may have answered', async () => {
    let refusal: { code: number; reason: string } | undefined = { code: 404, reason: 'NotFound' };
    const { show, requests } = keeping({ refuse: () => refusal });
    show(podOf('web'));
    await seen(() => expect(requests).toHaveLength(1));
    refusal = undefined;
    await seen(() => expect(requests).toHaveLength(2));
  });
});
