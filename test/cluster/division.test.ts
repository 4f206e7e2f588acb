import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { type Ended, liveRows, runRow, startForRows, toldOf } from '../fixtures/live-divisions.ts';
import { condition, eventsOf, type Fields, kubectl, newNamespace, podsOf } from '../fixtures/live-pods.ts';
import {
  burstSpec,
  deployment,
  placementOf,
  policy,
  policyInUse,
  scale,
  settled,
  whereAre,
} from '../fixtures/scheduling.ts';
import { errorsOf, type Topology } from '../fixtures/topology.ts';

const ROWS = liveRows('short');
/** A resource of which member a has enough for one pod, and b for many. */
const SCARCE = 'example.com/scarce';
/** The same, for other pods. */
const GATED = 'example.com/gated';
/** A machine with much else to do takes its time. */
const PATIENCE_MS = 180_000;

let topology: Topology;
/** Where each row ended. */
const ended = new Map<string, Ended>();

beforeAll(async () => {
  topology = await startForRows(ROWS, { a: { [SCARCE]: '1', [GATED]: '1' }, b: { [SCARCE]: '10', [GATED]: '10' } });
});

afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

describe.concurrent('a Deployment ends on the exact division, grown, shrunk and rolled out:', () => {
  test.for(ROWS)('$name', { timeout: 400_000 }, async (row) => {
    ended.set(row.name, await runRow(topology, row));
  });
});

describe.concurrent('annotations of Federation v1', () => {
  const preferences = (clusters: object): string => JSON.stringify({ rebalance: true, clusters });

  /** The spec of a ReplicaSet or a Job, whose pods carry a label. */
  const podTemplate = (more: Fields): Fields => ({
    metadata: { labels: { app: 'web' } },
    spec: burstSpec('10m', more),
  });

  async function make(namespace: string, apiVersion: string, kind: string, annotations: Fields, spec: Fields) {
    const { host } = topology;
    await newNamespace(host, namespace);
    await host.apply([{ apiVersion, kind, metadata: { name: 'web', namespace, annotations }, spec }]);
  }

  test('divide a ReplicaSet', { timeout: 400_000 }, async () => {
    const annotations = {
      'federation.kubernetes.io/replica-set-preferences': preferences({ a: { weight: 1 }, b: { weight: 2 } }),
    };
    const selector = { matchLabels: { app: 'web' } };
    await make('fed-set', 'apps/v1', 'ReplicaSet', annotations, { replicas: 9, selector, template: podTemplate({}) });
    await settled(topology.host, 'fed-set', 'web', { a: 3, b: 6 }, PATIENCE_MS);
  });

  test('divide a Job', { timeout: 400_000 }, async () => {
    const annotations = {
      'federation.kubernetes.io/job-preferences': preferences({ '*': { weight: 1 }, c: { weight: 4, maxReplicas: 2 } }),
      'federation.alpha.kubernetes.io/cluster-selector': JSON.stringify([
        { key: 'letter', operator: 'in', values: ['b', 'c'] },
      ]),
    };
    const template = podTemplate({ restartPolicy: 'Never' });
    await make('fed-job', 'batch/v1', 'Job', annotations, { parallelism: 6, completions: 6, template });
    await settled(topology.host, 'fed-job', 'web', { b: 4, c: 2 }, PATIENCE_MS);
  });

  test('choose clusters by label', { timeout: 400_000 }, async () => {
    const annotations = {
      'federation.alpha.kubernetes.io/cluster-selector': JSON.stringify([
        { key: 'letter', operator: 'notin', values: ['a', 'b'] },
      ]),
    };
    const { spec } = deployment('fed-labels', 'web', 3, '10m');
    await make('fed-labels', 'apps/v1', 'Deployment', annotations, spec as Fields);
    await settled(topology.host, 'fed-labels', 'web', { c: 3 }, PATIENCE_MS);
  });

  test('that cannot be read are told about on the workload', { timeout: 400_000 }, async () => {
    const annotations = { 'federation.kubernetes.io/deployment-preferences': preferences({ a: { weight: 'much' } }) };
    const { spec } = deployment('fed-wrong', 'web', 1, '10m');
    await make('fed-wrong', 'apps/v1', 'Deployment', annotations, spec as Fields);
    const told = await until(
      'there is an Event',
      async () => {
        const events = await eventsOf(topology.host, 'fed-wrong', 'web', 'Deployment');
        return events.find(({ reason }) => reason === 'InvalidFederationPreferences');
      },
      { timeoutMs: PATIENCE_MS },
    );
    expect(told.type).toBe('Warning');
    expect(told.message).toMatch(/annotations of Deployment web are ignored: .*clusters\.a\.weight/);
  });
});

/** As the API server noted it, in whole seconds. */
function secondsToBind(one: Pod): number {
  const bound = condition(one, 'PodScheduled')?.lastTransitionTime ?? '';
  return (Date.parse(bound) - Date.parse(one.metadata.creationTimestamp ?? '')) / 1000;
}

describe.concurrent('tryNextAfter', () => {
  test(
    'a pod waits for room, and is looked at again when the next tier may be tried',
    { timeout: 400_000 },
    async () => {
      const { host } = topology;
      const overflowAffinities = [{ clusterNames: ['b'] }];
      const resources = { requests: { cpu: '10m', [SCARCE]: '1' }, limits: { [SCARCE]: '1' } };
      const containers = [{ name: 'main', image: 'registry.example/app:v1', resources }];
      await newNamespace(host, 'later');
      await host.apply([
        policy('later', 'tiers', { clusterAffinity: { clusterNames: ['a'], tryNextAfter: '5s', overflowAffinities } }),
        deployment('later', 'web', 2, '10m', {}, { containers }),
      ]);
      const pods = await settled(host, 'later', 'web', { a: 1, b: 1 }, PATIENCE_MS);
      const late = pods.filter(({ spec }) => spec.nodeName === 'b').map(secondsToBind);
      expect(late[0]).toBeGreaterThanOrEqual(5);
    },
  );

  test('does not count the time that a pod spent behind a gate', { timeout: 400_000 }, async () => {
    const { host } = topology;
    const overflowAffinities = [{ clusterNames: ['b'] }];
    const resources = { requests: { cpu: '10m', [GATED]: '1' }, limits: { [GATED]: '1' } };
    const containers = [{ name: 'main', image: 'registry.example/app:v1', resources }];
    await newNamespace(host, 'gated');
    const gates = { containers, schedulingGates: [{ name: 'example.com/later' }] };
    await host.apply([
      policy('gated', 'tiers', { clusterAffinity: { clusterNames: ['a'], tryNextAfter: '8s', overflowAffinities } }),
      deployment('gated', 'web', 2, '10m', {}, gates),
    ]);
    await policyInUse(host, 'gated', 'tiers');
    const made = await until('both pods are there', async () => {
      const pods = await podsOf(host, 'gated');
      return pods.length === 2 ? pods : undefined;
    });
    // Longer than what they may have to wait for the second tier.
    await sleep(12_000);
    const opened = Math.floor(Date.now() / 1000);
    for (const { metadata } of made) {
      const path = `/api/v1/namespaces/gated/pods/${metadata.name}`;
      await host.api.call('PATCH', path, { spec: { schedulingGates: [] } });
    }
    const pods = await settled(host, 'gated', 'web', { a: 1, b: 1 }, PATIENCE_MS);
    const [late] = pods.filter(({ spec }) => spec.nodeName === 'b');
    const bound = Date.parse(late === undefined ? '' : (condition(late, 'PodScheduled')?.lastTransitionTime ?? ''));
    expect(bound / 1000 - opened).toBeGreaterThanOrEqual(8);
  });
});

// After all of them, as it takes up to ten seconds until what was found last is written.
test(
  'WorkloadPlacements tell where pods are and should be, and policies that all is well',
  { timeout: 400_000 },
  async () => {
    for (const row of ROWS) {
      const end = ended.get(row.name);
      if (end !== undefined) await toldOf(topology, end);
    }
  },
);

/** Waits for the targets of Deployment web. */
async function targetsAre(namespace: string, wanted: Readonly<Record<string, number>>): Promise<void> {
  await until(
    `the targets of ${namespace} are ${JSON.stringify(wanted)}`,
    async () => {
      const clusters = (await placementOf(topology.host, namespace, 'web'))?.status?.clusters ?? [];
      const targets = clusters.flatMap(({ name, target }) => (target === undefined ? [] : [[name, target]]));
      if (isDeepStrictEqual(Object.fromEntries(targets), wanted)) return true;
      throw new Error(JSON.stringify(clusters));
    },
    { timeoutMs: PATIENCE_MS },
  );
}

/** Waits until the pods of a namespace are so, running or not. */
async function boundTo(namespace: string, wanted: Readonly<Record<string, number>>): Promise<Pod[]> {
  return await until(
    `pods of ${namespace} are ${JSON.stringify(wanted)}`,
    async () => {
      const pods = await podsOf(topology.host, namespace);
      if (isDeepStrictEqual(whereAre(pods), wanted)) return pods;
      throw new Error(JSON.stringify(whereAre(pods)));
    },
    { timeoutMs: PATIENCE_MS },
  );
}

// Last of all, as no other pods go to the member meanwhile.
test(
  'targets follow a member that goes and is back, and an edited policy; pods that come later follow them, no other is moved',
  { timeout: 400_000 },
  async () => {
    const { host } = topology;
    const ab = { clusterAffinity: { clusterNames: ['a', 'b'] } };
    const rules = [
      { targetCluster: { clusterNames: ['a'] }, weight: 1 },
      { targetCluster: { clusterNames: ['b'] }, weight: 3 },
    ];
    const edited = { ...ab, replicaScheduling: { weightPreference: { staticWeightList: rules } } };
    const names = ['away', 'edited'];
    for (const name of names) {
      await newNamespace(host, name);
      await host.apply([policy(name, 'equal', { ...ab, replicaScheduling: {} }), deployment(name, 'web', 4, '10m')]);
    }
    const [, before] = await Promise.all(
      names.map(async (name) => {
        const pods = await boundTo(name, { a: 2, b: 2 });
        return pods.map(({ metadata }) => metadata.uid ?? '').toSorted();
      }),
    );
    await targetsAre('away', { a: 2, b: 2 });
    await host.apply([policy('edited', 'equal', edited)]);
    const apiServer = topology.member('b').cluster.component('kube-apiserver');
    apiServer.signal('SIGSTOP');
    try {
      await targetsAre('away', { a: 2 });
      await scale(host, 'away', 'web', 6);
      await boundTo('away', { a: 4, b: 2 });
    } finally {
      apiServer.signal('SIGCONT');
    }
    await targetsAre('away', { a: 3, b: 3 });
    const pods = await boundTo('away', { a: 4, b: 2 });
    const inA = pods.find(({ spec }) => spec.nodeName === 'a')?.metadata.name ?? '';
    await kubectl(host, ['delete', 'pod', '-n', 'away', inA, '--wait=false']);
    await boundTo('away', { a: 3, b: 3 });
    await targetsAre('edited', { a: 1, b: 3 });
    const after = await boundTo('edited', { a: 2, b: 2 });
    expect(after.map(({ metadata }) => metadata.uid ?? '').toSorted()).toEqual(before);
  },
);
