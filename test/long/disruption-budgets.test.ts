import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { PodDisruptionBudget } from '../../src/kube/policy-v1.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import {
  type Fields,
  IDLE,
  isReady,
  newNamespace,
  onNode,
  podsOf,
  podSpec,
  read,
  shell,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Evictions made in members, of pods that a PodDisruptionBudget of the host covers. Controllers and schedulers are real. */
const MEMBERS = ['east', 'west'];
const LABELS = { app: 'web' };
let topology: Topology;
let host: Cluster;
let members: Cluster[];
const stop = new AbortController();
const watching: Promise<void>[] = [];
/** What ended a watch before it was to end: nothing that it counted is to be relied on then. */
const deaf: unknown[] = [];

beforeAll(async () => {
  topology = await startTopology({
    members: MEMBERS.map((name) => ({ name, kwok: { nodes: 2, prefix: name } })),
  });
  host = topology.host;
  members = MEMBERS.map((name) => topology.member(name).cluster);
});
afterAll(async () => {
  stop.abort();
  await Promise.all(watching);
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect([errors, deaf]).toEqual([[], []]);
});

const isUp = (pod: Pod): boolean => isReady(pod) && pod.metadata.deletionTimestamp === undefined;

/** A Deployment of four on both members, and its budget. */
async function deploy(ns: string, spec: Fields): Promise<void> {
  const { nodeSelector: _, ...rest } = onNode('east');
  const anywhere: Fields = {
    ...rest,
    nodeSelector: { type: 'virtual-kubelet' },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: LABELS },
      },
    ],
  };
  await host.apply([
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace: ns },
      spec: { selector: { matchLabels: LABELS }, ...spec },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: ns },
      spec: {
        replicas: 4,
        selector: { matchLabels: LABELS },
        template: { metadata: { labels: LABELS }, spec: podSpec([shell(IDLE)], anywhere) },
      },
    },
  ]);
  await until('four are ready', async () => (await podsOf(host, ns)).filter(isUp).length === 4, { timeoutMs: 60_000 });
}

const budgetPath = (ns: string, name = ''): string =>
  `/apis/policy/v1/namespaces/${ns}/poddisruptionbudgets${name === '' ? '' : `/${name}`}`;

async function mirrorIn(cluster: Cluster, ns: string): Promise<PodDisruptionBudget | undefined> {
  return await read<PodDisruptionBudget>(cluster, budgetPath(ns, 'web'));
}

/** Their controllers have counted all four pods, and allow so many evictions together. */
async function untilAllowed(ns: string, sum: number): Promise<void> {
  let seen: unknown;
  const areSo = async (): Promise<boolean> => {
    const mirrors = await Promise.all(members.map((cluster) => mirrorIn(cluster, ns)));
    seen = mirrors.map((mirror) => [mirror?.spec.minAvailable, mirror?.status]);
    const total = (field: 'currentHealthy' | 'disruptionsAllowed'): number =>
      mirrors.reduce((before, mirror) => before + (mirror?.status?.[field] ?? NaN), 0);
    return total('currentHealthy') === 4 && total('disruptionsAllowed') === sum;
  };
  await until(`members allow ${sum} evictions`, areSo, { timeoutMs: 60_000 }).catch((error: unknown) => {
    throw new Error(JSON.stringify(seen), { cause: error });
  });
}

/** The fewest pods that were up at once since now, as a cluster shows them: the host, or all members together. */
function fewest(ns: string, clusters: readonly Cluster[]): () => number {
  const up = new Map<string, boolean>();
  let least = Infinity;
  let known = false;
  for (const cluster of clusters) {
    const following = cluster.api.follow(`/api/v1/namespaces/${ns}/pods`, stop.signal, ({ type, object }) => {
      const pod = object as unknown as Pod;
      up.set(`${cluster.name}/${pod.metadata.uid}`, type !== 'DELETED' && isUp(pod));
      const count = [...up.values()].filter(Boolean).length;
      known ||= count === 4;
      if (known) least = Math.min(least, count);
    });
    watching.push(following.catch((error: unknown) => void deaf.push(error)));
  }
  return () => least;
}

/** Whether the member lets it go. */
async function evict(cluster: Cluster, { metadata: { namespace, name } }: Pod): Promise<boolean> {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  try {
    await cluster.api.call('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, body);
    return true;
  } catch {
    return false;
  }
}

test('members together never evict more than a budget of the host allows, however many ask at once', async () => {
  const ns = await newNamespace(host, 'evicted');
  await deploy(ns, { minAvailable: 3 });
  await untilAllowed(ns, 1);
  const least = [fewest(ns, [host]), fewest(ns, members)];
  let granted = 0;
  const ends = performance.now() + 30_000;
  await Promise.all(
    members.map(async (cluster) => {
      while (performance.now() < ends && granted < 4) {
        const pods = (await podsOf(cluster, ns)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        const answers = await Promise.all(pods.map((pod) => evict(cluster, pod)));
        granted += answers.filter(Boolean).length;
      }
    }),
  );
  expect(granted).toBeGreaterThanOrEqual(2);
  expect(least.map((count) => count())).toEqual([3, 3]);
  await until('four are ready again', async () => (await podsOf(host, ns)).filter(isUp).length === 4, {
    timeoutMs: 60_000,
  });
});

test('drains in two members go on pod by pod, each when another pod is ready', async () => {
  const ns = await newNamespace(host, 'drained');
  await deploy(ns, { maxUnavailable: 1 });
  await untilAllowed(ns, 1);
  const least = [fewest(ns, [host]), fewest(ns, members)];
  const nodes = await Promise.all(
    members.map(async (cluster) => (await podsOf(cluster, ns)).find(isUp)?.spec.nodeName ?? ''),
  );
  const drains = await Promise.all(
    members.map((cluster, i) =>
      cluster.kubectl(['drain', nodes[i] ?? '', '--ignore-daemonsets', '--force', '--timeout=300s'], {
        timeoutMs: 310_000,
      }),
    ),
  );
  expect(drains.map(({ code }) => code)).toEqual([0, 0]);
  for (const [i, cluster] of members.entries()) {
    const left = (await podsOf(cluster, ns)).filter(isUp);
    expect(left.map(({ spec }) => spec.nodeName)).not.toContain(nodes[i]);
    await cluster.kubectl(['uncordon', nodes[i] ?? '']);
  }
  expect(least.map((count) => count())).toEqual([3, 3]);
}, 400_000);

test('budgets go with what asks for them: all when the member is to ignore them, and with the last of the host', async () => {
  const ns = await newNamespace(host, 'ignored');
  await deploy(ns, { minAvailable: 4, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
  await untilAllowed(ns, 0);
  const [east, west] = members as [Cluster, Cluster];
  expect((await mirrorIn(east, ns))?.spec.unhealthyPodEvictionPolicy).toBe('AlwaysAllow');
  const own = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'own', namespace: ns } };
  await east.api.call('POST', budgetPath(ns), {
    ...own,
    spec: { minAvailable: 1, selector: { matchLabels: { x: 'y' } } },
  });
  const [pod] = (await podsOf(east, ns)).filter(isUp);
  expect(pod !== undefined && (await evict(east, pod))).toBe(false);
  const path = '/apis/spillway.dev/v1alpha1/memberclusters/east';
  await host.api.call('PATCH', path, { spec: { disruptionBudgets: 'Ignore' } });
  await until('the budget is gone', async () => (await mirrorIn(east, ns)) === undefined);
  expect(await mirrorIn(west, ns)).toBeDefined();
  await until('it is told', async () => {
    const { status } = (await host.api.call('GET', path)) as { status: MemberClusterStatus };
    return status.conditions?.some(({ type, reason }) => type === 'BudgetsMirrored' && reason === 'Ignored');
  });
  await host.api.call('PATCH', path, { spec: { disruptionBudgets: 'Mirror' } });
  await until('it is back', async () => (await mirrorIn(east, ns)) !== undefined);
  await host.api.call('DELETE', budgetPath(ns, 'web'));
  for (const cluster of members) await until('it is gone', async () => (await mirrorIn(cluster, ns)) === undefined);
  expect(await read(east, budgetPath(ns, 'own'))).toBeDefined();
});

test('a member that may not have them is told of, and one whose owner grants it gets them', async () => {
  const ns = await newNamespace(host, 'refused');
  const [east] = members as [Cluster, Cluster];
  const role = '/apis/rbac.authorization.k8s.io/v1/clusterroles/spillway-workloads';
  interface Role {
    rules: { resources: string[] }[];
  }
  const before = (await east.api.call('GET', role)) as Role;
  const rules = before.rules.filter(({ resources }) => !resources.includes('poddisruptionbudgets'));
  expect(rules.length).toBe(before.rules.length - 1);
  await east.api.call('PATCH', role, { rules });
  await deploy(ns, { minAvailable: 3 });
  const reasonIs = async (wanted: string): Promise<void> => {
    await until(
      `the condition says ${wanted}`,
      async () => {
        const path = '/apis/spillway.dev/v1alpha1/memberclusters/east';
        const { status } = (await host.api.call('GET', path)) as { status: MemberClusterStatus };
        const found = (type: string) => status.conditions?.find((one) => one.type === type);
        return found('BudgetsMirrored')?.reason === wanted && found('Ready')?.status === 'True';
      },
      { timeoutMs: 90_000 },
    );
  };
  await reasonIs('BudgetRightMissing');
  expect(await mirrorIn(east, ns)).toBeUndefined();
  await east.api.call('PATCH', role, { rules: before.rules });
  await reasonIs('Mirrored');
  await until('the budget is there', async () => (await mirrorIn(east, ns)) !== undefined);
}, 240_000);
