import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { FaultProxy, ProxiedRequest } from '../fixtures/fault-proxy.ts';
import { isReady, newNamespace, podsOf, read, readPod, untilGone } from '../fixtures/live-pods.ts';
import { idle, Lab, report } from './lab.ts';

/** More than any life has; the loop ends at the first number that is not reached. */
const MOST_SITES = 30;

/**
 * The life of a pod, with everything in it that writes: a namespace, a ConfigMap and a Secret before it, a change while
 * it runs, its end. The program is killed at each of its writes about it, before the request reaches the API server and
 * after it was carried out, and started again. No hook in the program: the proxies hold the request or its answer.
 */
describe('a crash at every API call', () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.start({ proxied: true });
  });
  afterAll(() => lab?.close());

  const isWrite = (namespace: string) => {
    const own = new RegExp(`/namespaces/${namespace}(/|$)`);
    return ({ method, path }: ProxiedRequest): boolean =>
      method !== 'GET' && (own.test(path) || (method === 'POST' && path === '/api/v1/namespaces'));
  };

  /** Does `act` and kills the program at its n-th write since, if it gets that far before `done`. */
  async function crashAt(
    site: number,
    when: 'before' | 'after',
    namespace: string,
    act: () => Promise<unknown>,
    done: () => Promise<boolean>,
  ): Promise<boolean> {
    const matches = isWrite(namespace);
    let count = 0;
    const nth = (request: ProxiedRequest): boolean => matches(request) && ++count === site;
    const fault = { kind: when === 'before' ? 'hang' : 'swallow' } as const;
    const { host, member } = lab.proxies;
    const rules = [host, member].map((proxy: FaultProxy) => proxy.inject(fault, nth, 1));
    const reached = Promise.race(rules.map(async (rule) => await rule.hit()));
    let isReached = false;
    void reached.then(() => (isReached = true));
    await act();
    await until('the site or the end', async () => isReached || (await done()), { timeoutMs: 60_000 });
    for (const rule of rules) rule.remove();
    if (!isReached) return false;
    await lab.spillway.process.stop('SIGKILL');
    lab.spillway.process.restart();
    await waitReady(lab.spillway);
    await until('what was begun is done', done, { timeoutMs: 60_000 });
    return true;
  }

  async function prepare(namespace: string): Promise<void> {
    await newNamespace(lab.host, namespace);
    const metadata = { name: 'used', namespace };
    await lab.host.apply([
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1' } },
      { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { b: '2' } },
    ]);
  }

  function definition(namespace: string) {
    const envFrom = [{ configMapRef: { name: 'used' } }, { secretRef: { name: 'used' } }];
    const containers = [{ name: 'main', image: 'example.invalid/app:1', envFrom }];
    return idle('one', namespace, { containers });
  }

  /** Both sides have exactly one pod, running, and the one is the other's. */
  const runs = (namespace: string) => async (): Promise<boolean> => {
    const [above] = await podsOf(lab.host, namespace);
    const below = await podsOf(lab.member, namespace).catch(() => []);
    return (
      above !== undefined &&
      isReady(above) &&
      below.length === 1 &&
      below[0]?.metadata.labels?.['spillway.dev/uid'] === above.metadata.uid
    );
  };

  /** Requests of the program that really made a pod in the member. */
  function creations(namespace: string): number {
    const made = lab.member
      .auditEvents()
      .filter(
        ({ verb, objectRef, responseStatus }) =>
          verb === 'create' &&
          objectRef?.resource === 'pods' &&
          objectRef.subresource === undefined &&
          objectRef.namespace === namespace &&
          responseStatus?.code === 201,
      );
    return made.length;
  }

  test('F02: while a pod comes to life', async (context) => {
    let sites = 0;
    for (const when of ['before', 'after'] as const) {
      for (let site = 1; site <= MOST_SITES; site++) {
        const namespace = `born-${when}-${site}`;
        await prepare(namespace);
        const act = async (): Promise<unknown> => await lab.host.apply([definition(namespace)]);
        const reached = await crashAt(site, when, namespace, act, runs(namespace));
        expect([namespace, creations(namespace)]).toEqual([namespace, 1]);
        if (!reached) break;
        sites += 1;
      }
    }
    // At least: namespace, ConfigMap, Secret, pod, status; each before and after.
    expect(sites).toBeGreaterThanOrEqual(10);
    expect(lab.violations()).toEqual([]);
    report(context, ['F02'], 'one pod each, adopted', `${sites} crash sites: 1 member pod created at each`);
  }, 900_000);

  test('F03: while a pod is changed and dies', async (context) => {
    let sites = 0;
    for (const when of ['before', 'after'] as const) {
      for (let site = 1; site <= MOST_SITES; site++) {
        const namespace = `dies-${when}-${site}`;
        await prepare(namespace);
        await lab.host.apply([definition(namespace)]);
        await until('it runs', runs(namespace), { timeoutMs: 60_000 });
        const uid = (await readPod(lab.member, namespace, 'one'))?.metadata.uid;
        const path = `/api/v1/namespaces/${namespace}/pods/one`;
        const act = async (): Promise<void> => {
          await lab.host.api.call('PATCH', path, { metadata: { labels: { changed: 'yes' } } });
          await until(
            'the change is on its way',
            async () => {
              const below = await readPod(lab.member, namespace, 'one');
              const changed = below?.metadata.labels?.['changed'] === 'yes';
              if (changed) expect(below?.metadata.uid).toBe(uid);
              return changed || !lab.spillway.process.running || site === 1;
            },
            { timeoutMs: 20_000 },
          );
          await lab.host.kubectl(['delete', 'pod', 'one', '-n', namespace, '--wait=false']);
        };
        const gone = async (): Promise<boolean> => {
          const objects = await Promise.all([
            readPod(lab.host, namespace, 'one'),
            readPod(lab.member, namespace, 'one'),
            read(lab.member, `/api/v1/namespaces/${namespace}/configmaps/used`),
            read(lab.member, `/api/v1/namespaces/${namespace}/secrets/used`),
          ]);
          return objects.every((object) => object === undefined);
        };
        const reached = await crashAt(site, when, namespace, act, gone);
        await untilGone(lab.host, namespace, 'one');
        expect([namespace, creations(namespace)]).toEqual([namespace, 1]);
        if (!reached) break;
        sites += 1;
      }
    }
    // At least: change, deletion below, deletion above, two copies; each before and after.
    expect(sites).toBeGreaterThanOrEqual(8);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F03'],
      'gone once, on both sides',
      `${sites} crash sites: no pod, ConfigMap or Secret left, none made again`,
    );
  }, 900_000);
});
