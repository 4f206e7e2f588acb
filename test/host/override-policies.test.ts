import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES } from '../../src/api/override-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { InformerMetrics } from '../../src/kube/informer-metrics.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { apiVersionOf } from '../../src/kube/resource.ts';
import { create, remove } from '../../src/kube/verbs.ts';
import { OverridePolicies } from '../../src/host/override-policies.ts';
import {
  OverridePolicyStatuses,
  type OverridePolicyStatusesOptions,
  type SeenPolicy,
} from '../../src/host/override-policy-statuses.ts';
import { monotonic } from '../../src/kube/clock.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import { overridePolicyStatus } from '../../src/overrides/policy-findings.ts';
import { EAST, policy } from '../overrides/rendered-pod.ts';
import { boundPod } from '../fixtures/translation.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

interface World {
  policies: OverridePolicies;
  client: KubeClient;
  events: string[];
  notified: () => number;
}
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function start(
  prepare: (client: KubeClient, api: MemoryApi) => Promise<unknown> = async () => {},
): Promise<World> {
  const api = new MemoryApi();
  const server: MemoryApiServer = await serveMemoryApi(api);
  const client = server.client('host');
  await prepare(client, api);
  const events: string[] = [];
  const policies = new OverridePolicies({
    host: client,
    events: {
      record: ({ kind, namespace, name }, type, reason, message) =>
        void events.push(`${type} ${reason} ${kind} ${namespace ?? '-'}/${name}: ${message}`),
    },
    logger: pino({ level: 'silent' }),
    metrics: new InformerMetrics(new Registry()),
  });
  let count = 0;
  const off = policies.on(() => (count += 1));
  const stop = new AbortController();
  const running = policies.run(stop.signal);
  ends.push(async () => {
    off();
    stop.abort();
    await running;
    await server.close();
  });
  return { policies, client, events, notified: () => count };
}

/** Says on policies what is found of them until the test ends. */
function say(options: Pick<OverridePolicyStatusesOptions, 'host' | 'policies' | 'podsIn'>): void {
  const statuses = new OverridePolicyStatuses({
    members: () => [EAST],
    kinds: {
      whyUnread: async () => await Promise.resolve(undefined),
      isAbsent: async () => await Promise.resolve(false),
    },
    identitiesOf: identitiesOfPod,
    logger: pino({ level: 'silent' }),
    ...options,
  });
  const stop = new AbortController();
  const running = statuses.run(stop.signal);
  ends.push(async () => {
    stop.abort();
    await running;
  });
}
const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 5000, interval: 5 });

const apiVersion = apiVersionOf(OVERRIDE_POLICIES);
const namespaced = (name: string, namespace: string, spec: object = {}): KubeObject =>
  ({ apiVersion, kind: 'OverridePolicy', metadata: { name, namespace }, spec }) as KubeObject;
const wide = (name: string, spec: object = {}): KubeObject =>
  ({ apiVersion, kind: 'ClusterOverridePolicy', metadata: { name }, spec }) as KubeObject;
const make = async (client: KubeClient, object: KubeObject) =>
  await create(client, object.kind === 'OverridePolicy' ? OVERRIDE_POLICIES : CLUSTER_OVERRIDE_POLICIES, object);
const names = (policies: OverridePolicies, namespace: string) =>
  policies.in(namespace).map(({ metadata }) => metadata.name);

describe('OverridePolicies', () => {
  it('are those of the cluster and those of the namespace, once both have been read', async () => {
    const { policies, notified } = await start(async (client) => {
      for (const object of [wide('w'), namespaced('a', 'shop'), namespaced('b', 'other')]) await make(client, object);
    });
    expect(policies.unknown()).toEqual({ problem: undefined });
    await until(() => expect(policies.unknown()).toBeUndefined());
    expect(names(policies, 'shop').sort()).toEqual(['a', 'w']);
    expect(names(policies, 'other').sort()).toEqual(['b', 'w']);
    expect(names(policies, 'empty')).toEqual(['w']);
    await until(() => expect(notified()).toBeGreaterThan(0));
  });

  it('are the same list until one of them changes, and tell so', async () => {
    const { policies, client, notified } = await start();
    await until(() => expect(notified()).toBe(1));
    const before = policies.in('shop');
    expect(policies.in('shop')).toBe(before);
    for (const name of ['a', 'b', 'c']) await make(client, namespaced(name, 'shop'));
    await until(() => expect(names(policies, 'shop')).toEqual(['a', 'b', 'c']));
    await until(() => expect(notified()).toBeGreaterThan(1));
    await remove(client, OVERRIDE_POLICIES, { namespace: 'shop', name: 'a' });
    await until(() => expect(names(policies, 'shop')).toEqual(['b', 'c']));
    expect(notified()).toBeLessThan(6);
  });

  it('that cannot be read are told of, and do not count', async () => {
    const { policies, events } = await start(async (client) => {
      await make(client, namespaced('odd', 'shop', { applyTo: 'Everything' }));
      await make(client, namespaced('fine', 'shop', { applyTo: 'RunningPods' }));
    });
    await until(() => expect(policies.unknown()).toBeUndefined());
    expect(names(policies, 'shop')).toEqual(['fine']);
    expect(events).toEqual([
      expect.stringMatching(
        /^Warning InvalidPolicy OverridePolicy shop\/odd: The policy cannot be read.*spec\.applyTo/,
      ),
    ]);
  });

  it('say whether they are in use; that is written once, and news to nobody', async () => {
    const { policies, client, events, notified } = await start(async (made) => {
      await make(made, namespaced('odd', 'shop', { applyTo: 'Everything' }));
      const targetCluster = { clusterNames: ['esat'] };
      await make(made, namespaced('typo', 'shop', { overrideRules: [{ targetCluster, overriders: {} }] }));
      const labelSelector = { matchLabels: { tier: 'front' } };
      const kind = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' };
      await make(made, namespaced('by-labels', 'shop', { resourceSelectors: [{ ...kind, labelSelector }] }));
      await make(made, namespaced('by-name', 'shop', { resourceSelectors: [{ ...kind, labelSelector, name: 'web' }] }));
      await make(made, wide('absent', { resourceSelectors: [{ ...kind, kind: 'Rolout' }] }));
      const overriders = { argsOverrider: [{ containerName: 'ap', operator: 'replace', value: [] }] };
      await make(made, namespaced('no-container', 'shop', { overrideRules: [{ overriders }] }));
    });
    await until(() => expect(policies.unknown()).toBeUndefined());
    await until(() => expect(notified()).toBeGreaterThan(0));
    const before = notified();
    const stop = new AbortController();
    const logger = pino({ level: 'silent' });
    const members = () => [EAST];
    const kinds = {
      whyUnread: async () => await Promise.resolve('nobody granted it'),
      isAbsent: async ({ kind }: { kind: string }) => await Promise.resolve(kind === 'Rolout'),
    };
    const pods = [boundPod()];
    const statuses = new OverridePolicyStatuses({
      host: client,
      policies,
      members,
      kinds,
      podsIn: () => pods,
      identitiesOf: identitiesOfPod,
      logger,
    });
    const running = statuses.run(stop.signal);
    const said = () =>
      [...policies.seen()].map(({ metadata, status }) => [
        metadata.name,
        ...(status?.conditions ?? []).map((one) => `${one.type} ${one.status}`),
      ]);
    await until(() =>
      expect(said()).toEqual([
        ['absent', 'Accepted True', 'Consistent False'],
        ['by-labels', 'Accepted True', 'Consistent False'],
        ['by-name', 'Accepted True', 'Consistent True'],
        ['no-container', 'Accepted True', 'Consistent False'],
        ['odd', 'Accepted False', 'Consistent False'],
        ['typo', 'Accepted True', 'Consistent False'],
      ]),
    );
    const [absent, byLabels, , container] = [...policies.seen()];
    expect(absent?.status?.conditions?.[1]?.message).toBe(
      'spec.resourceSelectors[0].kind: the host has no kind Rolout (argoproj.io/v1alpha1), so nothing is chosen by it until it has',
    );
    expect(byLabels?.status?.conditions?.[1]?.message).toMatch(/Selectors\[0\]\.labelSelector: .* nobody granted it/);
    expect(container?.status?.conditions?.[1]?.message).toBe(
      'spec.overrideRules[0].overriders.argsOverrider[0].containerName: no pod that it is for has a container "ap", there are app',
    );
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    stop.abort();
    await running;
    expect(notified()).toBe(before);
    expect(events).toHaveLength(1);
  }, 20_000);

  it('say it also where the host does not take it of one, which is tried again', async () => {
    let refuses = true;
    const { policies, client } = await start(async (made, api) => {
      for (const name of ['a', 'b', 'c']) await make(made, namespaced(name, name === 'a' ? 'aaa' : 'shop'));
      api.fault = ({ method, path }) =>
        refuses && method === 'PATCH' && path.endsWith('/a/status')
          ? { code: 422, reason: 'Invalid', message: 'too long' }
          : undefined;
    });
    const statusOf = (name: string) => [...policies.seen()].find(({ metadata }) => metadata.name === name)?.status;
    await until(() => expect(policies.unknown()).toBeUndefined());
    say({ host: client, policies, podsIn: () => [] });
    await until(() => expect([statusOf('b'), statusOf('c')]).toEqual([expect.anything(), expect.anything()]));
    expect([...policies.seen()][0]?.metadata.name).toBe('a');
    expect(statusOf('a')).toBeUndefined();
    refuses = false;
    await until(() => expect(statusOf('a')).toBeDefined());
  }, 20_000);

  it('let others have their turn between two that take long', async () => {
    const { client } = await start();
    const overriders = { argsOverrider: [{ containerName: 'ap', operator: 'replace', value: [] }] };
    const status = overridePolicyStatus({ generation: 0, problems: [], warnings: [], before: undefined, now: 0 });
    const seen = ['a', 'b', 'c', 'd'].map((namespace): SeenPolicy => {
      const found = policy('OverridePolicy', 'p', { overrideRules: [{ overriders }] }, namespace);
      return { kind: found.kind, metadata: found.metadata, status, problems: [], policy: found };
    });
    let turns = 0;
    const others = setInterval(() => (turns += 1), 1);
    ends.push(async () => await Promise.resolve(clearInterval(others)));
    const turnsAt: number[] = [];
    const podsIn = () => {
      turnsAt.push(turns);
      const since = monotonic();
      while (monotonic() - since < 50) continue;
      return [];
    };
    say({ host: client, policies: { seen: () => seen, unknown: () => undefined }, podsIn });
    await until(() => expect(turnsAt.length).toBeGreaterThanOrEqual(seen.length));
    // Timers have their turn before the next one, or the one after that.
    const first = turnsAt.slice(0, seen.length);
    expect(new Set(first).size).toBeGreaterThanOrEqual(seen.length - 1);
  });

  it('that the host does not give stay unknown, with its words', async () => {
    const { policies } = await start(async (_, api) => {
      api.fault = ({ path }) =>
        path.endsWith('/clusteroverridepolicies')
          ? { code: 403, reason: 'Forbidden', message: 'no rights' }
          : undefined;
      await Promise.resolve();
    });
    await until(() => expect(policies.unknown()?.problem).toContain('no rights'));
  });
});
