import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { condition, getPod, newNamespace, readPod, read, writesOf } from '../fixtures/live-pods.ts';
import { idle, inBatches, isPodOf, Lab, MEMBER, report, seconds, wait } from './lab.ts';
import { SteadyPods } from './steady-pods.ts';

const PODS = 10_000;
/** A pod is deleted when so many others were made after it. */
const BEHIND = 2_000;
const WIDTH = 48;
const MARK = 'faults.example/told';

interface Heartbeat {
  spec: { renewTime: string };
}
interface NodeStatus {
  status: { conditions: { type: string; status: string }[] };
}

/** Pods are made for the virtual node and deleted, without a scheduler that would slow that down. */
describe('a flood of pods', () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.start({ kwok: { nodes: 8, pods: '2000' } });
  });
  afterAll(() => lab?.close());

  /** How old the Lease of the Node got, in ms, and what its Node was. */
  async function watchNode(over: AbortSignal): Promise<{ oldest: number; seen: Set<string> }> {
    const seen = new Set<string>();
    let oldest = 0;
    for (; !over.aborted; await wait(500)) {
      const lease = await read<Heartbeat>(
        lab.host,
        `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${MEMBER}`,
      );
      const node = await read<NodeStatus>(lab.host, `/api/v1/nodes/${MEMBER}`);
      oldest = Math.max(oldest, Date.now() - Date.parse(lease?.spec.renewTime ?? ''));
      seen.add(node?.status.conditions.find(({ type }) => type === 'Ready')?.status ?? 'none');
    }
    return { oldest, seen };
  }

  /** Changes the status of a pod in the member again and again. Answers how long the host took to know, in ms each. */
  async function tell(namespace: string, name: string, over: AbortSignal): Promise<number[]> {
    const lags: number[] = [];
    for (let turn = 0; !over.aborted; turn++) {
      const { conditions = [] } = (await getPod(lab.member, namespace, name)).status ?? {};
      const others = conditions.filter(({ type }) => type !== MARK);
      const message = `turn ${turn}`;
      const began = Date.now();
      await lab.member.api.call('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}/status`, {
        status: { conditions: [...others, { type: MARK, status: 'True', message }] },
      });
      await until(
        `the host knows ${message}`,
        async () => {
          const pod = await readPod(lab.host, namespace, name);
          return pod !== undefined && condition(pod, MARK)?.message === message;
        },
        { timeoutMs: 120_000, intervalMs: 50 },
      );
      lags.push(Date.now() - began);
      await wait(1_000);
    }
    return lags;
  }

  async function none(cluster: Lab['host'], namespace: string): Promise<boolean> {
    const list = await read<{ items: unknown[] }>(cluster, `/api/v1/namespaces/${namespace}/pods?limit=1`);
    return list?.items.length === 0;
  }

  test('F50: ten thousand pods are made and deleted as fast as the API server takes it', async (context) => {
    const steady = await SteadyPods.run(lab);
    const told = await newNamespace(lab.host, 'told');
    await lab.runPods(told, ['told']);
    const flood = await newNamespace(lab.host, 'flood');
    const pods = `/api/v1/namespaces/${flood}/pods`;
    const remove = async (index: number): Promise<unknown> =>
      await lab.host.api.call('DELETE', `${pods}/flood-${index}`);
    const over = new AbortController();
    const watched = Promise.all([watchNode(over.signal), tell(told, 'told', over.signal)]);
    watched.catch(() => undefined);

    const since = Date.now();
    const indices = Array.from({ length: PODS }, (_, index) => index);
    const make = async (index: number): Promise<void> => {
      await lab.host.api.call('POST', pods, idle(`flood-${index}`, flood, { nodeName: MEMBER }));
      if (index >= BEHIND) await remove(index - BEHIND);
    };
    await inBatches(indices, make, WIDTH);
    const made = Date.now() - since;
    await inBatches(indices.slice(-BEHIND), remove, WIDTH);
    const deleted = Date.now() - since;
    await until(
      'all are gone on both sides',
      async () => (await none(lab.host, flood)) && (await none(lab.member, flood)),
      {
        timeoutMs: 600_000,
        intervalMs: 500,
      },
    );
    const gone = Date.now() - since;
    over.abort();
    const [{ oldest, seen }, lags] = await watched;
    const creations = writesOf(lab.member, since)
      .filter(isPodOf(flood))
      .filter(({ verb, objectRef, responseStatus }) => {
        return verb === 'create' && objectRef?.subresource === undefined && responseStatus?.code === 201;
      })
      .map(({ objectRef }) => objectRef?.name);
    expect(new Set(creations).size).toBe(creations.length);
    expect([...seen]).toEqual(['True']);
    expect(oldest).toBeLessThan(40_000);
    expect(Math.max(...lags)).toBeLessThan(30_000);
    await steady.expectUntouched();
    await lab.works();
    expect(lab.violations()).toEqual([]);
    lags.sort((a, b) => a - b);
    const [median, last] = [lags[Math.floor(lags.length / 2)] ?? 0, lags.at(-1) ?? 0];
    const rss = Math.round((lab.spillway.process.usage()?.rssBytes ?? 0) / 2 ** 20);
    report(
      context,
      ['F50'],
      'nobody starves, nothing is left',
      `made within ${seconds(made)}, deleted within ${seconds(deleted)}, all gone ${seconds(gone - deleted)} later; ` +
        `${creations.length} got as far as the member, none twice; Node Ready all the time, its Lease never older than ` +
        `${seconds(oldest)}; a status of another pod was known after ${seconds(median)} (median of ${lags.length}; longest ` +
        `${seconds(last)}); 50 other pods: 0 writes; RSS ${rss} MiB`,
    );
  }, 1_200_000);
});
