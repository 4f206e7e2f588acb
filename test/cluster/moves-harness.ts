import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { RELEASED_ANNOTATION } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { type Fields, isReady, kubectl, newNamespace, podsOf } from '../fixtures/live-pods.ts';
import { deployment, policy, policyInUse, settled } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const MANAGER = 'system:serviceaccount:spillway-system:spillway-manager';
/** A readiness gate: the test says when a pod is Ready. */
const GATE = 'example.com/go';

export const isReleased = ({ metadata }: Pod): boolean => metadata.annotations?.[RELEASED_ANNOTATION] !== undefined;
export const isGoing = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

/** Members east and west of two nodes each, and a Deployment `web` that leaves east: a namespace for each test. */
export class MovesHarness {
  readonly topology: Topology;
  readonly host: Cluster;
  readonly #prefix: string;
  #namespace = '';
  #count = 0;

  private constructor(topology: Topology, prefix: string) {
    this.topology = topology;
    this.host = topology.host;
    this.#prefix = prefix;
  }

  /** Namespaces are called `prefix`-1 and so on. */
  static async start(prefix: string): Promise<MovesHarness> {
    const topology = await startTopology({
      extender: true,
      // Else each pod is written to once more, ten seconds after it is bound.
      spillway: { configuration: { outages: { toleration: 'Keep' } } },
      members: ['east', 'west'].map((name) => ({ name, kwok: { nodes: 2, cpu: '8' } })),
    });
    const manifest = new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url);
    await topology.host.apply(readFileSync(manifest, 'utf8'));
    return new MovesHarness(topology, prefix);
  }

  /** The program must have logged no error. */
  async close(): Promise<void> {
    const errors = errorsOf(this.topology.spillway);
    await this.topology.close();
    expect(errors).toEqual([]);
  }

  /** @returns the namespace of the next test */
  async begin(): Promise<string> {
    this.#count += 1;
    this.#namespace = await newNamespace(this.host, `${this.#prefix}-${String(this.#count)}`);
    return this.#namespace;
  }

  /** The test makes its namespace itself. */
  inNamespace(namespace: string): string {
    this.#namespace = namespace;
    return namespace;
  }

  async end(): Promise<void> {
    await this.taint(false);
    await kubectl(this.host, ['delete', 'namespace', this.#namespace, '--wait=false']);
  }

  async taint(on: boolean): Promise<void> {
    const clusterTaints = on ? [{ key: 'drained', effect: 'NoExecute' }] : null;
    await this.host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { clusterTaints } });
  }

  /** East first, then west. */
  rules(cluster: Fields = {}): Fields {
    const placement = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
    const { spec, ...rest } = policy(this.#namespace, 'all', placement);
    return { ...rest, spec: { ...(spec as Fields), failover: { cluster } } };
  }

  /** Policies that schedulers know. */
  async inUse(...policies: Fields[]): Promise<void> {
    await this.host.apply(policies);
    await policyInUse(this.host, this.#namespace, 'all');
  }

  async open({ metadata: { name } }: Pod): Promise<void> {
    const status = { conditions: [{ type: GATE, status: 'True', lastTransitionTime: new Date().toISOString() }] };
    const how = ['--subresource=status', '--type=strategic', '-p', JSON.stringify({ status })];
    await kubectl(this.host, ['patch', 'pod', name, '-n', this.#namespace, ...how]);
  }

  async pods(): Promise<Pod[]> {
    return await podsOf(this.host, this.#namespace, 'app=web');
  }

  /** Pods that wait for the word of the test. */
  async ungated(): Promise<Pod[]> {
    return (await this.pods()).filter((pod) => !isReady(pod) && pod.spec.nodeName !== undefined && !isGoing(pod));
  }

  async gatedAreReady(replicas: number): Promise<void> {
    const gated = { readinessGates: [{ conditionType: GATE }] };
    await this.host.apply([deployment(this.#namespace, 'web', replicas, '100m', {}, gated)]);
    await until('they are bound', async () => (await this.ungated()).length === replicas);
    for (const pod of await this.ungated()) await this.open(pod);
    await settled(this.host, this.#namespace, 'web', { east: replicas });
  }

  async released(): Promise<Pod> {
    return await until('one is released, and another one waits to be Ready in west', async () => {
      const all = await this.pods();
      const one = all.find((pod) => isReleased(pod) && pod.metadata.ownerReferences === undefined);
      const waits = (await this.ungated()).some(({ spec }) => spec.nodeName === 'west');
      return waits ? one : undefined;
    });
  }

  /** What the program has tried to write of pods of this test. */
  #tried(verb: string, subresource?: string): AuditEvent[] {
    return this.host
      .auditEvents()
      .filter(({ objectRef, user }) => objectRef?.namespace === this.#namespace && user.username === MANAGER)
      .filter((event) => event.verb === verb && event.objectRef?.subresource === subresource)
      .filter(({ objectRef }) => objectRef?.resource === 'pods');
  }

  /** What the program has written of pods of this test. */
  writes(verb: string, subresource?: string): AuditEvent[] {
    return this.#tried(verb, subresource).filter(({ responseStatus }) => (responseStatus?.code ?? 500) < 300);
  }

  evictions(): AuditEvent[] {
    return this.writes('create', 'eviction');
  }

  /** Those that a disruption budget did not allow. */
  refusedEvictions(): AuditEvent[] {
    return this.#tried('create', 'eviction').filter(({ responseStatus }) => responseStatus?.code === 429);
  }

  async metrics(): Promise<string> {
    return await (await fetch(`${this.topology.spillway.url}/metrics`)).text();
  }

  async crash(): Promise<void> {
    await this.topology.spillway.process.stop('SIGKILL');
  }

  async comeBack(): Promise<void> {
    this.topology.spillway.process.restart();
    await waitReady(this.topology.spillway);
  }
}
