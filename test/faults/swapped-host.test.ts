import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { groupsOf, userOf } from '../../hack/service-account.ts';
import { addMember, installSpillway, SYSTEM_NAMESPACE, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { describeWrite, isReady, podsOf, read, writesOf } from '../fixtures/live-pods.ts';
import { TcpProxy } from '../members/tcp-proxy.ts';
import { idle, inBatches, isPodOf, Lab, MEMBER, memberKubeconfig, numbered, report, seconds, wait } from './lab.ts';
import { STEADY, SteadyPods } from './steady-pods.ts';

/** Longer than the doubt about a host pod that is merely missing. */
const LONG_MS = 90_000;

/**
 * The worst cluster to be led to: it takes the same certificates, was set up from the same manifests, with the same member,
 * and is further on, so that nothing in its answers looks like the past. It has none of the pods, but others of the same
 * names.
 */
describe('another cluster in the place of the host', () => {
  let lab: Lab;
  let other: Cluster;
  let line: TcpProxy;

  beforeAll(async () => {
    lab = await Lab.start();
    other = await startCluster(lab.workspace, { name: 'other', components: 'api-only', audit: true, keysOf: lab.host });
    await installSpillway(other);
    await addMember(other, lab.member, { kubeconfig: memberKubeconfig(lab.member) });
    line = await TcpProxy.to(lab.host.server);
    // Tokens end with their ServiceAccount, certificates are good in both clusters.
    const manager = { namespace: SYSTEM_NAMESPACE, name: 'spillway-manager' };
    const kubeconfig = await lab.host.kubeconfigFor(userOf(manager), groupsOf(manager));
    await lab.crash(() => {
      const path = join(lab.host.dir, 'manager.kubeconfig');
      writeFileSync(path, kubeconfig.replaceAll(lab.host.server, line.url), { mode: 0o600 });
      return Promise.resolve();
    });
  });
  afterAll(async () => {
    await line?.close();
    await lab?.close();
  });

  /** Pods of the same names for the same virtual node, and one more; no controller is there to bind them. */
  async function fill(cluster: Cluster): Promise<void> {
    const of = (kind: string, name: string): object => ({
      apiVersion: 'v1',
      kind,
      metadata: { name, namespace: STEADY },
    });
    await cluster.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: STEADY } },
      of('ServiceAccount', 'default'),
    ]);
    const names = [`${STEADY}-0`, `${STEADY}-1`, 'theirs'];
    await cluster.apply(names.map((name) => idle(name, STEADY, { nodeName: MEMBER })));
  }

  async function versionOf(cluster: Cluster): Promise<number> {
    const list = await read<{ metadata: { resourceVersion: string } }>(cluster, '/api/v1/pods?limit=1');
    return Number(list?.metadata.resourceVersion);
  }

  const readiness = async (): Promise<string> => await (await fetch(`${lab.spillway.url}/readyz`)).text();
  const counted = async (): Promise<number> => await lab.metric('spillway_invariant_violations_total', '"I3"');

  test('I3: another cluster answers at the address of the host, and then the former one again', async (context) => {
    await SteadyPods.run(lab);
    await fill(other);
    // Nothing may look older than before.
    const behind = (await versionOf(lab.host)) + 2_000 - (await versionOf(other));
    await inBatches(numbered(Math.max(0, behind), 'turn'), (turn) =>
      other.api.call('PATCH', `/api/v1/namespaces/${STEADY}`, { metadata: { annotations: { turn } } }),
    );
    expect(await versionOf(other)).toBeGreaterThan(await versionOf(lab.host));
    expect(await counted()).toBe(0);
    /** The former host gives the Node up meanwhile, as it hears nothing, and shows its pods as not ready: their versions there change. */
    const lives = async (cluster: Cluster): Promise<unknown[]> =>
      (await podsOf(cluster, STEADY)).map(({ metadata, status }) => [
        metadata.name,
        metadata.uid,
        cluster === lab.member ? metadata.resourceVersion : '',
        status?.phase,
        status?.startTime,
        status?.containerStatuses?.map(({ restartCount }) => restartCount),
      ]);
    const before = [await lives(lab.host), await lives(lab.member)];

    const since = Date.now();
    line.lead(other.server);
    await until('it is noticed', async () => (await counted()) === 1, { timeoutMs: 90_000, intervalMs: 50 });
    const found = Date.now();
    expect(await readiness()).toMatch(/host-identity.*another cluster answers in the place of the host/);
    await wait(LONG_MS);
    expect([await lives(lab.host), await lives(lab.member)]).toEqual(before);
    expect(writesOf(lab.member, since).map(describeWrite), 'the member').toEqual([]);
    expect(writesOf(other, found).map(describeWrite), 'the other cluster').toEqual([]);
    // Heartbeats go by the clock, and may have come before it was noticed.
    const about = writesOf(other, since).filter(({ objectRef }) => objectRef?.resource === 'pods');
    expect(about.map(describeWrite), 'pods of the other cluster').toEqual([]);

    const back = Date.now();
    line.lead(lab.host.server);
    await waitReady(lab.spillway, 60_000);
    await lab.works();
    const healed = Date.now() - back;
    await until('all are ready', async () => (await podsOf(lab.host, STEADY)).every(isReady), { timeoutMs: 60_000 });
    expect([await lives(lab.host), await lives(lab.member)]).toEqual(before);
    expect(writesOf(lab.member, since).filter(isPodOf(STEADY)).map(describeWrite)).toEqual([]);
    expect(await counted()).toBe(1);
    expect(lab.violations()).toHaveLength(1);
    report(
      context,
      ['I3'],
      'nothing written for it or to it, heals',
      `noticed after ${seconds(found - since)}, counted once; in ${seconds(LONG_MS)} 0 writes to the member and to the other ` +
        `cluster, 50 of 50 pods untouched; a new pod ran ${seconds(healed)} after the former host was back`,
    );
  }, 600_000);
});
