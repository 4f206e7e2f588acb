import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { HOST_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { monotonic } from '../../src/kube/clock.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { CONFIG_MAPS, PODS } from '../../src/kube/resource.ts';
import { create, list, remove } from '../../src/kube/verbs.ts';
import { creationHistory, type CreationHistory } from '../../src/pods/creation-history.ts';
import { HOST_ID } from '../fixtures/pods.ts';

const workspace = Workspace.create();
afterAll(() => workspace.close());

const namespace = 'default';
const UID = '11111111-2222-3333-4444-555555555555';

describe('what a real API server remembers of a creation', () => {
  let cluster: Cluster;
  let client: KubeClient;

  beforeAll(async () => {
    cluster = await startCluster(workspace, { name: 'history', components: 'api-only' });
    const { server, ca, cert, key } = cluster.adminAccess;
    client = new KubeClient({ cluster: 'history', ...staticAccess({ endpoint: { server, ca }, cert, key }) });
    await until('the namespace has its account', async () => {
      const metadata = { name: 'default', namespace };
      await cluster.apply([{ apiVersion: 'v1', kind: 'ServiceAccount', metadata }]);
      return true;
    });
  });
  afterAll(async () => {
    await client?.close();
    await cluster?.stop();
  });

  const version = async (): Promise<string> => (await list<Pod>(client, PODS, { namespace })).resourceVersion;

  async function make(name: string, uid = UID): Promise<Pod> {
    const labels = { [HOST_LABEL]: HOST_ID, [UID_LABEL]: uid };
    const spec = {
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image: 'example.invalid/app:1' }],
    };
    return await create<Pod>(client, PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace, labels },
      spec,
    });
  }

  async function drop(name: string): Promise<void> {
    await remove(client, PODS, { namespace, name }, { gracePeriodSeconds: 0 });
  }

  /** Other things happen all the time, and only they let the version of the cluster grow. */
  async function goOn(name: string): Promise<void> {
    await create(client, CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } });
  }

  async function ask(name: string, since: string): Promise<CreationHistory & { tookMs: number }> {
    const began = Date.now();
    const intent = { member: 'east', namespace, name, since };
    const of = { hostId: HOST_ID, uid: UID };
    const history = await creationHistory(client, intent, of, { monotonic, signal: AbortSignal.timeout(30_000) });
    return { ...history, tookMs: Date.now() - began };
  }

  test('a pod that never was is known to be absent, whatever else has had its name', async () => {
    const since = await version();
    await make('absent', 'another');
    await drop('absent');
    await goOn('after-absent');
    const history = await ask('absent', since);
    expect(history).toMatchObject({ is: 'absent' });
    expect(history.tookMs).toBeLessThan(10_000);
    console.info(`an absent pod was known to be so after ${history.tookMs} ms`);
  });

  test('a pod that is there is found', async () => {
    const since = await version();
    const made = await make('present');
    expect(await ask('present', since)).toMatchObject({
      is: 'present',
      memberPod: { metadata: { uid: made.metadata.uid } },
    });
  });

  test('a pod that came and went is known to have been there, at once', async () => {
    const since = await version();
    await make('lost');
    await drop('lost');
    await goOn('after-lost');
    // The end of the watch is what takes long, and no machine is so slow that three answers in a row come as late as that.
    const absent = ask('never', since);
    const took: number[] = [];
    for (let i = 0; i < 3; i++) {
      const history = await ask('lost', since);
      expect(history).toMatchObject({ is: 'lost' });
      took.push(history.tookMs);
    }
    const { is, tookMs } = await absent;
    expect(is).toBe('absent');
    expect(Math.min(...took)).toBeLessThan(tookMs / 2);
  });

  test('what is yet to come by its own count is of another history, and what has no place in it is in none', async () => {
    expect(await ask('any', '99999999999')).toMatchObject({ is: 'forgotten' });
    expect(await ask('any', '')).toMatchObject({ is: 'forgotten' });
  });
});
