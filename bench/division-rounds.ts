import type { Cluster } from '../hack/cluster.ts';
import { until } from '../hack/until.ts';
import { tiesDescend } from '../src/placement/ties.ts';
import type { RequestCounts } from './audit-tally.ts';
import { Disturbance } from './disturbance.ts';
import type { DivisionFleet } from './division-fleet.ts';
import { differing, exactDivision } from './exact-division.ts';
import { OUTAGE_TOLERATIONS } from './outage-tolerations.ts';
import { PodMoments } from './pod-moments.ts';

/** One way to divide a Deployment, and what its pods ask for there. */
export interface Rule {
  /** For people. */
  title: string;
  namespace: string;
  replicaScheduling: object;
  resources: object;
  /** What the division has to be in proportion to, by member. */
  weights: ReadonlyMap<string, number>;
}

/** What became of one change of a Deployment's size. Times are seconds from the request. */
export interface Round {
  /** How many pods came or went; where they came and went again, how many came. */
  pods: number;
  /** Until all pods had a node; NaN where they went. */
  bound: number;
  /** Until all pods ran, or those too many were gone. */
  done: number;
  /** Until the last deletion cost was written, by which pods would be removed next. */
  ordered: number;
  /** Of the manager, until `done`, and from there until deletion costs had been at rest for a while. */
  cpuSeconds: number;
  cpuSecondsAfter: number;
  /** Until deletion costs were at rest. */
  requests: { host: RequestCounts; members: RequestCounts };
  /** Members that have not what they should have. */
  wrong: string[];
  /** Of the machine, by programs that have nothing to do with the bench, until `done`. */
  othersShare: number;
}

const PATIENCE_MS = 240_000;
const WAIT = { timeoutMs: PATIENCE_MS, intervalMs: 500 };
const NAME = 'divided';

const deployments = ({ namespace }: Rule): string => `/apis/apps/v1/namespaces/${namespace}/deployments`;

/** Makes a Deployment of so many replicas at once, under a policy that is known by then. */
export async function grow(fleet: DivisionFleet, rule: Rule, replicas: number): Promise<Round> {
  const { host } = fleet;
  await makePolicy(host, rule);
  return await observe(fleet, rule, replicas, async (moments) => {
    await host.api.call('POST', deployments(rule), deployment(rule, replicas));
    const [bound, done] = await Promise.all([
      moments.bound(replicas, PATIENCE_MS),
      moments.running(replicas, PATIENCE_MS),
    ]);
    return { bound, done, pods: replicas };
  });
}

/** Makes it smaller. */
export async function shrink(fleet: DivisionFleet, rule: Rule, from: number, replicas: number): Promise<Round> {
  return await observe(fleet, rule, replicas, async (moments) => {
    await fleet.host.api.call('PATCH', `${deployments(rule)}/${NAME}/scale`, { spec: { replicas } });
    const done = await moments.gone(from - replicas, PATIENCE_MS);
    return { bound: Number.NaN, done, pods: from - replicas };
  });
}

/**
 * Makes it one larger and as large as before again, so many times, each time once deletion costs are at rest: what this takes is what one pod that
 * comes or goes takes of a large workload.
 */
export async function waver(fleet: DivisionFleet, rule: Rule, replicas: number, times: number): Promise<Round> {
  const scale = async (to: number): Promise<void> => {
    await fleet.host.api.call('PATCH', `${deployments(rule)}/${NAME}/scale`, { spec: { replicas: to } });
  };
  return await observe(fleet, rule, replicas, async (moments) => {
    let done = Number.NaN;
    for (let time = 1; time <= times; time += 1) {
      await scale(replicas + 1);
      // A watch from now on shows nothing of those that were there before.
      await until('the one more is Ready', async () => (await readyPods(fleet.host, rule)) > replicas, WAIT);
      await moments.costsAtRest(PATIENCE_MS);
      await scale(replicas);
      done = await moments.gone(time, PATIENCE_MS);
      await moments.costsAtRest(PATIENCE_MS);
    }
    return { bound: Number.NaN, done, pods: times };
  });
}

type Change = (moments: PodMoments) => Promise<{ bound: number; done: number; pods: number }>;

async function observe(fleet: DivisionFleet, rule: Rule, replicas: number, change: Change): Promise<Round> {
  const { host, manager } = fleet;
  const cpu = (): number => manager.usage()?.cpuSeconds ?? Number.NaN;
  const moments = await PodMoments.start(host.adminAccess, rule.namespace);
  try {
    fleet.takeRequests();
    const disturbance = new Disturbance(() => fleet.usage());
    const [began, before] = [performance.now(), cpu()];
    const { bound, done, pods } = await change(moments);
    const after = cpu();
    const othersShare = disturbance.share();
    const ordered = await moments.costsAtRest(PATIENCE_MS);
    const since = (moment: number): number => (moment - began) / 1000;
    return {
      pods,
      bound: since(bound),
      done: since(done),
      ordered: since(Math.max(ordered, done)),
      cpuSeconds: after - before,
      cpuSecondsAfter: cpu() - after,
      requests: fleet.takeRequests(),
      wrong: await wrongMembers(host, rule, replicas),
      othersShare,
    };
  } finally {
    await moments.close();
  }
}

async function readyPods(host: Cluster, rule: Rule): Promise<number> {
  const { status } = (await host.api.call('GET', `${deployments(rule)}/${NAME}`)) as {
    status?: { readyReplicas?: number };
  };
  return status?.readyReplicas ?? 0;
}

async function makePolicy(host: Cluster, rule: Rule): Promise<void> {
  const policies = `/apis/spillway.dev/v1alpha1/namespaces/${rule.namespace}/placementpolicies`;
  await host.api.call('POST', policies, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: NAME },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      placement: { replicaScheduling: rule.replicaScheduling },
    },
  });
  await until('the policy is in use', async () => {
    const { status } = (await host.api.call('GET', `${policies}/${NAME}`)) as {
      status?: { conditions?: { type: string; status: string }[] };
    };
    return status?.conditions?.some((one) => one.type === 'Accepted' && one.status === 'True');
  });
}

function deployment({ resources }: Rule, replicas: number): object {
  const labels = { app: NAME };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }, ...OUTAGE_TOLERATIONS],
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'main', image: 'registry.example/app:v1', resources }],
        },
      },
    },
  };
}

/** Members that have more or fewer pods of the Deployment than the rule says for so many. */
async function wrongMembers(host: Cluster, rule: Rule, replicas: number): Promise<string[]> {
  const made = (await host.api.call('GET', `${deployments(rule)}/${NAME}`)) as { metadata: { uid: string } };
  const { items } = (await host.api.call('GET', `/api/v1/namespaces/${rule.namespace}/pods`)) as {
    items: { spec: { nodeName?: string } }[];
  };
  const counts = new Map<string, number>();
  for (const { spec } of items) {
    const place = spec.nodeName ?? 'nowhere';
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return differing(counts, exactDivision(replicas, rule.weights, tiesDescend(made.metadata.uid)));
}
