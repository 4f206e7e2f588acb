import type { Cluster } from '../hack/cluster.ts';
import type { Say } from '../hack/progress.ts';
import { until } from '../hack/until.ts';
import { Workspace } from '../hack/workspace.ts';
import type { RequestCounts } from './audit-tally.ts';
import { makeNamespace } from './bench-namespace.ts';
import { DivisionFleet, SEAT } from './division-fleet.ts';
import { measured, type Measurement, type SuiteReport } from './measurement.ts';
import { PodMoments } from './pod-moments.ts';
import { whenIdle } from './when-idle.ts';

const NAMESPACE = 'lost';
const NAME = 'web';
/** Room in both members, in pods. */
const ROOM = 1_000;
/** Pods of the member that is lost. At two a second they take 100 s. */
const PODS = 200;
/** Of the configuration, as it is shipped, out of one member. */
const MOVES_PER_SECOND = 2;
const PATIENCE_MS = 300_000;
/** A Lease renewed within this time shows a node that is alive, in ms. */
const HEARTBEAT_MS = 20_000;
/**
 * Host API writes per pod at most, each a few in a hundred above what they have to come to by the code. In the first two a pod is given outage tolerations once in
 * its life, ten seconds after it began, where admission did not (`outages/toleration-keeper.ts`): those of the pods of `a` are counted as it is lost.
 */
const GOALS = {
  /** 1 status (not Ready), 1 tolerations; in all a handful for the MemberCluster, its Node and the stop of the others. Makes 2.03. */
  lost: 2.1,
  /**
   * 1 eviction; 1 status of the successor, as it is Ready by the first report; 1 tolerations of it, but of those of the last ten seconds; 1 deletion cost of it, as
   * in a later tier it is to go first; 1 Event on the pod, and on the workload a series: one more for eight pods (1.125). Then what goes by time, two pods
   * a second: at most one WorkloadPlacement status a second (0.5: its moves are batched), one MemberCluster status in five (0.1). Makes 5.7 less what
   * is batched further. No release and no binding: out of a lost member nothing is released, and the scheduler of the host binds.
   */
  moved: 5.8,
  /** 1 on the pod; on its workload the first ten of a series, and a patch now and then. */
  events: 1.2,
  /** 1 DELETE, once the copy has ended; the tolerations of the last ten seconds (0.1); last words of those whose copies still have some (0.2). */
  back: 1.4,
  /** Of the manager, in ms, on two cores as those of RESULTS.md, which came to 44 and 46; what is worked out for each pod must not grow with how many there are. */
  cpu: 60,
};
const WRITES = /^(?:create|update|patch|delete|deletecollection) /;
/** Heartbeats go on by themselves; reviews change nothing. */
const NO_CHANGE = / (?:leases|nodes\/status|tokenreviews|subjectaccessreviews)$/;

/** What the manager writes to the host, by what happened to the pods. Times in seconds. */
interface Loss {
  /** The member is lost, all its pods are shown as not Ready, and none is moved yet. */
  lost: RequestCounts;
  /** All of them are replaced elsewhere. */
  moved: RequestCounts;
  /** It answers again, and what was replaced is gone. */
  back: RequestCounts;
  /** From the first eviction until all successors run. */
  movingSeconds: number;
  cpuSeconds: number;
}

/** What it costs the host's API server that a member is lost, its pods are moved, and it comes back. */
export async function moves(say: Say): Promise<SuiteReport> {
  const workspace = Workspace.create({ say });
  try {
    const members = ['a', 'b'];
    const fleet = await DivisionFleet.start(workspace, new Map(members.map((name) => [name, ROOM])));
    for (const cluster of fleet.clusters) await makeNamespace(cluster, NAMESPACE);
    const done = await loseMember(fleet, say);
    const { lost, moved, back } = done;
    for (const [what, counts] of Object.entries({ lost, moved, back })) say(`${what}: ${list(counts)}`);
    return report(done);
  } finally {
    await workspace.close();
  }
}

async function loseMember(fleet: DivisionFleet, say: Say): Promise<Loss> {
  const { host, manager } = fleet;
  const pods = `/api/v1/namespaces/${NAMESPACE}/pods`;
  // Not before it is said below, so that what comes first can be counted apart.
  await host.apply([policy('1h'), deployment()]);
  const moments = await PodMoments.start(host.adminAccess, NAMESPACE);
  try {
    await moments.running(PODS, PATIENCE_MS);
    await whenIdle(manager);
    fleet.takeRequests();
    const a = clusterOf(fleet.clusters, 'a');
    const server = a.component('kube-apiserver');
    // Who was stopped with the API server does not take its nodes for dead once it is back: what that would write is the member's own.
    const controllers = a.component('kube-controller-manager');
    for (const one of [server, controllers]) one.signal('SIGSTOP');
    say('a does not answer any more');
    try {
      await until('all pods are shown as lost', async () => (await countPods(host, isUnready)) === PODS, WAIT);
      await whenIdle(manager);
      const lost = fleet.takeRequests().host;
      await host.apply([policy('15s')]);
      await until('the first is moved', async () => (await countPods(host, isGoing)) > 0, WAIT);
      const [began, cpu] = [performance.now(), manager.usage()?.cpuSeconds ?? Number.NaN];
      const moved = await moments.running(2 * PODS, PATIENCE_MS);
      await whenIdle(manager);
      const cpuSeconds = (manager.usage()?.cpuSeconds ?? Number.NaN) - cpu;
      const during = fleet.takeRequests().host;
      server.signal('SIGCONT');
      await until('its node is alive', async () => await isRenewed(a, Date.now() - HEARTBEAT_MS), WAIT);
      controllers.signal('SIGCONT');
      say('a answers again');
      await moments.gone(PODS, PATIENCE_MS);
      await whenIdle(manager);
      const back = fleet.takeRequests().host;
      return { lost, moved: during, back, movingSeconds: (moved - began) / 1000, cpuSeconds };
    } finally {
      for (const one of [server, controllers]) one.signal('SIGCONT');
    }
  } finally {
    await moments.close();
  }

  async function countPods(cluster: Cluster, is: (pod: ListedPod) => boolean): Promise<number> {
    const { items } = (await cluster.api.call('GET', pods)) as { items: ListedPod[] };
    return items.filter(is).length;
  }
}

const WAIT = { timeoutMs: PATIENCE_MS, intervalMs: 500 };

interface ListedPod {
  metadata: { deletionTimestamp?: string };
  status?: { conditions?: { type: string; status: string }[] };
}

const isGoing = ({ metadata }: ListedPod): boolean => metadata.deletionTimestamp !== undefined;
const isUnready = ({ status }: ListedPod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'False') ?? false;

function clusterOf(clusters: readonly Cluster[], name: string): Cluster {
  const found = clusters.find((cluster) => cluster.name === name);
  if (found === undefined) throw new Error(`there is no cluster ${name}`);
  return found;
}

/** Whether all of its nodes have shown since then, in ms, that they are alive. */
async function isRenewed(cluster: Cluster, since: number): Promise<boolean> {
  const { items } = (await cluster.api.call(
    'GET',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
  )) as {
    items: { spec: { renewTime?: string } }[];
  };
  return items.length > 0 && items.every(({ spec }) => Date.parse(spec.renewTime ?? '') >= since);
}

/** First a, then b. `after`: how long a has to be lost. */
function policy(after: string): object {
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: NAME, namespace: NAMESPACE },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      placement: { clusterAffinity: { clusterNames: ['a'], overflowAffinities: [{ clusterNames: ['b'] }] } },
      failover: { onMemberLost: { after } },
    },
  };
}

function deployment(): object {
  const labels = { app: NAME };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME, namespace: NAMESPACE },
    spec: {
      replicas: PODS,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }],
          terminationGracePeriodSeconds: 1,
          containers: [
            {
              name: 'main',
              image: 'registry.example/app:v1',
              resources: { requests: { cpu: '10m', [SEAT]: '1' }, limits: { [SEAT]: '1' } },
            },
          ],
        },
      },
    },
  };
}

function writes(counts: RequestCounts): [key: string, count: number][] {
  return [...counts].filter(([key]) => WRITES.test(key) && !NO_CHANGE.test(key));
}

function report({ lost, moved, back, movingSeconds, cpuSeconds }: Loss): SuiteReport {
  const name = (text: string): string => `${String(PODS)} pods of a lost member: ${text}`;
  const perPod = (counts: RequestCounts, wanted: (key: string) => boolean = () => true): number =>
    writes(counts).reduce((sum, [key, count]) => sum + (wanted(key) ? count : 0), 0) / PODS;
  const calls = (text: string, value: number, goal: number | null = null): Measurement =>
    measured(name(text), value, 'calls', 'lower', goal);
  const only =
    (...keys: string[]) =>
    (key: string): boolean =>
      keys.includes(key);
  return {
    suite: 'moves',
    failures: [],
    measurements: [
      calls('host API writes per pod when it is lost', perPod(lost), GOALS.lost),
      calls('host API writes per moved pod', perPod(moved), GOALS.moved),
      calls('evictions per moved pod', perPod(moved, only('create pods/eviction')), 1),
      calls('patch pods/status per moved pod', perPod(moved, only('patch pods/status')), 2),
      calls('Events written per moved pod', perPod(moved, only('create events', 'patch events')), GOALS.events),
      calls('host API writes per moved pod when it is back', perPod(back), GOALS.back),
      measured(name('moved'), PODS / movingSeconds, 'pods/s', 'higher', MOVES_PER_SECOND * 0.9),
      measured(name('CPU per moved pod'), (cpuSeconds / PODS) * 1000, 'CPU-ms', 'lower', GOALS.cpu),
    ],
    notes: [
      `A Deployment of ${String(PODS)} replicas in member a, whose API server and controllers are stopped (SIGSTOP) until all of them are replaced in b, at ` +
        `${String(MOVES_PER_SECOND)} a second as configured by default. Counted is what the manager and its virtual nodes write to the host; heartbeats and ` +
        'reviews are left out, and what controllers and the scheduler of the host write is their own. What each write is for is listed in bench/moves.ts.',
      `All writes. Lost: ${list(lost)}. Moved: ${list(moved)}. Back: ${list(back)}.`,
    ],
  };
}

function list(counts: RequestCounts): string {
  const found = writes(counts).sort(([, a], [, b]) => b - a);
  return found.map(([key, count]) => `${key} ${String(count)}`).join(', ') || 'none';
}
