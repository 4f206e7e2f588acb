import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { manifest } from '../../hack/manifest.ts';
import { MIRRORED_CONDITION, UID_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import {
  condition,
  eventsOf,
  type Fields,
  isReady,
  kubectl,
  newNamespace,
  pod,
  podsOf,
  untilPod,
} from '../fixtures/live-pods.ts';
import { evicted, PRIORITY_CLASSES, prioritised, untilSeenThatNothingIsEvicted } from '../fixtures/preemption.ts';
import { burstNamespace, burstSpec, deployment, LOCAL_PREFIX, policy, settled } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** A real kube-scheduler that asks which pods it may evict. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    // Whatever fits nowhere is tried again every second, instead of every ten.
    host: { schedulerConfig: { podMaxBackoffSeconds: 1 } },
    extender: true,
    members: [{ name: 'east', kwok: { nodes: 2, cpu: '8' } }],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 1, cpu: '10', prefix: LOCAL_PREFIX });
  await host.apply(PRIORITY_CLASSES);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});
afterEach(async () => {
  await kubectl(host, ['delete', 'deployment,poddisruptionbudget', '--all', '-A', '--wait=false']);
  await until(
    'no pods are left',
    async () => {
      const { items } = (await host.api.call('GET', '/api/v1/pods')) as { items: unknown[] };
      return items.length === 0;
    },
    { timeoutMs: 60_000 },
  );
});

const inEast = { clusterAffinity: { clusterNames: ['east'] } };

/** The node of the member on which the copy of each pod is. */
async function memberNodes(pods: readonly Pod[]): Promise<Map<string, string>> {
  const { items } = (await topology.member('east').cluster.api.call('GET', '/api/v1/pods')) as { items: Pod[] };
  const byUid = new Map(items.map(({ metadata, spec }) => [metadata.labels?.[UID_LABEL], spec.nodeName ?? '']));
  return new Map(pods.map(({ metadata }) => [metadata.name, byUid.get(metadata.uid) ?? '']));
}

async function copiesIn(namespace: string): Promise<Pod[]> {
  return await podsOf(topology.member('east').cluster, namespace);
}

/** Keeps copies in the member when they are deleted, or lets them go. */
async function hold(copies: readonly Pod[], finalizers: readonly string[] | null): Promise<void> {
  const [first] = copies;
  if (first === undefined) return;
  const names = copies.map(({ metadata }) => metadata.name);
  const body = JSON.stringify({ metadata: { finalizers } });
  const how = ['-n', first.metadata.namespace ?? '', '--type=merge', '-p', body];
  await kubectl(topology.member('east').cluster, ['patch', 'pod', ...names, ...how]);
}

test('an important pod gets its place in a full member: two pods of one node make way for it, and no others', async () => {
  await newNamespace(host, 'full');
  await host.apply([policy('full', 'in-east', inEast), deployment('full', 'batch', 8, '2', {}, prioritised('low'))]);
  const batch = await settled(host, 'full', 'batch', { east: 8 });
  const nodeOf = await memberNodes(batch);
  await host.apply([deployment('full', 'core', 1, '4', {}, prioritised('high'))]);
  await settled(host, 'full', 'core', { east: 1 });
  const gone = await evicted(host, 'full');
  expect(gone).toHaveLength(2);
  expect(new Set(gone.map((name) => nodeOf.get(name))).size).toBe(1);
  // Those that came in their place wait: they take nothing back, nor does anything else go.
  await until('the others run, and two wait', async () => {
    const pods = await podsOf(host, 'full', 'app=batch');
    return pods.length === 8 && pods.filter(isReady).length === 6;
  });
  expect(await evicted(host, 'full')).toEqual(gone);
});

test('a pod that the scheduler asks two extenders about, as shipped, gets its place, too', async () => {
  await host.apply(manifest('scheduler/extender-pods.yaml'));
  try {
    await newNamespace(host, 'marked');
    const probe = JSON.stringify(pod('probe', 'marked', burstSpec('1', {})));
    await until('pods get the mark', async () => {
      const how = ['create', '--dry-run=server', '-o', 'json', '-f', '-'];
      return (await host.kubectl(how, { input: probe })).stdout.includes('spillway.dev/extender');
    });
    await host.apply([
      policy('marked', 'in-east', inEast),
      deployment('marked', 'batch', 8, '2', {}, prioritised('low')),
    ]);
    await settled(host, 'marked', 'batch', { east: 8 });
    await host.apply([deployment('marked', 'core', 1, '4', {}, prioritised('high'))]);
    const [core] = await settled(host, 'marked', 'core', { east: 1 });
    expect(core?.spec.containers[0]?.resources?.requests).toHaveProperty(['spillway.dev/extender']);
    expect(await evicted(host, 'marked')).toHaveLength(2);
  } finally {
    for (const kind of ['mutatingadmissionpolicybinding', 'mutatingadmissionpolicy'])
      await kubectl(host, ['delete', kind, 'spillway-extender-pods']);
  }
});

test('what others leave bit by bit is kept for the pod that they leave for, whatever the virtual node says meanwhile', async () => {
  await newNamespace(host, 'held');
  await host.apply([policy('held', 'in-east', inEast), deployment('held', 'batch', 8, '2', {}, prioritised('low'))]);
  await settled(host, 'held', 'batch', { east: 8 });
  await hold(await copiesIn('held'), ['example.com/hold']);
  await host.apply([deployment('held', 'core', 1, '4', {}, prioritised('high'))]);
  const core = async (): Promise<Pod | undefined> => (await podsOf(host, 'held', 'app=core'))[0];
  const leaving = async (): Promise<Pod[]> =>
    (await copiesIn('held')).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  try {
    await until('two make way', async () => {
      return (await leaving()).length === 2 && (await core())?.status?.nominatedNodeName === 'east';
    });
    await hold((await leaving()).slice(0, 1), null);
    await until(
      'the scheduler was told that there is no room yet',
      async () => {
        // As it is for a moment between two reports, when a victim is gone from the member, but not from the host.
        const more = ['--subresource=status', '-p', '{"status":{"allocatable":{"cpu":"32"}}}'];
        await kubectl(host, ['patch', 'node', 'east', ...more]);
        const told = await eventsOf(host, 'held', (await core())?.metadata.name ?? '');
        return told.some(({ message }) => message.includes('member east: '));
      },
      { timeoutMs: 60_000 },
    );
  } finally {
    const held = (await copiesIn('held')).filter(({ metadata }) => (metadata.finalizers ?? []).length > 0);
    await hold(held, null);
  }
  await settled(host, 'held', 'core', { east: 1 });
  expect(await evicted(host, 'held')).toHaveLength(2);
}, 180_000);

test('of pods that a budget protects none makes way while others can', async () => {
  await newNamespace(host, 'kept');
  await host.apply([
    policy('kept', 'in-east', inEast),
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'kept', namespace: 'kept' },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'kept' } } },
    },
    deployment('kept', 'kept', 4, '2', {}, prioritised('low')),
  ]);
  await settled(host, 'kept', 'kept', { east: 4 });
  await host.apply([deployment('kept', 'batch', 4, '2', {}, prioritised('low'))]);
  await settled(host, 'kept', 'batch', { east: 4 });
  await host.apply([deployment('kept', 'core', 1, '2', {}, prioritised('high'))]);
  await settled(host, 'kept', 'core', { east: 1 });
  const gone = await evicted(host, 'kept');
  expect(gone.map((name) => name.split('-')[0])).toEqual(['batch']);
});

test('nothing is evicted in vain: neither where a policy forbids the pod, nor where no node of the member would take it', async () => {
  for (const name of ['home', 'away', 'vain']) await newNamespace(host, name);
  await host.apply([
    policy('away', 'in-east', inEast),
    policy('vain', 'in-east', inEast),
    deployment('home', 'web', 10, '1', {}, { ...prioritised('low'), tolerations: [] }),
    deployment('away', 'web', 8, '2', {}, prioritised('low')),
  ]);
  await settled(host, 'home', 'web', { local: 10 });
  await settled(host, 'away', 'web', { east: 8 });
  // More than a node of the member has, less than the one of the host has, and less than the virtual node says.
  await host.apply([deployment('vain', 'core', 1, '9', {}, prioritised('high'))]);
  await until('the scheduler found no place', async () => {
    const [pod] = await podsOf(host, 'vain');
    return pod !== undefined && condition(pod, 'PodScheduled')?.status === 'False';
  });
  await untilSeenThatNothingIsEvicted(host, ['home', 'away'], 20_000);
}, 180_000);

test('the scheduler of the member goes by classes that the MemberCluster maps: a copy of one takes the place of a copy of none', async () => {
  const member = topology.member('east').cluster;
  const map = async (podPriority: Fields | null): Promise<string> => {
    const patch = JSON.stringify({ spec: { podPriority } });
    return await kubectl(host, ['patch', 'membercluster', 'east', '--type=merge', '-p', patch]);
  };
  await newNamespace(host, 'ranks');
  await host.apply([policy('ranks', 'in-east', inEast), deployment('ranks', 'batch', 8, '2', {}, prioritised('low'))]);
  await settled(host, 'ranks', 'batch', { east: 8 });
  await map({ classes: [{ host: 'high', member: 'burst-high' }] });
  try {
    // Past the host's scheduler, which would make room for it.
    await host.apply([pod('core', 'ranks', burstSpec('2', { ...prioritised('high'), nodeName: 'east' }))]);
    const waiting = await untilPod(
      host,
      'ranks',
      'core',
      'waits for its class',
      ({ status }) => status?.reason === 'MemberPriorityClass',
    );
    expect(waiting.status?.message).toMatch(
      /no PriorityClass with name burst-high was found\. It is tried again by itself; .*spec\.podPriority of MemberCluster "east"/,
    );
    await kubectl(member, ['create', 'priorityclass', 'burst-high', '--value=500']);
    const core = await untilPod(host, 'ranks', 'core', 'runs', isReady);
    expect(condition(core, MIRRORED_CONDITION)?.message).toMatch(/ priorityClass=burst-high$/);
    // One that the host's scheduler had evicted would be gone.
    const madeWay = (await podsOf(host, 'ranks', 'app=batch')).filter(({ status }) => status?.phase === 'Failed');
    expect(madeWay.map((one) => condition(one, 'DisruptionTarget')?.reason)).toEqual(['PreemptionByScheduler']);
    // An edit is none of the copies' that are there.
    await map(null);
    const ranks = (await copiesIn('ranks')).map(({ metadata, spec }) => [
      metadata.name.startsWith('batch') ? 'batch' : metadata.name,
      spec.priorityClassName ?? 'none',
      spec.priority,
    ]);
    expect(ranks).toHaveLength(8);
    expect(new Set(ranks.map((one) => one.join(' ')))).toEqual(new Set(['batch none 0', 'core burst-high 500']));
  } finally {
    await map(null);
    await kubectl(host, ['delete', 'pod', 'core', '-n', 'ranks', '--wait=false']);
  }
});

/** Objects in the examples of a page. */
function examplesOf(page: string): Fields[] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  return blocks.flatMap((block) => parseAllDocuments(block).map((one) => one.toJS() as Fields));
}

test('the guide: core services run in full while reports make way, on the host and in the member', async () => {
  const [core, batch, checkout, reports] = examplesOf('guides/degrade.md');
  await burstNamespace(host, 'shop');
  // What admission gives to pods of such a namespace.
  const { tolerations } = burstSpec('1');
  const tolerating = (deploying: Fields | undefined): Fields => {
    const { spec, ...rest } = deploying as { spec: { template: { spec: object } } };
    const template = { ...spec.template, spec: { ...spec.template.spec, tolerations } };
    return { ...rest, spec: { ...spec, template } };
  };
  await host.apply([core ?? {}, batch ?? {}, tolerating(reports)]);
  await until('reports fill nearly everything', async () => {
    return (await podsOf(host, 'shop', 'app=reports')).filter(isReady).length === 12;
  });
  await host.apply([tolerating(checkout)]);
  await until('core services run in full', async () => {
    const pods = await podsOf(host, 'shop', 'app=checkout');
    return pods.length === 3 && pods.every(isReady);
  });
  // 26 cores in all, of which 12 are taken now.
  const left = (await podsOf(host, 'shop', 'app=reports')).filter(isReady);
  expect(left.length).toBeGreaterThanOrEqual(6);
  expect(left.length).toBeLessThanOrEqual(7);
  const gone = await evicted(host, 'shop');
  expect(gone.every((name) => name.startsWith('reports-'))).toBe(true);
});
