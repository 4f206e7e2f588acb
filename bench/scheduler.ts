import { freePort } from '../hack/addresses.ts';
import { startCluster, type Cluster } from '../hack/cluster.ts';
import { startKwok } from '../hack/kwok.ts';
import type { Say } from '../hack/progress.ts';
import { startSecondScheduler } from '../hack/second-scheduler.ts';
import { addMember, installSpillway, startSpillway, waitForNode } from '../hack/spillway.ts';
import { until } from '../hack/until.ts';
import { Workspace } from '../hack/workspace.ts';
import { asReference, measured, median, type SuiteReport, withSpread } from './measurement.ts';

const NODES = 100;
const PODS = 1_000;
const NAMESPACE = 'bench';

/**
 * How fast a stock kube-scheduler binds pods when it asks Spillway about each, and when it asks nobody: two schedulers with
 * the shipped configuration on one host, in turns, on the same nodes.
 */
export async function scheduler(o: { rounds: number; say: Say }): Promise<SuiteReport> {
  const workspace = Workspace.create({ say: o.say });
  try {
    const host = await start(workspace);
    const rates = { without: [] as number[], with: [] as number[] };
    for (let round = 0; round < o.rounds; round += 1) {
      rates.without.push(await podsPerSecond(host, 'asks-nobody'));
      rates.with.push(await podsPerSecond(host, 'spillway-scheduler'));
    }
    const [without, asking] = [median(rates.without), median(rates.with)];
    return {
      suite: 'scheduler',
      failures: [],
      measurements: [
        asReference(measured('pods bound a second without the extender', without, 'pods/s', 'higher')),
        withSpread(measured('pods bound a second with the extender', asking, 'pods/s', 'higher'), rates.with),
        withSpread(
          measured('of the rate without', asking / without, '', 'higher', 0.9),
          rates.with.map((rate) => rate / without),
        ),
      ],
      notes: [
        `${PODS} pods of one Job-like crowd on ${NODES} nodes of the host and one virtual node, in a namespace that may burst; ` +
          `${o.rounds} rounds each, medians. From the first pod made to the last one bound; making them is part of both.`,
      ],
    };
  } finally {
    await workspace.close();
  }
}

async function start(workspace: Workspace): Promise<Cluster> {
  const extenderPort = await freePort();
  const [host, member] = await Promise.all([
    startCluster(workspace, { name: 'host' }),
    startCluster(workspace, { name: 'east', serviceCidr: '10.97.0.0/16' }),
  ]);
  await Promise.all([startKwok(host, { nodes: NODES, prefix: 'local' }), startKwok(member, { nodes: 10 })]);
  await installSpillway(host);
  await startSpillway(host, { extenderPort, extenderCertificates: 'SelfManaged' });
  await addMember(host, member);
  await waitForNode(host, 'east');
  await startSecondScheduler(host, { schedulerName: 'asks-nobody' });
  await startSecondScheduler(host, { extenderPort });
  await host.api.ensure('/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: NAMESPACE, labels: { 'spillway.dev/burst': 'enabled' } },
  });
  await until('the default ServiceAccount', async () => {
    await host.api.call('GET', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`);
    return true;
  });
  return host;
}

interface BoundList {
  items: { spec: { nodeName?: string } }[];
}

async function podsPerSecond(host: Cluster, schedulerName: string): Promise<number> {
  const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
  const began = performance.now();
  const names = Array.from({ length: PODS }, (_, index) => `${schedulerName}-${index}`).values();
  const worker = async (): Promise<void> => {
    for (const name of names) await host.api.call('POST', path, podOf(name, schedulerName));
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  await until(
    `${PODS} pods are bound by ${schedulerName}`,
    async () => {
      const { items } = (await host.api.call('GET', path)) as BoundList;
      return items.length === PODS && items.every(({ spec }) => spec.nodeName !== undefined);
    },
    { timeoutMs: 300_000, intervalMs: 250 },
  );
  const seconds = (performance.now() - began) / 1000;
  await host.kubectl(['delete', 'pods', '--all', '-n', NAMESPACE, '--grace-period=0', '--force', '--wait=false']);
  await until('no pods are left', async () => ((await host.api.call('GET', path)) as BoundList).items.length === 0, {
    timeoutMs: 120_000,
  });
  return PODS / seconds;
}

function podOf(name: string, schedulerName: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      schedulerName,
      terminationGracePeriodSeconds: 0,
      tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }],
      containers: [{ name: 'main', image: 'registry.example/app:v1', resources: { requests: { cpu: '100m' } } }],
    },
  };
}
