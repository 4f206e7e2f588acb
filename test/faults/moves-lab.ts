import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import type { AuditEvent } from '../../hack/audit-log.ts';
import { type Cluster, startCluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { manifest } from '../../hack/manifest.ts';
import { serviceAccountKubeconfig } from '../../hack/service-account.ts';
import {
  installSpillway,
  type Spillway,
  startSpillway,
  SYSTEM_NAMESPACE,
  waitForNode,
  waitReady,
} from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { EXTENDER_RESOURCE, RELEASED_ANNOTATION } from '../../src/api/marks.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { controllerOf } from '../../src/kube/owner-references.ts';
import type { FaultProxy, ProxiedRequest } from '../fixtures/fault-proxy.ts';
import {
  describeWrite,
  type Fields,
  isReady,
  kubectl,
  newNamespace,
  pod,
  podsOf,
  read,
  writesOfAll,
} from '../fixtures/live-pods.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { burstSpec, deployment, policy, policyInUse, settled, whereAre } from '../fixtures/scheduling.ts';
import { proxyOfHost } from './lab.ts';

/** Members between which pods are moved. */
export const NAMES = ['east', 'west'] as const;
/** It counts among the members that answer or do not, and has one node, for pods that are to lose their member. */
export const THIRD = 'north';

/** A readiness gate: the test says when a pod is Ready. */
const GATE = 'example.com/go';
const CLUSTERS = [...NAMES, THIRD] as const;

export const isReleased = ({ metadata }: Pod): boolean => metadata.annotations?.[RELEASED_ANNOTATION] !== undefined;
export const isGoing = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

/**
 * Pods of a Deployment leave a member that answers, and another one is Ready in its place before. The program reaches the host and the
 * members through proxies only: they cut lines, and hold the request at which it is killed.
 */
export class MovesLab {
  readonly host: Cluster;
  readonly spillway: Spillway;
  readonly proxies: Readonly<Record<string, FaultProxy>>;
  readonly #workspace: Workspace;
  readonly #members: ReadonlyMap<string, Cluster>;

  private constructor(
    workspace: Workspace,
    host: Cluster,
    members: ReadonlyMap<string, Cluster>,
    spillway: Spillway,
    proxies: Readonly<Record<string, FaultProxy>>,
  ) {
    this.#workspace = workspace;
    this.host = host;
    this.#members = members;
    this.spillway = spillway;
    this.proxies = proxies;
  }

  static async start(): Promise<MovesLab> {
    const workspace = Workspace.create();
    const proxies: Record<string, FaultProxy> = {};
    try {
      const extenderPort = await freePort();
      const started = CLUSTERS.map(async (name, index): Promise<[string, Cluster]> => {
        const serviceCidr = `10.${String(120 + index)}.0.0/16`;
        const member = await startCluster(workspace, { name, audit: true, serviceCidr });
        await startKwok(member, { nodes: name === THIRD ? 1 : 2, cpu: '8', prefix: name });
        return [name, member];
      });
      const [host, ...found] = await Promise.all([
        startCluster(workspace, { name: 'host', audit: true, extenderPort }),
        ...started,
      ]);
      await installSpillway(host);
      await host.apply(manifest('scheduler/descheduler.yaml'));
      await host.apply(manifest('scheduler/extender-pods.yaml'));
      await until('pods get the mark', async () => await areMarked(host));
      const toHost = await proxyOfHost(host);
      proxies['host'] = toHost;
      const kubeconfig = join(host.dir, 'manager.kubeconfig');
      const access = await serviceAccountKubeconfig(host, SYSTEM_NAMESPACE, 'spillway-manager');
      writeFileSync(kubeconfig, access.replaceAll(host.server, toHost.url), { mode: 0o600 });
      const args = ['--host-identity', 'NodeCertificate'];
      const spillway = await startSpillway(host, { kubeconfig, extenderPort, args });
      // A line that is cut is noticed at once, and one that is slow, as all are on a busy machine, is none that is cut.
      const probe = { periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 3, podsUnreadyAfterSeconds: 60 };
      for (const [name, member] of found) proxies[name] = await addProxiedMember(host, member, { spec: { probe } });
      await Promise.all(CLUSTERS.map((name) => waitForNode(host, name, 180_000)));
      return new MovesLab(workspace, host, new Map(found), spillway, proxies);
    } catch (error) {
      await Promise.all(Object.values(proxies).map((proxy) => proxy.close()));
      await workspace.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.proxies).map((proxy) => proxy.close()));
    await this.#workspace.close();
  }

  memberOf(name: string): Cluster {
    const found = this.#members.get(name);
    if (found === undefined) throw new Error(`there is no member ${name}`);
    return found;
  }

  /** Pods are to leave east, or may stay there. */
  async taint(on: boolean): Promise<void> {
    const clusterTaints = on ? [{ key: 'drained', effect: 'NoExecute' }] : null;
    await this.host.api.call('PATCH', EAST, { spec: { clusterTaints } });
  }

  /** As if nothing had been broken yet: all members answer, and the program knows that the taint is gone. */
  async calm(): Promise<void> {
    for (const proxy of Object.values(this.proxies)) proxy.clear();
    await this.taint(false);
    const isWell = async (name: string): Promise<boolean> => {
      const member = await read<MemberCluster>(this.host, `${MEMBERS}/${name}`);
      const ready = member?.status?.conditions?.find(({ type }) => type === 'Ready');
      return member?.status?.observedGeneration === member?.metadata.generation && ready?.status === 'True';
    };
    await Promise.all(
      CLUSTERS.map(async (name) => await until(`${name} is well`, () => isWell(name), { timeoutMs: 120_000 })),
    );
  }

  /** @returns what has come to each proxy since this call */
  seenFromNow(): () => Record<string, readonly ProxiedRequest[]> {
    const lines = Object.entries(this.proxies).map(([side, { seen }]) => ({ side, seen, from: seen.length }));
    return () => Object.fromEntries(lines.map(({ side, seen, from }) => [side, seen.slice(from)]));
  }

  cut(side: string): void {
    this.proxies[side]?.inject({ kind: 'reset', when: 'before' });
    this.proxies[side]?.resetConnections();
  }

  async crash(): Promise<void> {
    await this.spillway.process.stop('SIGKILL');
    this.spillway.process.restart();
    await waitReady(this.spillway);
  }

  /** One cluster first, then another one. */
  async prepare(namespace: string, failover: Fields = {}, home = 'east', placement: Fields = {}): Promise<void> {
    await newNamespace(this.host, namespace);
    await this.rule(namespace, failover, [home, 'west'], placement);
  }

  async rule(
    namespace: string,
    failover: Fields,
    [first, second]: readonly [string, string],
    placement: Fields = {},
  ): Promise<void> {
    const clusterAffinity = { clusterNames: [first], overflowAffinities: [{ clusterNames: [second] }] };
    const { spec, ...rest } = policy(namespace, 'all', { clusterAffinity, ...placement });
    await this.host.apply([{ ...rest, spec: { ...(spec as Fields), failover } }]);
    await policyInUse(this.host, namespace, 'all');
  }

  /** Pods that wait for {@link openAll}. */
  async ungated(namespace: string): Promise<Pod[]> {
    const pods = await podsOf(this.host, namespace);
    return pods.filter((pod) => !isReady(pod) && pod.spec.nodeName !== undefined && !isGoing(pod));
  }

  /** From now on those that come may be Ready. */
  async openAll(namespace: string): Promise<void> {
    for (const { metadata } of await this.ungated(namespace)) {
      const status = { conditions: [{ type: GATE, status: 'True', lastTransitionTime: new Date().toISOString() }] };
      const how = ['--subresource=status', '--type=strategic', '-p', JSON.stringify({ status })];
      await kubectl(this.host, ['patch', 'pod', metadata.name, '-n', namespace, ...how]);
    }
  }

  /** One pod that serves in east, and was let be Ready, as none is that comes after it until {@link openAll}. */
  async serves(namespace: string): Promise<Pod> {
    const readinessGates = [{ conditionType: GATE }];
    await this.host.apply([deployment(namespace, 'web', 1, '100m', {}, { readinessGates })]);
    await until('it is bound', async () => (await this.ungated(namespace)).length === 1);
    await this.openAll(namespace);
    const [only] = await settled(this.host, namespace, 'web', { east: 1 });
    if (only === undefined) throw new Error(`${namespace}: no pod is there`);
    return only;
  }

  /** One pod runs there, of its ReplicaSet, which counts it, with its copy, and nothing else is anywhere. @throws how it is instead */
  async isAlone(namespace: string, cluster: string): Promise<Pod> {
    const pods = await podsOf(this.host, namespace);
    const copies = await Promise.all(
      CLUSTERS.map(async (name) => [name, await podsOf(this.memberOf(name), namespace)] as const),
    );
    const [only, ...others] = pods;
    const where = copies.flatMap(([name, all]) => all.map(({ metadata }) => [name, metadata.labels?.[UID_LABEL]]));
    const [copy, ...more] = where;
    const isRight =
      only?.spec.nodeName === cluster && isReady(only) && !isReleased(only) && !isGoing(only) && others.length === 0;
    const isCopied = copy?.[0] === cluster && copy[1] === only?.metadata.uid && more.length === 0;
    if (only !== undefined && isRight && isCopied && (await this.#counts(namespace, only))) return only;
    const counts = `${JSON.stringify(whereAre(pods))}, released ${String(pods.filter(isReleased).length)}`;
    throw new Error(`${namespace}: ${counts}; copies in ${where.map(([name]) => name).join(', ')}`);
  }

  /** Its ReplicaSet has this one pod, and knows it. */
  async #counts(namespace: string, of: Pod): Promise<boolean> {
    const { name = '', uid } = controllerOf(of) ?? {};
    const path = `/apis/apps/v1/namespaces/${namespace}/replicasets/${name}`;
    const set = await read<KubeObject & { status?: { replicas?: number; readyReplicas?: number } }>(this.host, path);
    return set?.metadata.uid === uid && set?.status?.replicas === 1 && set.status.readyReplicas === 1;
  }

  /** Requests about pods that were carried out. */
  done(cluster: Cluster, namespace: string, verb: string, subresource?: string): AuditEvent[] {
    return writesOfAll(cluster).filter(
      (event) =>
        event.verb === verb &&
        event.objectRef?.resource === 'pods' &&
        event.objectRef.subresource === subresource &&
        event.objectRef.namespace === namespace &&
        (event.responseStatus?.code ?? 500) < 300,
    );
  }

  evictions(namespace: string): AuditEvent[] {
    return this.done(this.host, namespace, 'create', 'eviction');
  }

  /** One pod was made in the place of another one, no copy was made twice, and so many were evicted. */
  expectMovedOnce(namespace: string, [from, to] = ['east', 'west'], evictions = 1): void {
    const evicted = this.evictions(namespace).map(({ objectRef }) => objectRef?.name);
    const made = [from, to].map((name) =>
      this.done(this.memberOf(name), namespace, 'create').map(({ objectRef }) => objectRef?.name),
    );
    const message = `${namespace}: evicted ${evicted.join()}, made ${JSON.stringify(made)}\n${this.told(namespace)}`;
    expect([evicted.length, made.map(({ length }) => length)], message).toEqual([evictions, [1, 1]]);
    expect(this.done(this.host, namespace, 'create'), message).toHaveLength(2);
  }

  /** All writes of a namespace in the host, in words. */
  told(namespace: string): string {
    return writesOfAll(this.host)
      .filter(({ objectRef }) => objectRef?.namespace === namespace)
      .map((event) => `${event.requestReceivedTimestamp} ${event.user.username} ${describeWrite(event)}`)
      .join('\n');
  }
}

const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';
const EAST = `${MEMBERS}/east`;
const UID_LABEL = 'spillway.dev/uid';

/**
 * What comes while the program is killed waits for it. Without the mark the scheduler goes on alone, which knows no cluster taints:
 * the next pod may be bound to the member that the first one leaves, and has to leave it as well.
 */
async function areMarked(host: Cluster): Promise<boolean> {
  const input = JSON.stringify(pod('probe', 'default', burstSpec('1')));
  const made = await kubectl(host, ['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input });
  return made.includes(EXTENDER_RESOURCE);
}
