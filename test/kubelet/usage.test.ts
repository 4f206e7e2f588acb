import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { UsagePort } from '../../src/kubelet/usage-port.ts';
import { ask, directoryOf, type Kubelet, type Keys, makeKeys, startKubelet, StubMember } from './harness.ts';

let keys: Keys;
let member: StubMember;
let kubelet: Kubelet;

beforeAll(async () => {
  keys = await makeKeys();
});
afterEach(async () => {
  await kubelet.server.close(0);
  await member.stop();
});

async function start(usage?: Partial<UsagePort>): Promise<void> {
  member = await StubMember.start();
  const none = (): Promise<never> => Promise.reject(new Error('not scripted'));
  const port = { resourceMetrics: none, cadvisorMetrics: none, summary: none, ...usage };
  kubelet = await startKubelet(keys, directoryOf([], member.client), usage === undefined ? {} : { usage: port });
}

const get = (path: string) => ask(kubelet.port, keys, { path, client: keys.admin });

describe('what pods use', () => {
  test('metrics are sent as plain text, piece by piece', async () => {
    const pieces = Array.from({ length: 500 }, (_, index) => `line_${index} ${'x'.repeat(1000)}\n`);
    await start({ resourceMetrics: async () => pieces, cadvisorMetrics: async () => ['cadvisor 1\n'] });
    expect(await get('/metrics/resource')).toEqual({
      code: 200,
      type: 'text/plain; version=0.0.4; charset=utf-8',
      text: pieces.join(''),
    });
    expect(await get('/metrics/cadvisor')).toMatchObject({ code: 200, text: 'cadvisor 1\n' });
  });

  test('the summary is JSON; whether more than CPU and memory is wanted is asked as in the kubelet', async () => {
    const asked: boolean[] = [];
    await start({
      summary: async (less) => {
        asked.push(less);
        return '{"node":{}}';
      },
    });
    expect(await get('/stats/summary')).toEqual({ code: 200, type: 'application/json', text: '{"node":{}}' });
    await get('/stats/summary/?only_cpu_and_memory=true');
    await get('/stats/summary?only_cpu_and_memory=1');
    expect(asked).toEqual([false, true, false]);
  });

  test('takes the rights to nodes/metrics and nodes/stats, not more', async () => {
    await start({ resourceMetrics: async () => ['r 1\n'], summary: async () => '{}' });
    const codes = async (right: string): Promise<number[]> => {
      kubelet.host.may = (_user, subresource, verb) => subresource === right && verb === 'get';
      const headers = { authorization: 'Bearer good' };
      const paths = ['/metrics/resource', '/stats/summary'];
      const answers = await Promise.all(paths.map((path) => ask(kubelet.port, keys, { path, headers })));
      return answers.map(({ code }) => code);
    };
    expect(await codes('metrics')).toEqual([200, 403]);
    await kubelet.server.close(0);
    await member.stop();
    await start({ resourceMetrics: async () => ['r 1\n'], summary: async () => '{}' });
    expect(await codes('stats')).toEqual([403, 200]);
  });

  test('is not there where nobody measures it', async () => {
    await start();
    for (const path of ['/metrics/resource', '/metrics/cadvisor', '/stats/summary']) {
      expect((await get(path)).code).toBe(404);
    }
  });
});
