import { expect } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Condition, Pod } from '../../src/kube/core-v1.ts';
import {
  eventsOf,
  type Fields,
  isReady,
  kubectl,
  newNamespace,
  podsOf,
  read,
  shell,
  untilGone,
  writesOf,
} from '../fixtures/live-pods.ts';
import { deployment, policy, settled, whereAre } from '../fixtures/scheduling.ts';

/** `moved` fits elsewhere, the others nowhere: the next one of `bound` is bound to the lost node all the same, that of `pinned` waits to be, and `kept` is released by nobody. */
export const SETS = ['moved', 'bound', 'pinned', 'kept'] as const;
type SetName = (typeof SETS)[number];

const TAINT = 'node.kubernetes.io/out-of-service';
const PATIENT = { timeoutMs: 120_000 };
/** Keeps data of its own, and takes its time to end, so that who does not wait for that is seen. */
const BEATING = 'trap "sleep 3; exit 0" TERM; while :; do date +%s >> /data/beats; sleep 0.2; done';

const IN_EAST = { nodeSelector: { 'kubernetes.io/hostname': 'east' } };
const WHERE: Record<SetName, Fields> = {
  moved: {},
  bound: IN_EAST,
  pinned: IN_EAST,
  kept: IN_EAST,
};

/** A StatefulSet of one pod for each of these, in a namespace of their own: east is lost, and its virtual node out of service. */
export class FencedSets {
  readonly #host: Cluster;
  readonly #east: Cluster;
  readonly #namespace: string;

  constructor(host: Cluster, east: Cluster, namespace: string) {
    this.#host = host;
    this.#east = east;
    this.#namespace = namespace;
  }

  /** @returns the pods, which run in east */
  async start(): Promise<Map<SetName, Pod>> {
    await newNamespace(this.#host, this.#namespace);
    const clusterAffinity = { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] };
    const { spec, ...rest } = policy(this.#namespace, 'sets', { clusterAffinity });
    const resourceSelectors = [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }];
    const failover = { onMemberLost: { after: '15s' } };
    await this.#host.apply([{ ...rest, spec: { ...(spec as Fields), resourceSelectors, failover } }]);
    await this.#host.apply(SETS.map((name) => this.#set(name)));
    const pods = new Map<SetName, Pod>();
    for (const name of SETS) {
      const [pod] = await settled(this.#host, this.#namespace, name, { east: 1 });
      if (pod !== undefined) pods.set(name, pod);
    }
    return pods;
  }

  #set(name: SetName): Fields {
    const more = {
      ...WHERE[name],
      terminationGracePeriodSeconds: 20,
      containers: [shell(BEATING, { volumeMounts: [{ name: 'data', mountPath: '/data' }] })],
      volumes: [{ name: 'data', emptyDir: {} }],
    };
    const { kind: _, spec, ...rest } = deployment(this.#namespace, name, 1, '10m', {}, more);
    return { ...rest, kind: 'StatefulSet', spec: { ...(spec as Fields), serviceName: name } };
  }

  async taint(): Promise<void> {
    await kubectl(this.#host, ['taint', 'node', 'east', `${TAINT}=nodeshutdown:NoSchedule`]);
    await this.outOfService('Fenced');
  }

  async takeBack(): Promise<void> {
    await kubectl(this.#host, ['taint', 'node', 'east', `${TAINT}-`]);
    await this.outOfService('InService');
  }

  async outOfService(reason: string): Promise<void> {
    await until(
      `OutOfService is ${reason}`,
      async () => (await this.condition('OutOfService'))?.reason === reason,
      PATIENT,
    );
  }

  async condition(type: string): Promise<Condition | undefined> {
    return (await this.#member())?.status?.conditions?.find((one) => one.type === type);
  }

  /** Of which of these pods it is written down that they were ended. */
  async ended(pods: ReadonlyMap<SetName, Pod>): Promise<SetName[]> {
    const ended = Object.keys((await this.#member())?.status?.fencing?.pods ?? {});
    return SETS.filter((name) => ended.includes(pods.get(name)?.metadata.uid ?? ''));
  }

  async #member(): Promise<MemberCluster | undefined> {
    return await read<MemberCluster>(this.#host, '/apis/spillway.dev/v1alpha1/memberclusters/east');
  }

  async told(name: SetName, reason: string): Promise<string> {
    return await until(
      `${name} is told ${reason}`,
      async () =>
        (await eventsOf(this.#host, this.#namespace, `${name}-0`)).find((event) => event.reason === reason)?.message,
      PATIENT,
    );
  }

  async deleteByHand(name: SetName): Promise<void> {
    await kubectl(this.#host, ['delete', 'pod', `${name}-0`, '-n', this.#namespace, '--timeout=30s']);
  }

  /** As a scheduler does that asks nobody, and heeds no taints. */
  async bind(name: SetName): Promise<void> {
    const target = { apiVersion: 'v1', kind: 'Node', name: 'east' };
    await this.#host.api.call('POST', `/api/v1/namespaces/${this.#namespace}/pods/${name}-0/binding`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: `${name}-0` },
      target,
    });
  }

  async pod(name: SetName, cluster = this.#host): Promise<Pod | undefined> {
    return await read<Pod>(cluster, `/api/v1/namespaces/${this.#namespace}/pods/${name}-0`);
  }

  /** The pod that came in the place of another one. */
  async next(name: SetName, { metadata: { uid } }: Pod, question: (pod: Pod) => boolean): Promise<Pod> {
    return await until(
      `the next pod of ${name} is as asked`,
      async () => {
        const pod = await this.pod(name);
        return pod !== undefined && pod.metadata.uid !== uid && question(pod) ? pod : undefined;
      },
      PATIENT,
    );
  }

  async runsIn(where: string, name: SetName): Promise<void> {
    await until(
      `${name} runs in ${where}`,
      async () => {
        const pods = await podsOf(this.#host, this.#namespace, `app=${name}`);
        return whereAre(pods)[where] === 1 && pods.every(isReady);
      },
      PATIENT,
    );
  }

  /** The copies that are there, as `app UID`. */
  async copiesIn(cluster: Cluster): Promise<string[]> {
    const pods = await podsOf(cluster, this.#namespace);
    return pods.map(({ metadata }) => `${metadata.labels?.['app'] ?? ''} ${metadata.uid ?? ''}`).toSorted();
  }

  /** When the copy in that cluster wrote to its data, as it says itself (ms since 1970). */
  async beats(name: SetName, cluster: Cluster): Promise<number[]> {
    const words = ['exec', `${name}-0`, '-n', this.#namespace, '--', 'cat', '/data/beats'];
    const lines = (await kubectl(cluster, words)).trim().split('\n');
    return lines.map((line) => Number(line) * 1_000);
  }

  /** What the program did to pods in east since, in order, as `delete moved-0`. */
  writesInEast(since: number): string[] {
    return writesOf(this.#east, since)
      .filter(({ objectRef }) => objectRef?.resource === 'pods' && objectRef.namespace === this.#namespace)
      .map(({ verb, objectRef }) => `${verb} ${objectRef?.name ?? ''}`);
  }

  async end(): Promise<void> {
    await kubectl(this.#host, ['delete', 'statefulset', '--all', '-n', this.#namespace]);
    for (const name of SETS) await untilGone(this.#host, this.#namespace, `${name}-0`, PATIENT);
    expect(await this.copiesIn(this.#east)).toEqual([]);
  }
}
