import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { startSpillway, waitForNode, waitReady, type Spillway } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import {
  condition,
  describeWrite,
  eventsOf,
  type Fields,
  IDLE,
  isReady,
  newNamespace,
  onNode,
  podsOf,
  podSpec,
  shell,
  writesOf,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const PODS = 10;
/** What admission gives every pod: a fifteenth of the 300 s that it is elsewhere. */
const ADMISSION_SECONDS = 20;
/** Fifteen minutes to the same scale, after Kubernetes has noticed. */
const OUTAGE_MS = 60_000;
const BY_TAINT = 'DeletionByTaintManager';

let topology: Topology;
let host: Cluster;
let east: Cluster;
let folder: string;
let replicas: Spillway[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-outage-'));
  const seconds = String(ADMISSION_SECONDS);
  topology = await startTopology({
    host: {
      apiServerFlags: {
        'default-not-ready-toleration-seconds': seconds,
        'default-unreachable-toleration-seconds': seconds,
      },
      // Longer than a heartbeat takes to come; shorter than the 40 s of production.
      controllerManagerFlags: {
        'node-monitor-period': '1s',
        'node-monitor-grace-period': '15s',
        'node-eviction-rate': '100',
      },
    },
    members: [{ name: 'east', kwok: { nodes: 2, prefix: 'east' } }],
    spillway: { args: ['--config', configured('Keep')] },
  });
  host = topology.host;
  east = topology.member('east').cluster;
  for (const file of ['scheduler/pod-guard', 'outages']) {
    await host.apply(readFileSync(new URL(`../../manifests/${file}.yaml`, import.meta.url), 'utf8'));
  }
  const other = await startSpillway(host, { name: 'other', args: ['--config', configured('Keep')] });
  replicas = [topology.spillway, other];
});
afterAll(async () => {
  await topology?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes the configuration of both replicas anew; answers where it is. */
function configured(toleration: 'Keep' | 'Forever'): string {
  const path = join(folder, 'config.yaml');
  writeFileSync(path, stringify({ outages: { toleration, admissionSeconds: ADMISSION_SECONDS } }));
  return path;
}

async function killAll(): Promise<number> {
  await Promise.all(replicas.map(async ({ process }) => await process.stop('SIGKILL')));
  return Date.now();
}

async function startAll(): Promise<void> {
  for (const { process } of replicas) process.restart();
  await Promise.all(replicas.map(async (one) => await waitReady(one)));
  await waitForNode(host, 'east', 60_000);
}

/** A set of pods on the virtual node, and a budget that lets one of them go at a time. */
async function runSet(name: string): Promise<{ ns: string; pods: Pod[] }> {
  const ns = await newNamespace(host, name);
  const labels = { app: name };
  const metadata = { name, namespace: ns };
  const spec: Fields = podSpec([shell(IDLE)], onNode('east'));
  await host.apply([
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: { minAvailable: PODS - 1, selector: { matchLabels: labels } },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata,
      spec: { replicas: PODS, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ]);
  const pods = await until(
    `all of ${name} run`,
    async () => {
      const found = await podsOf(host, ns);
      return found.length === PODS && found.every(isReady) ? found : undefined;
    },
    { timeoutMs: 90_000 },
  );
  return { ns, pods };
}

const uids = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.uid ?? '').toSorted();

async function untilNoticed(): Promise<void> {
  await until(
    'Kubernetes calls the Node unreachable',
    async () => {
      const template = '{.spec.taints[*].key} {.spec.taints[*].effect}';
      const { stdout } = await host.kubectl(['get', 'node', 'east', '-o', `jsonpath=${template}`]);
      return stdout.includes('node.kubernetes.io/unreachable') && stdout.includes('NoExecute');
    },
    { timeoutMs: 60_000 },
  );
}

test('as Kubernetes has it, all pods of a virtual node are deleted at once when nobody serves it, whatever budgets say', async () => {
  const { ns, pods } = await runSet('moved');
  const below = uids(await podsOf(east, ns));
  await killAll();
  await untilNoticed();
  await until(
    'all pods are deleted by the taint manager',
    async () => {
      const deleted = (await podsOf(host, ns)).filter(
        (pod) =>
          pod.metadata.deletionTimestamp !== undefined && condition(pod, 'DisruptionTarget')?.reason === BY_TAINT,
      );
      return uids(deleted).join() === uids(pods).join();
    },
    { timeoutMs: 90_000 },
  );
  // In the member nothing has happened.
  expect(uids((await podsOf(east, ns)).filter(isReady))).toEqual(below);
  await startAll();
  await until(
    'the deletions are carried out, and others run',
    async () => {
      const now = await podsOf(host, ns);
      return (
        now.length === PODS &&
        now.every(isReady) &&
        !now.some(({ metadata }) => uids(pods).includes(metadata.uid ?? ''))
      );
    },
    { timeoutMs: 120_000 },
  );
  const told = await Promise.all(pods.map(async ({ metadata }) => await eventsOf(host, ns, metadata.name)));
  for (const events of told) expect(events.map(({ reason }) => reason)).toContain('DeletedInOutage');
  await host.kubectl(['delete', 'replicaset', 'moved', '-n', ns]);
}, 400_000);

test('pods that were given what they need outlive it, and nothing is written about their copies afterwards', async () => {
  await killAll();
  configured('Forever');
  await startAll();
  const { ns, pods } = await runSet('stays');
  const writesPerPod = async (): Promise<number> => {
    const patches = writesOf(host).filter(
      ({ objectRef, verb, responseStatus }) =>
        verb === 'patch' &&
        objectRef?.resource === 'pods' &&
        objectRef.subresource === undefined &&
        objectRef.namespace === ns &&
        responseStatus?.code === 200,
    );
    return await Promise.resolve(patches.length / PODS);
  };
  await until(
    'all of them tolerate it',
    async () => (await podsOf(host, ns)).every(({ spec }) => spec.tolerations?.[0]?.operator === 'Equal'),
    { timeoutMs: 60_000 },
  );
  expect(await writesPerPod()).toBe(1);
  const below = await podsOf(east, ns);
  const killed = await killAll();
  await untilNoticed();
  await sleep(OUTAGE_MS);
  const after = await podsOf(host, ns);
  expect(uids(after)).toEqual(uids(pods));
  expect(after.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);
  expect(await podsOf(east, ns)).toEqual(below);
  await startAll();
  // Kubernetes called them unready, and no Service led to them, as with any node.
  await until('they are shown as ready again', async () => (await podsOf(host, ns)).every(isReady), {
    timeoutMs: 60_000,
  });
  expect(uids(await podsOf(host, ns))).toEqual(uids(pods));
  expect(await podsOf(east, ns)).toEqual(below);
  const ofPods = (cluster: Cluster): string[] =>
    writesOf(cluster, killed)
      .filter(({ objectRef }) => objectRef?.namespace === ns && objectRef.resource === 'pods')
      .map(describeWrite);
  expect(ofPods(east)).toEqual([]);
  // That they are ready again is the one thing that has to be written.
  expect(ofPods(host).toSorted()).toEqual(
    pods.map(({ metadata }) => `patch pods/status ${ns}/${metadata.name} 200`).toSorted(),
  );
}, 400_000);

test('pods that were given it lose it where their node is to fail with its member, and have it again when it is not', async () => {
  // Where no node at all is Ready Kubernetes deletes nothing.
  await startKwok(host, { nodes: 1, prefix: 'local' });
  await killAll();
  configured('Forever');
  await startAll();
  const ns = await newNamespace(host, 'withdrawn');
  const given = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Equal',
    effect: 'NoExecute',
  }));
  const apply = async (tolerations: Fields[]): Promise<void> => {
    const spec = {
      ...podSpec([shell(IDLE)], onNode('east')),
      tolerations: [{ operator: 'Exists', effect: 'NoSchedule' }, ...tolerations],
    };
    await host.apply([{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: ns }, spec }]);
  };
  const untilFirst = async (what: string, seconds: number | undefined): Promise<void> => {
    const wanted = given.map((one) => (seconds === undefined ? one : { ...one, tolerationSeconds: seconds }));
    const isSo = async (): Promise<boolean> => {
      const [pod] = await podsOf(host, ns);
      return isDeepStrictEqual(pod?.spec.tolerations?.slice(0, 2), wanted);
    };
    await until(what, isSo, { timeoutMs: 60_000 });
  };
  const nodesReady = async (value: string | null): Promise<void> => {
    const path = '/apis/spillway.dev/v1alpha1/memberclusters/east';
    await host.api.call('PATCH', path, { spec: { probe: { nodesReady: value } } });
  };
  await apply([]);
  await untilFirst('it was given them', undefined);
  await nodesReady('WhileReachable');
  await untilFirst('it has the seconds of every pod', ADMISSION_SECONDS);
  await killAll();
  await until(
    'Kubernetes deletes it, as any other',
    async () => {
      const [pod] = await podsOf(host, ns);
      return pod !== undefined && condition(pod, 'DisruptionTarget')?.reason === BY_TAINT;
    },
    { timeoutMs: 90_000 },
  );
  await startAll();
  await until('it has ended', async () => (await podsOf(host, ns)).length === 0, { timeoutMs: 60_000 });
  await apply(given);
  await untilFirst('what it came with is withdrawn', ADMISSION_SECONDS);
  await nodesReady(null);
  await untilFirst('it is given them anew', undefined);
}, 400_000);
