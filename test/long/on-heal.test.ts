import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import type { FaultProxy } from '../fixtures/fault-proxy.ts';
import {
  eventsOf,
  type Fields,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  podsOf,
  read,
  shell,
} from '../fixtures/live-pods.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { deployment, policy, settled } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';
import { measured, seconds } from '../faults/lab.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, so no partition is tried: ${kubelets.reason}`);

const NAMES = ['east', 'west'];
const NAMESPACE = 'heal';
/** Half an hour, a thirtieth of it: pods of a lost member are replaced after 15 s instead of 5 min and more. */
const PARTITION_MS = 60_000;
const PATIENT = { timeoutMs: 120_000 };

/** What runs where in the members: real kubelets say it, and not the program. */
class Copies {
  /** By app: UID of each copy there ever was. */
  readonly made = new Map<string, Set<string>>();
  /** By app: the most that lived at the same time. */
  readonly most = new Map<string, number>();
  /** By app: how often containers were started again. */
  readonly restarts = new Map<string, number>();
  readonly #live = new Map<string, Set<string>>();

  seen(type: string, { metadata, status }: Pod): void {
    const app = metadata.labels?.['app'] ?? '';
    const { uid = '' } = metadata;
    this.made.set(app, (this.made.get(app) ?? new Set()).add(uid));
    const live = this.#live.get(app) ?? new Set();
    if (type === 'DELETED' || status?.phase === 'Succeeded' || status?.phase === 'Failed') live.delete(uid);
    else if (status?.phase === 'Running') live.add(uid);
    this.#live.set(app, live);
    this.most.set(app, Math.max(this.most.get(app) ?? 0, live.size));
    const restarts = (status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0);
    this.restarts.set(app, Math.max(this.restarts.get(app) ?? 0, restarts));
  }
}

/** Two members with real kubelets behind lines that can be cut. */
describe.runIf(kubelets.ok)('a partition', () => {
  let topology: Topology;
  let host: Cluster;
  const proxies = new Map<string, FaultProxy>();
  const copies = new Copies();
  const ended = new AbortController();
  const following: Promise<void>[] = [];

  beforeAll(async () => {
    topology = await startTopology({
      extender: true,
      // Were the Node to tell of the member, Kubernetes would evict its pods within the partition.
      host: {
        apiServerFlags: {
          'default-not-ready-toleration-seconds': '5',
          'default-unreachable-toleration-seconds': '5',
        },
        controllerManagerFlags: { 'node-monitor-period': '1s', 'node-monitor-grace-period': '20s' },
      },
      members: NAMES.map((name) => ({ name, kubelet: `${name}-1`, unregistered: true })),
    });
    ({ host } = topology);
    const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 1 };
    for (const name of NAMES) {
      const { cluster } = topology.member(name);
      proxies.set(name, await addProxiedMember(host, cluster, { spec: { probe } }));
    }
    await Promise.all(NAMES.map((name) => waitForNode(host, name)));
    await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
    await newNamespace(host, NAMESPACE);
  }, 600_000);
  afterAll(async () => {
    ended.abort();
    await Promise.all(following);
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    for (const proxy of proxies.values()) await proxy.close();
    await topology?.close();
    expect(errors).toEqual([]);
  });

  /** East first, then west; after 15 s without an answer pods are replaced, or held. */
  function rules(name: string, kind: string, onMemberLost: Fields = {}): Fields {
    const clusterAffinity = { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] };
    const { spec, ...rest } = policy(NAMESPACE, name, { clusterAffinity });
    const apiVersion = kind === 'Job' ? 'batch/v1' : 'apps/v1';
    const failover = { onMemberLost: { after: '15s', ...onMemberLost } };
    return { ...rest, spec: { ...(spec as Fields), resourceSelectors: [{ apiVersion, kind, name }], failover } };
  }

  const web = (name: string, replicas: number): Fields =>
    deployment(NAMESPACE, name, replicas, '10m', {}, { containers: [shell(IDLE)] });

  function stateful(): Fields {
    const { kind: _, spec, ...rest } = web('db', 1);
    return { ...rest, kind: 'StatefulSet', spec: { ...(spec as Fields), serviceName: 'db' } };
  }

  /** Done when the partition is over. */
  function job(): Fields {
    const { spec } = web('sum', 1) as { spec: { template: { spec: Fields } } };
    const containers = [shell(`sleep ${String(PARTITION_MS / 1_000 + 20)}`)];
    const template = { ...spec.template, spec: { ...spec.template.spec, restartPolicy: 'Never', containers } };
    return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'sum', namespace: NAMESPACE }, spec: { template } };
  }

  function cut(): void {
    const proxy = proxies.get('east');
    proxy?.inject({ kind: 'reset', when: 'before' });
    proxy?.resetConnections();
  }

  /** Since when the Node has been Ready. */
  async function nodeReadySince(name: string): Promise<string> {
    const node = await read<Node>(host, `/api/v1/nodes/${name}`);
    const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
    expect(ready?.status).toBe('True');
    return ready?.lastTransitionTime ?? '';
  }

  const uidsOf = (pods: readonly Pod[]): Set<string | undefined> => new Set(pods.map(({ metadata }) => metadata.uid));

  /** By app, the fewest pods that were Ready, and not going, after any event from now on. */
  async function followReady(apps: readonly string[]): Promise<Map<string, number>> {
    const all = new Map((await podsOf(host, NAMESPACE)).map((pod) => [pod.metadata.uid, pod]));
    const fewest = new Map<string, number>();
    const count = (): void => {
      for (const app of apps) {
        const ready = [...all.values()].filter(
          (pod) => pod.metadata.labels?.['app'] === app && isReady(pod) && pod.metadata.deletionTimestamp === undefined,
        );
        fewest.set(app, Math.min(fewest.get(app) ?? Number.POSITIVE_INFINITY, ready.length));
      }
    };
    count();
    const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
    following.push(
      host.api.follow(path, ended.signal, ({ type, object }) => {
        const pod = object as Pod;
        if (type === 'DELETED') all.delete(pod.metadata.uid);
        else all.set(pod.metadata.uid, pod);
        count();
      }),
    );
    return fewest;
  }

  test('of what must not run twice never two live, and nothing is run again; of each other pod one stays when the member is back, as onHeal says', async (context) => {
    const wanted = { replacement: 2, original: 2, longest: 2, died: 1 };
    const names = Object.keys(wanted) as (keyof typeof wanted)[];
    await host.apply([
      rules('replacement', 'Deployment'),
      rules('original', 'Deployment', { onHeal: 'KeepOriginal' }),
      rules('longest', 'Deployment', { onHeal: 'LongestRunning' }),
      rules('died', 'Deployment', { onHeal: 'LongestRunning' }),
      rules('db', 'StatefulSet'),
      rules('sum', 'Job'),
    ]);
    await host.apply([...names.map((name) => web(name, wanted[name])), stateful(), job()]);
    const before = new Map<string, Pod[]>();
    for (const name of [...names, 'db', 'sum'])
      before.set(name, await settled(host, NAMESPACE, name, { east: name in wanted ? wanted[name as 'died'] : 1 }));
    for (const name of NAMES) {
      const { cluster } = topology.member(name);
      for (const pod of await podsOf(cluster, NAMESPACE)) copies.seen('ADDED', pod);
      following.push(
        cluster.api.follow(`/api/v1/namespaces/${NAMESPACE}/pods`, ended.signal, ({ type, object }) =>
          copies.seen(type, object as Pod),
        ),
      );
    }

    const readySince = await nodeReadySince('east');
    const cutAt = Date.now();
    cut();
    await until(
      'others of each Deployment are Ready in west',
      async () => {
        const pods = await podsOf(host, NAMESPACE);
        const there = (app: string): number =>
          pods.filter((pod) => pod.metadata.labels?.['app'] === app && pod.spec.nodeName === 'west' && isReady(pod))
            .length;
        return names.every((name) => there(name) === wanted[name]);
      },
      PATIENT,
    );
    // One of those that wait ends, and starts anew, while nobody can see it.
    const [lone] = before.get('died') ?? [];
    const east = topology.member('east').cluster;
    await kubectl(east, ['exec', lone?.metadata.name ?? '', '-n', NAMESPACE, '--', 'kill', '1']);
    await until('it runs again', () => copies.restarts.get('died') === 1, PATIENT);
    // Those that wait are found by the next process.
    await topology.spillway.process.stop('SIGKILL');
    topology.spillway.process.restart();
    await waitReady(topology.spillway);
    await sleep(Math.max(0, cutAt + PARTITION_MS - Date.now()));
    const going = (await podsOf(host, NAMESPACE)).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    expect(uidsOf(going)).toEqual(uidsOf(before.get('replacement') ?? []));
    // The Node is Ready as long as it is served, so Kubernetes evicts nobody.
    expect(await nodeReadySince('east')).toBe(readySince);
    expect(going.flatMap(({ status }) => status?.conditions ?? []).map(({ reason }) => reason)).not.toContain(
      'DeletionByTaintManager',
    );

    const fewest = await followReady(names);
    proxies.get('east')?.clear();
    const healedAt = Date.now();
    // A crash in the middle of it.
    await until(
      'one is back',
      async () => (await podsOf(host, NAMESPACE, 'app=original')).filter(isReady).length > 2,
      PATIENT,
    );
    await topology.spillway.process.stop('SIGKILL');
    topology.spillway.process.restart();
    await waitReady(topology.spillway);

    const after = new Map<string, Pod[]>();
    const where = { replacement: 'west', original: 'east', longest: 'east', died: 'west' };
    for (const name of names)
      after.set(name, await settled(host, NAMESPACE, name, { [where[name]]: wanted[name] }, PATIENT.timeoutMs));
    const settledMs = Date.now() - healedAt;
    for (const name of ['original', 'longest', 'db'])
      expect([name, uidsOf(after.get(name) ?? (await podsOf(host, NAMESPACE, `app=${name}`)))]).toEqual([
        name,
        uidsOf(before.get(name) ?? []),
      ]);
    expect(fewest).toEqual(new Map(names.map((name) => [name, wanted[name]])));
    const done = await until(
      'the Job is done',
      async () => {
        const found = await read<{ status?: { succeeded?: number; failed?: number } }>(
          host,
          `/apis/batch/v1/namespaces/${NAMESPACE}/jobs/sum`,
        );
        return found?.status?.succeeded === 1 ? found.status : undefined;
      },
      PATIENT,
    );
    expect(done.failed ?? 0).toBe(0);

    // What kubelets ran: each of these one copy, once.
    for (const app of ['db', 'sum'])
      expect([app, copies.made.get(app)?.size, copies.most.get(app), copies.restarts.get(app)]).toEqual([app, 1, 1, 0]);
    for (const app of ['replacement', 'original', 'longest']) {
      expect([app, copies.made.get(app)?.size, copies.restarts.get(app)]).toEqual([app, 4, 0]);
    }
    await until('exactly one copy of each is left', async () => {
      const left = (
        await Promise.all(NAMES.map(async (name) => await podsOf(topology.member(name).cluster, NAMESPACE)))
      ).flat();
      return names.every(
        (name) => left.filter(({ metadata }) => metadata.labels?.['app'] === name).length === wanted[name],
      );
    });
    const [kept] = after.get('original') ?? [];
    expect((await eventsOf(host, NAMESPACE, kept?.metadata.name ?? '')).map(({ reason }) => reason)).toContain(
      'OriginalKept',
    );
    expect((await eventsOf(host, NAMESPACE, lone?.metadata.name ?? '')).map(({ reason }) => reason)).toContain(
      'ReleasedPodEvicted',
    );
    const most = ['db', 'sum'].map((app) => `${app} ${String(copies.most.get(app))}`).join(', ');
    measured(
      context,
      ['F25', 'F69'],
      `cut off for ${seconds(PARTITION_MS)}, and two crashes: one of each is left ${seconds(settledMs)} after the line is whole; most copies at once of what must not run twice: ${most}`,
    );
  }, 400_000);
});
