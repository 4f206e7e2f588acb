import { ensureBinaries } from './binaries.ts';
import { startCluster, type Cluster } from './cluster.ts';
import { imageArchive } from './images.ts';
import { startKubelet } from './kubelet.ts';
import { startKwok } from './kwok.ts';
import { machineNetwork } from './machine-network.ts';
import type { Say } from './progress.ts';
import { canRunKubelets, installKubeletPackages, type CanRun } from './system-packages.ts';
import type { Workspace } from './workspace.ts';

export interface MemberPlan {
  name: string;
  kind: 'kubelet' | 'kwok';
  /** How many real or played nodes. */
  nodes: number;
}

/** `east=kubelet:2` or `west=kwok`. */
export function parseMember(text: string): MemberPlan {
  const match = /^([a-z0-9-]+)=(kubelet|kwok)(?::(\d+))?$/.exec(text);
  if (match === null) throw new Error(`not a member: ${text} (NAME=kubelet:NODES or NAME=kwok:NODES)`);
  const [, name = '', kind, nodes = '1'] = match;
  return { name, kind: kind === 'kubelet' ? 'kubelet' : 'kwok', nodes: Number(nodes) };
}

/** The host of a topology. Default: no nodes of its own. */
export interface HostPlan {
  /** One node of this name, real where the machine can run kubelets. */
  node?: string;
  /** How many pods the node takes. Default 110. */
  maxPods?: number;
  /** Port on this machine where its scheduler asks Spillway, see ClusterOptions. */
  extenderPort?: number;
}

export interface Topology {
  host: Cluster;
  /** In the order of the plans; `plan` tells what each became. */
  members: { cluster: Cluster; plan: MemberPlan }[];
}

/** Everything that real kubelets need on this machine; else why they cannot run, in words for its owner. */
export async function prepareKubelets(
  say: Say,
  how: {
    can: () => Promise<CanRun>;
    get: (say: Say) => Promise<void>;
  } = { can: canRunKubelets, get: getKubeletParts },
): Promise<CanRun> {
  const can = await how.can();
  if (!can.ok) return can;
  try {
    await how.get(say);
    return can;
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

async function getKubeletParts(say: Say): Promise<void> {
  await installKubeletPackages(say);
  await ensureBinaries(['kubelet', 'kube-proxy', 'coredns'], { say });
  await imageArchive(say);
}

/** What the members become on a machine like this: kwok clusters where real kubelets cannot run, and it says so. */
export function plansFor(plans: readonly MemberPlan[], can: CanRun, say: Say): MemberPlan[] {
  if (can.ok) return [...plans];
  return plans.map((plan) => {
    if (plan.kind === 'kubelet') say(`member ${plan.name} is simulated by kwok: ${can.reason}`);
    return { ...plan, kind: 'kwok' };
  });
}

/**
 * A host and its members. Where real kubelets cannot run, kwok plays their nodes.
 * Host and members differ in service ranges, as real clusters often do.
 */
export async function startTopology(
  workspace: Workspace,
  plans: readonly MemberPlan[],
  can: CanRun,
  hostPlan: HostPlan = {},
): Promise<Topology> {
  const real = plansFor(plans, can, workspace.say);
  const [host, ...members] = await Promise.all([
    startHost(workspace, hostPlan, can),
    ...real.map(async (plan, index) => ({ cluster: await startMember(workspace, plan, index), plan })),
  ]);
  return { host, members };
}

async function startMember(workspace: Workspace, plan: MemberPlan, index: number): Promise<Cluster> {
  const { name, nodes } = plan;
  const serviceCidr = `10.${97 + index}.0.0/16`;
  if (plan.kind === 'kwok') {
    const cluster = await startCluster(workspace, { name, serviceCidr });
    await startKwok(cluster, { nodes, prefix: `${name}-n`, simulate: true, usage: true });
    return cluster;
  }
  const cluster = await startCluster(workspace, { name, serviceCidr, ...(await reachableFromMachines(workspace)) });
  const names = Array.from({ length: nodes }, (_, node) => `${name}-n${node}`);
  await Promise.all(names.map((node) => startKubelet(cluster, { node, services: true })));
  return cluster;
}

async function startHost(
  workspace: Workspace,
  { node, maxPods = 110, extenderPort }: HostPlan,
  can: CanRun,
): Promise<Cluster> {
  const cluster = await startCluster(workspace, {
    name: 'host',
    ...(node !== undefined && can.ok ? await reachableFromMachines(workspace) : {}),
    ...(extenderPort === undefined ? {} : { extenderPort }),
  });
  if (node === undefined) return cluster;
  if (can.ok) await startKubelet(cluster, { node, maxPods, services: true });
  else await startKwok(cluster, { nodes: 1, prefix: node, pods: String(maxPods), simulate: true, usage: true });
  return cluster;
}

async function reachableFromMachines(workspace: Workspace): Promise<{ bindAddress: string }> {
  return { bindAddress: (await machineNetwork(workspace)).gateway };
}
