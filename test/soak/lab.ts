import { readFileSync } from 'node:fs';
import { AuditTally } from '../../bench/audit-tally.ts';
import { freePort } from '../../hack/addresses.ts';
import { Api } from '../../hack/api-access.ts';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { QUICK_AUTOSCALING } from '../../hack/control-plane.ts';
import { jobsThatRun } from '../fixtures/jobs-stage.ts';
import { startKwok } from '../../hack/kwok.ts';
import { startMetricsServer } from '../../hack/metrics-server.ts';
import { installSpillway, startSpillway, waitForNode, type Spillway } from '../../hack/spillway.ts';
import type { Workspace } from '../../hack/workspace.ts';
import { MANAGER } from '../cluster/guard-harness.ts';
import type { FaultProxy } from '../fixtures/fault-proxy.ts';
import { PRIORITY_CLASSES } from '../fixtures/preemption.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { LOCAL_PREFIX } from '../fixtures/scheduling.ts';

/** A dedicated pool of every member, by the taint of its nodes. */
export const GPU = { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' } as const;
export const SPOT = { key: 'example.com/spot', value: 'true', effect: 'NoSchedule' } as const;
export const MEMBERS = ['east', 'north', 'west'] as const;
/**
 * Workloads that are divided by room ask for a resource each that nobody else takes: what there is of it is all the room that they had when
 * they came, however full the clusters are.
 */
export const DIVIDED_BY_ROOM = 20;
export const roomResource = (index: number): string => `example.com/room-${index}`;
const TENANT = 'tenant';
export const CHEATS = 'cheat';

export interface Lab {
  host: Cluster;
  members: ReadonlyMap<string, Cluster>;
  /** The way to each member, which can be cut. */
  ways: ReadonlyMap<string, FaultProxy>;
  spillway: Spillway;
  /** Requests of Spillway at the host, its virtual nodes included. */
  audit: AuditTally;
  users: readonly string[];
  /** May do everything with pods, and with what makes them, in namespace {@link CHEATS}. */
  tenant: Api;
}

/** How long pods of Jobs run. */
const JOBS_RUN = jobsThatRun({ durationMilliseconds: 20_000, jitterDurationMilliseconds: 60_000 });

/** For the start of each cluster, on a machine with much else to do. */
const START_MS = 300_000;

const manifest = (file: string): string => readFileSync(new URL(`../../manifests/${file}`, import.meta.url), 'utf8');

/** Owners of ReplicaSets that Spillway does not follow, as Argo's Rollouts are. */
const ROLLOUTS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'rollouts.example.com' },
  spec: {
    group: 'example.com',
    names: { kind: 'Rollout', plural: 'rollouts', singular: 'rollout' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

/** What each plain node of a cluster has of these resources: from one to four, so that all of them together take any workload. */
function roomsOn(cluster: number): Record<string, string> {
  const indexes = Array.from({ length: DIVIDED_BY_ROOM }, (_, index) => index);
  const amount = (index: number): number => 1 + ((index * (cluster + 2) + cluster) % 4);
  return Object.fromEntries(indexes.map((index) => [roomResource(index), String(amount(index))]));
}

/** A host with autoscaling, and three members with a pool of plain nodes, one of GPU nodes and one of spot nodes each. */
export async function startLab(workspace: Workspace): Promise<Lab> {
  const nodes = MEMBERS.flatMap((name) => ['general', 'gpu', 'spot'].map((pool) => `${name}-${pool}`));
  const users = [MANAGER, ...nodes.map((name) => `system:node:${name}`)];
  const audit = new AuditTally(workspace.dir, 'host', users);
  const extenderPort = await freePort();
  const started = MEMBERS.map(async (name, index) => await startMember(workspace, name, index));
  const [host, ...members] = await Promise.all([
    startCluster(workspace, {
      name: 'host',
      timeoutMs: START_MS,
      extenderPort,
      // What is bound without an answer, on a machine with much else to do, would be in the wrong place for good.
      extenderTimeout: '30s',
      apiServerFlags: audit.flags,
      controllerManagerFlags: QUICK_AUTOSCALING,
    }),
    ...started,
  ]);
  await installSpillway(host);
  await startKwok(host, {
    nodes: 3,
    cpu: '8',
    prefix: LOCAL_PREFIX,
    extended: roomsOn(MEMBERS.length),
    usage: true,
    stages: [JOBS_RUN],
  });
  for (const file of [
    'admission/pod-defaults.yaml',
    'admission/validation.yaml',
    'scheduler/gangs.yaml',
    'scheduler/descheduler.yaml',
    'scheduler/extender-pods.yaml',
  ])
    await host.apply(manifest(file));
  await host.apply([...PRIORITY_CLASSES, ROLLOUTS, ...rightsOfTenant()]);
  const spillway = await startSpillway(host, { extenderPort, logLevel: 'debug', readyMs: START_MS });
  const ways = new Map<string, FaultProxy>();
  const probe = { periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 3 };
  const virtualNodes = [{ name: 'general' }, { name: 'gpu', taints: [GPU] }, { name: 'spot', taints: [SPOT] }];
  for (const member of members) {
    ways.set(member.name, await addProxiedMember(host, member, { spec: { probe, virtualNodes } }));
  }
  for (const name of nodes) await waitForNode(host, name, 120_000);
  await startMetricsServer(host, { everySeconds: 10 });
  const { server, ca } = host.adminAccess;
  return {
    host,
    members: new Map(members.map((member) => [member.name, member])),
    ways,
    spillway,
    audit,
    users,
    tenant: new Api(server, ca, await host.issueClient(TENANT)),
  };
}

async function startMember(workspace: Workspace, name: string, index: number): Promise<Cluster> {
  const member = await startCluster(workspace, { name, serviceCidr: `10.${100 + index}.0.0/16`, timeoutMs: START_MS });
  const common = { nodes: 1, cpu: '16', prefix: `${name}-n` };
  const kwok = await startKwok(member, {
    ...common,
    nodes: 2,
    extended: roomsOn(index),
    usage: true,
    stages: [JOBS_RUN],
  });
  await kwok.addNodes({ ...common, prefix: `${name}-gpu`, extended: { [GPU.key]: '8' }, taints: [GPU] });
  await kwok.addNodes({ ...common, prefix: `${name}-spot`, taints: [SPOT] });
  await member.apply(manifest('member/node-metrics.yaml'));
  return member;
}

function rightsOfTenant(): object[] {
  const rbac = 'rbac.authorization.k8s.io';
  const metadata = { name: TENANT, namespace: CHEATS };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: CHEATS, labels: { 'spillway.dev/burst': 'policies' } } },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata,
      rules: [
        { apiGroups: [''], resources: ['pods', 'pods/status'], verbs: ['*'] },
        { apiGroups: ['apps', 'batch'], resources: ['*'], verbs: ['*'] },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'Role', name: TENANT },
      subjects: [{ apiGroup: rbac, kind: 'User', name: TENANT }],
    },
    // A slip of a tenant fills no cluster.
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'pods', namespace: CHEATS },
      spec: { hard: { pods: '20' } },
    },
  ];
}
