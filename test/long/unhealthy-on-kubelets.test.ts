import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { eventsOf, type Fields, IDLE, newNamespace, podsOf, shell } from '../fixtures/live-pods.ts';
import { deployment, policy, policyInUse, settled, whereAre } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const can = await canRunKubelets();
if (!can.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${can.reason}`);

const NAMESPACE = 'ill';
const SETTINGS = 'settings';
/** Ready for a minute, ill for 15 s, and kubelets take their time to start again what crashes. */
const PATIENT = { timeoutMs: 240_000 };

/** What kubelets really say of programs that crash, in one member for what is wrong there alone, and in both for what is wrong with the program. */
describe.runIf(can.ok)('pods that crash', () => {
  let topology: Topology;
  let host: Cluster;

  beforeAll(async () => {
    const members = ['east', 'west'].map((name) => ({ name, kubelet: `${name}-1` }));
    topology = await startTopology({ extender: true, members });
    ({ host } = topology);
    await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
    await newNamespace(host, NAMESPACE);
  }, 300_000);
  afterAll(async () => {
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    await topology?.close();
    expect(errors).toEqual([]);
  });

  /** One pod in east, all others in west. */
  function ruled(name: string): Fields {
    const clusterAffinity = { clusterNames: ['east'], max: 1, overflowAffinities: [{ clusterNames: ['west'] }] };
    const { spec, ...rest } = policy(NAMESPACE, name, { clusterAffinity }, name);
    const failover = { application: { decisionConditions: { tolerationSeconds: 15 } } };
    return { ...rest, spec: { ...(spec as Fields), failover } };
  }

  const SETTINGS_ARE_WRONG_IN_EAST: Fields[] = [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: SETTINGS, namespace: NAMESPACE },
      data: { 'app.yaml': 'database: here\n' },
    },
    {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'OverridePolicy',
      metadata: { name: SETTINGS, namespace: NAMESPACE },
      spec: {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'ConfigMap', name: SETTINGS }],
        overrideRules: [
          {
            targetCluster: { clusterNames: ['east'] },
            overriders: {
              fieldOverrider: [
                {
                  fieldPath: '/data/app.yaml',
                  yaml: [{ subPath: '/database', operator: 'replace', value: 'nowhere' }],
                },
              ],
            },
          },
        ],
      },
    },
  ];
  const web = (name: string, script: string): Fields => {
    const container = shell(script, { volumeMounts: [{ name: SETTINGS, mountPath: '/etc/app' }] });
    const volumes = [{ name: SETTINGS, configMap: { name: SETTINGS } }];
    return deployment(NAMESPACE, name, 2, '1m', {}, { containers: [container], volumes });
  };
  const podsThere = async (name: string): Promise<Pod[]> => await podsOf(host, NAMESPACE, `app=${name}`);
  const crashesIn = (pods: readonly Pod[], member: string): Pod | undefined =>
    pods.find(
      ({ spec, status }) => spec.nodeName === member && (status?.containerStatuses?.[0]?.restartCount ?? 0) > 1,
    );

  test('for what is wrong in one member go elsewhere; for what is wrong with the program itself none does, and it says why', async () => {
    const names = ['one', 'all'];
    await host.apply([...SETTINGS_ARE_WRONG_IN_EAST, ...names.map(ruled)]);
    for (const name of names) await policyInUse(host, NAMESPACE, name);
    await host.apply([
      web('one', `grep -q 'database: here' /etc/app/app.yaml || exit 1; ${IDLE}`),
      web('all', 'exit 1'),
    ]);
    const sick = await until(
      'it crashes in east, and the other one runs in west',
      async () => {
        const pods = await podsThere('one');
        expect(whereAre(pods)).toEqual({ east: 1, west: 1 });
        return crashesIn(pods, 'east');
      },
      PATIENT,
    );
    const bad = await until(
      'the bad ones crash in both',
      async () => {
        const pods = await podsThere('all');
        return ['east', 'west'].every((member) => crashesIn(pods, member) !== undefined) ? pods : undefined;
      },
      PATIENT,
    );

    await settled(host, NAMESPACE, 'one', { west: 2 }, PATIENT.timeoutMs);
    const told = await eventsOf(host, NAMESPACE, sick.metadata.name);
    expect(told.find(({ reason }) => reason === 'UnhealthyPodReplaced')?.message).toMatch(
      /^it has not been well in member east for \S+, and others of its revision are well elsewhere; it was evicted, /,
    );

    const stays = await until(
      'the bad one says why it stays',
      async () => {
        const all = await Promise.all(bad.map(async ({ metadata }) => await eventsOf(host, NAMESPACE, metadata.name)));
        return all.flat().find(({ reason }) => reason === 'UnhealthyPodStays')?.message;
      },
      PATIENT,
    );
    expect(stays).toMatch(/no other pod of its revision is well in another cluster/);
    const uids = (pods: readonly Pod[]): unknown => new Set(pods.map(({ metadata }) => metadata.uid));
    const still = await podsThere('all');
    expect([whereAre(still), uids(still)]).toEqual([{ east: 1, west: 1 }, uids(bad)]);
    const evicted = host
      .auditEvents()
      .filter(({ objectRef, verb }) => verb === 'create' && objectRef?.subresource === 'eviction');
    expect(evicted.map(({ objectRef }) => objectRef?.name)).toEqual([sick.metadata.name]);
  }, 900_000);
});
