import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { FaultProxy, ProxiedRequest } from '../fixtures/fault-proxy.ts';
import { isReady, newNamespace, podsOf, readPod, untilGone, untilRunning } from '../fixtures/live-pods.ts';
import { idle, inBatches, Lab, MEMBER, numbered, phaseOf, report, seconds, wait } from './lab.ts';
import { SteadyPods } from './steady-pods.ts';

describe('API servers that stall and fail', () => {
  let lab: Lab;
  let steady: SteadyPods;
  const both = (): FaultProxy[] => [lab.proxies.host, lab.proxies.member];

  beforeAll(async () => {
    // Here the manager does what virtual nodes do.
    lab = await Lab.start({ proxied: ['host', 'member'], hostIdentity: 'ServiceAccount' });
    steady = await SteadyPods.run(lab);
  });
  afterAll(() => lab?.close());

  afterEach(async () => {
    for (const proxy of both()) {
      proxy.clear();
      proxy.thaw();
    }
    await lab.works();
    await steady.expectUntouched();
    expect(lab.violations()).toEqual([]);
  });

  test('F19 F26: watches fall silent without an end', async (context) => {
    const ns = await newNamespace(lab.host, 'silent');
    await lab.runPods(ns, ['goes']);
    const rules = both().map((proxy) => {
      const rule = proxy.inject(
        { kind: 'silence', afterLines: 0 },
        (request) => request.watch && request.path.endsWith('/pods'),
      );
      proxy.resetConnections();
      return rule;
    });
    await Promise.all(rules.map((rule) => rule.hit()));
    // Those that are open now stay silent; what is opened later works.
    for (const rule of rules) rule.remove();
    const began = Date.now();
    await lab.host.apply([idle('comes', ns)]);
    await lab.host.kubectl(['delete', 'pod', 'goes', '-n', ns, '--wait=false']);
    await untilRunning(lab.host, ns, 'comes', { timeoutMs: 90_000 });
    await untilGone(lab.member, ns, 'goes', { timeoutMs: 90_000 });
    await untilGone(lab.host, ns, 'goes', { timeoutMs: 90_000 });
    const took = Date.now() - began;
    expect(took).toBeLessThan(60_000);
    report(context, ['F19', 'F26'], 'noticed, replaced', `what happened meanwhile was done after ${seconds(took)}`);
  });

  test('F62: handlers choke on one object; all others are served', async (context) => {
    const ns = await newNamespace(lab.host, 'poison');
    const edit = (line: string): string =>
      line.includes('"name":"poisoned"') ? line.replace('"containers":[', '"containers":7,"others":[') : line;
    lab.proxies.host.inject({ kind: 'edit', edit }, (request) => request.watch && request.path.endsWith('/pods'));
    lab.proxies.host.resetConnections();
    await lab.works();
    await lab.host.apply([idle('poisoned', ns)]);
    await until('it is bound', async () => (await readPod(lab.host, ns, 'poisoned'))?.spec.nodeName === MEMBER);
    await lab.runPods(ns, numbered(10, 'well'), 60_000).catch((error: unknown) => {
      throw new Error('the others do not run', { cause: error });
    });
    const well = (await podsOf(lab.host, ns)).filter(({ metadata }) => metadata.name.startsWith('well'));
    expect(well.every(isReady)).toBe(true);
    const errors = await lab.metric('workqueue_retries_total', MEMBER);
    expect(lab.spillway.process.running).toBe(true);
    lab.proxies.host.clear();
    lab.proxies.host.resetConnections();
    await lab.host.kubectl(['delete', 'pod', 'poisoned', '-n', ns, '--wait=false']);
    await untilGone(lab.host, ns, 'poisoned', { timeoutMs: 120_000 });
    report(context, ['F62'], 'parked; 10 of 10 others run', `the program goes on; ${errors} tries in its queue`);
  });

  test('F16: half of all requests fail for five minutes, both sides', async (context) => {
    const ns = await newNamespace(lab.host, 'half');
    const failures = new Set<string>();
    let requests = 0;
    const oneOf =
      (count: number) =>
      ({ watch }: ProxiedRequest): boolean =>
        !watch && Math.random() * count < 1;
    for (const proxy of both()) {
      // A third of what the rule after it leaves.
      proxy.inject({ kind: 'status', code: 503, reason: 'ServiceUnavailable' }, oneOf(3));
      proxy.inject({ kind: 'status', code: 500, reason: 'InternalError' }, (request) => {
        requests += 1;
        return oneOf(4)(request);
      });
    }
    const end = Date.now() + 300_000;
    let made = 0;
    while (Date.now() < end) {
      const names = numbered(5, `wave-${made}`);
      await inBatches(names, (name) => lab.host.api.call('POST', `/api/v1/namespaces/${ns}/pods`, idle(name, ns)));
      made += names.length;
      await wait(10_000);
      const pods = await podsOf(lab.host, ns);
      for (const pod of pods) if (phaseOf(pod) === 'Failed') failures.add(pod.metadata.name);
      const leaving = pods.filter(isReady).slice(0, 3);
      if (leaving.length > 0) {
        await lab.host.kubectl([
          'delete',
          'pod',
          '-n',
          ns,
          '--wait=false',
          ...leaving.map(({ metadata }) => metadata.name),
        ]);
      }
    }
    for (const proxy of both()) proxy.clear();
    const began = Date.now();
    await until(
      'both sides agree and all run',
      async () => {
        const [above, below] = await Promise.all([podsOf(lab.host, ns), podsOf(lab.member, ns)]);
        for (const pod of above) if (phaseOf(pod) === 'Failed') failures.add(pod.metadata.name);
        const names = (pods: typeof above): string => pods.map(({ metadata }) => metadata.name).join();
        return above.every((pod) => isReady(pod)) && names(above) === names(below);
      },
      { timeoutMs: 120_000, intervalMs: 250 },
    );
    const took = Date.now() - began;
    expect([...failures]).toEqual([]);
    expect(took).toBeLessThan(60_000);
    report(
      context,
      ['F16'],
      'no pod Failed',
      `${made} pods made and many deleted meanwhile, ${requests} requests; all in line ${seconds(took)} after the end`,
    );
  }, 600_000);
});
