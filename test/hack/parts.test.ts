import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import { firstServiceAddress, toArguments } from '../../hack/control-plane.ts';
import { overlap } from '../../hack/machine-network.ts';
import { until, GiveUp } from '../../hack/until.ts';
import { parseMember, plansFor, prepareKubelets, type MemberPlan } from '../../hack/up.ts';
import { run } from '../../hack/command.ts';

test('processes that run at the same time are handed ports from ranges of their own', async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, () => freePort()));
  expect(new Set(ports.map((port) => Math.floor((port - 20_000) / 400)))).toEqual(new Set([process.pid % 30]));
});

test('free ports are free, below the ephemeral range, and never given twice', async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, () => freePort()));
  expect(new Set(ports).size).toBe(50);
  expect(ports.every((port) => port >= 20_000 && port < 32_000)).toBe(true);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(ports[0], '127.0.0.1', resolve));
  await new Promise((resolve) => server.close(resolve));
});

test.each([
  ['10.1.0.0/16', '10.1.2.0/24', true],
  ['10.1.0.0/16', '10.2.0.0/24', false],
  ['10.1.2.3', '10.1.2.0/24', true],
  ['10.1.2.0/24', '10.1.3.0/24', false],
  ['192.168.255.255', '192.168.0.0/16', true],
  ['0.0.0.0/0', '10.0.0.0/8', true],
])('%s and %s overlap: %s', (a, b, expected) => {
  expect(overlap(a, b)).toBe(expected);
  expect(overlap(b, a)).toBe(expected);
});

test('later flags replace earlier ones', () => {
  expect(toArguments({ a: '1', b: '2' }, undefined, { b: '3' })).toEqual(['--a=1', '--b=3']);
});

test('the first service address', () => {
  expect(firstServiceAddress('10.96.0.0/16')).toBe('10.96.0.1');
  expect(() => firstServiceAddress('fd00::/64')).toThrow(/not an IPv4 range/);
});

test('members are described as NAME=KIND:NODES', () => {
  expect(parseMember('east=kubelet:2')).toEqual({ name: 'east', kind: 'kubelet', nodes: 2 });
  expect(parseMember('west=kwok')).toEqual({ name: 'west', kind: 'kwok', nodes: 1 });
  expect(() => parseMember('west')).toThrow(/not a member/);
  expect(() => parseMember('west=docker:1')).toThrow(/not a member/);
});

test('until answers as soon as it can, gives up in time and tells the last error', async () => {
  let asked = 0;
  expect(await until('three', () => (++asked === 3 ? asked : undefined), { intervalMs: 1 })).toBe(3);
  const failing = until('never', () => Promise.reject(new Error('the reason')), { timeoutMs: 20, intervalMs: 5 });
  await expect(failing).rejects.toThrow('never: not so after 20 ms: the reason');
  asked = 0;
  const hopeless = until('hopeless', () => {
    asked += 1;
    throw new GiveUp('dead');
  });
  await expect(hopeless).rejects.toThrow('dead');
  expect(asked).toBe(1);
});

test('a failing command tells what it said', async () => {
  expect(await run('sh', ['-c', 'cat; echo out'], { input: 'in ' })).toBe('in out\n');
  await expect(run('sh', ['-c', 'echo bad >&2; exit 4'])).rejects.toThrow(/: 4: bad/);
  await expect(run('/no/such/command', [])).rejects.toThrow(/ENOENT/);
});

describe('where real kubelets cannot run', () => {
  const plans: MemberPlan[] = [
    { name: 'east', kind: 'kubelet', nodes: 2 },
    { name: 'west', kind: 'kwok', nodes: 3 },
  ];
  const said: string[] = [];
  const say = (line: string): void => void said.push(line);

  test('their members are simulated, and it says why', () => {
    said.length = 0;
    expect(plansFor(plans, { ok: false, reason: 'real kubelets need root' }, say)).toEqual([
      { name: 'east', kind: 'kwok', nodes: 2 },
      { name: 'west', kind: 'kwok', nodes: 3 },
    ]);
    expect(said).toEqual(['member east is simulated by kwok: real kubelets need root']);
  });

  test('where they can, everything is as planned', () => {
    said.length = 0;
    expect(plansFor(plans, { ok: true }, say)).toEqual(plans);
    expect(said).toEqual([]);
  });

  test('nothing is got for a machine that cannot run them', async () => {
    const cannot = { ok: false, reason: 'no /dev/kmsg' } as const;
    const get = (): Promise<void> => Promise.reject(new Error('nobody should get anything'));
    expect(await prepareKubelets(say, { can: () => Promise.resolve(cannot), get })).toEqual(cannot);
  });

  test('what cannot be got is a reason to simulate, not to give up', async () => {
    const can = (): Promise<{ ok: true }> => Promise.resolve({ ok: true });
    const get = (): Promise<void> => Promise.reject(new Error('kubelet v1 cannot be had: go is not installed'));
    expect(await prepareKubelets(say, { can, get })).toEqual({
      ok: false,
      reason: 'kubelet v1 cannot be had: go is not installed',
    });
    expect(await prepareKubelets(say, { can, get: () => Promise.resolve() })).toEqual({ ok: true });
  });
});
