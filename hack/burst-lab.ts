import { freePort } from './addresses.ts';
import { startCluster, type Cluster } from './cluster.ts';
import { QUICK_AUTOSCALING } from './control-plane.ts';
import { startKwok, type KwokOptions } from './kwok.ts';
import { manifest } from './manifest.ts';
import { startMetricsServer } from './metrics-server.ts';
import { addMember, installSpillway, startSpillway, waitForNode, type Spillway } from './spillway.ts';
import type { Workspace } from './workspace.ts';

/** A host that is full with ten pods of one core each, and members `a` and `b` that help out. */
export interface BurstLab {
  host: Cluster;
  members: readonly Cluster[];
  spillway: Spillway;
}

const HOST_NODES = { nodes: 2, cpu: '5', prefix: 'local', usage: true };
interface MemberPlan {
  name: string;
  nodes: KwokOptions;
}
const MEMBERS: readonly MemberPlan[] = [
  { name: 'a', nodes: { nodes: 1, cpu: '8', prefix: 'a-n', usage: true } },
  { name: 'b', nodes: { nodes: 2, cpu: '8', prefix: 'b-n', usage: true } },
];

/** So that a member that does not answer is one within seconds. */
const QUICK_PROBE = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 5 };

/** Pods that leave a lost member, per second: slowly enough that three of them show the pace to a tenth, also where the machine has much else to do. */
export const PACE = 0.25;

/** As often as metrics-server agrees to measure, in seconds. */
const MEASURED_EVERY = 10;

/**
 * The clusters of docs/guides/burst-in-ten-minutes.md: a host with two nodes, an unmodified metrics-server, Spillway as the
 * extender of its scheduler, the samples of the guide, and two members. All nodes are played by kwok and measure what pods say
 * that they use.
 */
export async function startBurstLab(workspace: Workspace): Promise<BurstLab> {
  const [{ host, spillway }, ...members] = await Promise.all([
    startHost(workspace),
    ...MEMBERS.map(async (plan, index) => await startMember(workspace, plan, index)),
  ]);
  for (const member of members) await addMember(host, member, { spec: { probe: QUICK_PROBE } });
  await Promise.all(members.map(({ name }) => waitForNode(host, name)));
  return { host, members, spillway };
}

async function startHost(workspace: Workspace): Promise<Pick<BurstLab, 'host' | 'spillway'>> {
  const extenderPort = await freePort();
  const host = await startCluster(workspace, {
    name: 'host',
    extenderPort,
    controllerManagerFlags: QUICK_AUTOSCALING,
  });
  await Promise.all([installSpillway(host), startKwok(host, HOST_NODES)]);
  const files = [
    'admission/pod-defaults.yaml',
    'scheduler/descheduler.yaml',
    'samples/burst/workload.yaml',
    'samples/burst/policy.yaml',
  ];
  for (const file of files) await host.apply(manifest(file));
  const [spillway] = await Promise.all([
    startSpillway(host, { extenderPort, configuration: { descheduler: { movesPerSecondPerMember: PACE } } }),
    startMetricsServer(host, { everySeconds: MEASURED_EVERY }),
  ]);
  return { host, spillway };
}

async function startMember(workspace: Workspace, plan: MemberPlan, index: number): Promise<Cluster> {
  // Its own controllers do not take a pause of the API server for the end of its nodes.
  const controllerManagerFlags = { 'node-monitor-grace-period': '30m' };
  const serviceCidr = `10.${97 + index}.0.0/16`;
  const member = await startCluster(workspace, { name: plan.name, serviceCidr, controllerManagerFlags });
  await startKwok(member, plan.nodes);
  await member.apply(manifest('member/node-metrics.yaml'));
  return member;
}
