import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../hack/addresses.ts';
import { startCluster, type Cluster } from '../hack/cluster.ts';
import { startKwok, type Kwok } from '../hack/kwok.ts';
import type { ManagedProcess } from '../hack/managed-process.ts';
import type { Usage } from '../hack/process-table.ts';
import { repositoryRoot } from '../hack/repository.ts';
import { userOf } from '../hack/service-account.ts';
import { addMember, installSpillway, startSpillway, SYSTEM_NAMESPACE, waitForNode } from '../hack/spillway.ts';
import type { Workspace } from '../hack/workspace.ts';
import { AuditTally, type RequestCounts } from './audit-tally.ts';

/** The manager's name in the host: policies let nobody else write its marks. */
const MANAGER = userOf({ namespace: SYSTEM_NAMESPACE, name: 'spillway-manager' });
/** Its name in members. */
const USER = 'bench-spillway';
/** Clusters that are started at the same time. */
const AT_ONCE = 2;
/** For each of them: the last ones start beside all the others. */
const START_MS = 180_000;

/** A resource of which every member has so much of its own, to give it a known room. */
export const SEAT = 'bench.example/seat';

interface Member {
  cluster: Cluster;
  kwok: Kwok;
  audit: AuditTally;
}

/**
 * A host whose scheduler asks Spillway, as the guide sets it up, and members that are whole control planes of their own, each
 * with one node that kwok plays.
 */
export class DivisionFleet {
  readonly host: Cluster;
  readonly manager: ManagedProcess;
  readonly #members: readonly Member[];
  readonly #audit: AuditTally;
  readonly #users: readonly string[];

  private constructor(host: Cluster, manager: ManagedProcess, members: readonly Member[], audit: AuditTally) {
    this.host = host;
    this.manager = manager;
    this.#members = members;
    this.#audit = audit;
    this.#users = usersOf(members.map(({ cluster }) => cluster.name));
  }

  /** `seats`: how much each member has of {@link SEAT}, by name. */
  static async start(workspace: Workspace, seats: ReadonlyMap<string, number>): Promise<DivisionFleet> {
    const audit = new AuditTally(workspace.dir, 'host', usersOf([...seats.keys()]));
    const extenderPort = await freePort();
    const host = await startCluster(workspace, { name: 'host', extenderPort, apiServerFlags: audit.flags });
    await installSpillway(host);
    const pods = readFileSync(join(repositoryRoot(), 'manifests/scheduler/extender-pods.yaml'), 'utf8');
    await host.apply(pods);
    const members: Member[] = [];
    const waiting = [...seats.entries()].entries();
    const worker = async (): Promise<void> => {
      for (const [index, [name, count]] of waiting) {
        const member = await startMember(workspace, name, index, count);
        await addMember(host, member.cluster, { kubeconfig: await kubeconfigFor(member.cluster, USER) });
        members.push(member);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    const kubeconfig = await kubeconfigFor(host, MANAGER);
    const { process } = await startSpillway(host, { kubeconfig, extenderPort });
    // One after the other: each question is a process of its own.
    for (const name of seats.keys()) await waitForNode(host, name, 180_000);
    return new DivisionFleet(host, process, members, audit);
  }

  get clusters(): Cluster[] {
    return [this.host, ...this.#members.map(({ cluster }) => cluster)];
  }

  /** Of every process but this one. */
  *usage(): Iterable<Usage | undefined> {
    yield this.manager.usage();
    for (const cluster of this.clusters) yield* cluster.usage().values();
    for (const { kwok } of this.#members) yield kwok.process.usage();
  }

  /** The manager's requests since the last call; those at all members are one sum. */
  takeRequests(): { host: RequestCounts; members: RequestCounts } {
    const members: RequestCounts = new Map();
    for (const { audit } of this.#members) {
      for (const [key, count] of audit.take([USER])) members.set(key, (members.get(key) ?? 0) + count);
    }
    return { host: this.#audit.take(this.#users), members };
  }
}

/** The manager itself, and its virtual nodes. */
function usersOf(members: readonly string[]): string[] {
  return [MANAGER, ...members.map((name) => `system:node:${name}`)];
}

async function startMember(workspace: Workspace, name: string, index: number, seats: number): Promise<Member> {
  const audit = new AuditTally(workspace.dir, name, [USER]);
  const serviceCidr = `10.${100 + index}.0.0/16`;
  const cluster = await startCluster(workspace, {
    name,
    serviceCidr,
    apiServerFlags: audit.flags,
    timeoutMs: START_MS,
  });
  const kwok = await startKwok(cluster, {
    nodes: 1,
    prefix: `${name}-n`,
    cpu: '1000',
    pods: '1000',
    extended: { [SEAT]: String(seats) },
  });
  return { cluster, kwok, audit };
}

/** A file with the identity that the audit logs show. */
async function kubeconfigFor(cluster: Cluster, user: string): Promise<string> {
  const file = join(cluster.dir, 'bench.kubeconfig');
  writeFileSync(file, await cluster.kubeconfigFor(user, ['system:masters']), { mode: 0o600 });
  return file;
}
