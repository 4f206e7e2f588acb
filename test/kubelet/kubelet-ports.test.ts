import { beforeEach, describe, expect, test } from 'vitest';
import { KUBELET_PORT_COUNT, KubeletPorts } from '../../src/kubelet/kubelet-ports.ts';

const FIRST = 10_260;

/** A machine with ports that are taken; like the kernel it gives each port to one listener. */
class Machine {
  taken: Set<number>;
  readonly asked: number[] = [];

  constructor(taken: Iterable<number> = []) {
    this.taken = new Set(taken);
  }

  listen = (port: number): Promise<number> => {
    this.asked.push(port);
    if (this.taken.has(port)) return Promise.reject(Object.assign(new Error('in use'), { code: 'EADDRINUSE' }));
    this.taken.add(port);
    return Promise.resolve(port);
  };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

describe('with a first port', () => {
  let machine: Machine;
  let ports: KubeletPorts;

  beforeEach(() => {
    machine = new Machine();
    ports = new KubeletPorts(FIRST);
  });

  const open = async (node: string, before?: number): Promise<number> => await ports.open(node, before, machine.listen);

  test('each node gets the first free port, past those of other programs', async () => {
    machine.taken.add(FIRST).add(FIRST + 2);
    expect([await open('a'), await open('b'), await open('c')]).toEqual([FIRST + 1, FIRST + 3, FIRST + 4]);
  });

  test('a node keeps the port that it says, though a lower one is free now', async () => {
    expect(await open('a', FIRST + 7)).toBe(FIRST + 7);
    expect(machine.asked).toEqual([FIRST + 7]);
  });

  test('what it says is tried only inside the range', async () => {
    expect(await open('before', FIRST - 1)).toBe(FIRST);
    expect(await open('after', FIRST + KUBELET_PORT_COUNT)).toBe(FIRST + 1);
    expect(await open('last', FIRST + KUBELET_PORT_COUNT - 1)).toBe(FIRST + KUBELET_PORT_COUNT - 1);
    expect(machine.asked).toEqual([FIRST, FIRST + 1, FIRST + KUBELET_PORT_COUNT - 1]);
  });

  test('when its port is taken meanwhile it gets the first free one', async () => {
    machine.taken.add(FIRST + 7);
    expect(await open('a', FIRST + 7)).toBe(FIRST);
  });

  test('a new node leaves alone what another one is known by, even while that one is not there', async () => {
    expect(await open('a', FIRST)).toBe(FIRST);
    machine.taken.delete(FIRST);
    expect(await open('new')).toBe(FIRST + 1);
    expect(await open('a', FIRST)).toBe(FIRST);
  });

  test('a node that starts anew finds its own', async () => {
    expect(await open('a')).toBe(FIRST);
    expect(await open('b')).toBe(FIRST + 1);
    machine.taken.clear();
    expect(await open('b', FIRST + 1)).toBe(FIRST + 1);
    expect(await open('a', FIRST)).toBe(FIRST);
  });

  test('rather the port that a former node was known by than none', async () => {
    expect(await open('former')).toBe(FIRST);
    machine.taken = new Set(range(FIRST + 1, FIRST + KUBELET_PORT_COUNT - 1));
    expect(await open('new')).toBe(FIRST);
  });

  test('no free one: which range, and what to do', async () => {
    machine.taken = new Set(range(FIRST, FIRST + KUBELET_PORT_COUNT - 1));
    await expect(open('a')).rejects.toThrow(
      'no port from 10260 to 11259 is free for virtual node a; free some, or set another kubelet.firstPort',
    );
    expect(machine.asked).toEqual(range(FIRST, FIRST + KUBELET_PORT_COUNT - 1));
  });

  test('there is no port above 65535', async () => {
    ports = new KubeletPorts(65_000);
    machine.taken = new Set(range(65_000, 65_535));
    await expect(open('a', 65_000)).rejects.toThrow('no port from 65000 to 65535 is free');
    expect(Math.max(...machine.asked)).toBe(65_535);
  });

  test('other errors are no reason to try on', async () => {
    const failing = (): Promise<number> => Promise.reject(Object.assign(new Error('no'), { code: 'EADDRNOTAVAIL' }));
    await expect(ports.open('a', undefined, failing)).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
  });
});

test('without one the kernel chooses, whatever the Node says', async () => {
  const ports = new KubeletPorts(0);
  expect(ports.fixed).toBe(false);
  expect(await ports.open('a', 10_260, (port) => Promise.resolve(port === 0 ? 41_234 : port))).toBe(41_234);
});
