import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { repositoryRoot } from '../../hack/repository.ts';
import { until } from '../../hack/until.ts';
import { describeWrite, type Fields, newNamespace, podsOf, shell, writesOf } from '../fixtures/live-pods.ts';
import { buildCommit, whyNoCode } from '../fixtures/older-program.ts';
import { idle, inBatches, Lab, numbered, report, seconds, wait } from './lab.ts';

/** From before claims in members, modes of service accounts, gangs and host paths: most of today's fields are unknown to it. */
const OLDER = '622d962';
/** Born under each of the two. */
const PODS = 500;

describe('the program is replaced by older code and back', () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.start();
  });
  afterAll(() => lab?.close());

  /** One of ten has a ConfigMap and a Secret. */
  async function run(namespace: string): Promise<void> {
    await newNamespace(lab.host, namespace);
    const metadata = { name: 'used', namespace };
    await lab.host.apply([
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1' } },
      { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { b: '2' } },
    ]);
    const envFrom = [{ configMapRef: { name: 'used' } }, { secretRef: { name: 'used' } }];
    const containers: Fields[] = [{ ...shell('sleep 9'), envFrom }];
    const names = numbered(PODS, namespace);
    await inBatches(
      names.filter((_, index) => index % 10 === 0),
      (name) =>
        lab.host.api.call('POST', `/api/v1/namespaces/${namespace}/pods`, idle(name, namespace, { containers })),
    );
    await lab.runPods(namespace, names, 300_000);
  }

  test('F05: from older code to this one, back, and forth again, it writes nothing about healthy pods', async (context) => {
    const problem = await whyNoCode(OLDER);
    if (problem !== undefined) return context.skip(problem);
    const [today, older] = [repositoryRoot(), await buildCommit(OLDER, lab.workspace.dir)];
    const namespaces = ['born-today', 'born-older'];
    await run('born-today');
    await lab.upgrade(older);
    // Which knows nothing of the level that the guard in the member asks of new namespaces.
    const labels = { 'spillway.dev/allow-host': 'any' };
    await lab.member.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'born-older', labels } }]);
    await run('born-older');
    const lives = async (): Promise<unknown[]> => (await Promise.all(namespaces.map((one) => lab.lives(one)))).flat();
    await until('nothing is being written any more', async () => {
      const before = await lives();
      await wait(3_000);
      return JSON.stringify(before) === JSON.stringify(await lives());
    });
    const before = await lives();
    expect(before).toHaveLength(4 * PODS);
    const since = Date.now();
    const back: number[] = [];
    for (const folder of [today, older, today]) {
      const began = Date.now();
      await lab.upgrade(folder);
      await lab.works();
      back.push(Date.now() - began);
      // What comes late, such as what is done once a minute after a start, belongs to it.
      await wait(75_000);
    }
    expect(await lives()).toEqual(before);
    for (const cluster of [lab.host, lab.member]) {
      const written = writesOf(cluster, since).filter(({ objectRef }) =>
        namespaces.includes(objectRef?.namespace ?? ''),
      );
      expect(written.map(describeWrite), cluster.name).toEqual([]);
    }
    expect(lab.violations()).toEqual([]);
    // Each can also end what was born under the other.
    await Promise.all(namespaces.map((one) => lab.host.kubectl(['delete', 'namespace', one, '--wait=false'])));
    const left = async (): Promise<number> =>
      (await Promise.all(namespaces.map((one) => podsOf(lab.member, one)))).flat().length;
    await until('all are gone from the member', async () => (await left()) === 0, {
      timeoutMs: 180_000,
      intervalMs: 500,
    });
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F05'],
      'no pod touched',
      `code of ${OLDER}, then this, ${OLDER}, and this again; ${2 * PODS} pods, born half under each: 0 writes to them and to ` +
        `what they refer to, all UIDs and versions the same; a new pod ran ${seconds(Math.max(...back))} after the end of the ` +
        'former process (longest)',
    );
  }, 1_200_000);
});
