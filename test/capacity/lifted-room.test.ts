import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fitRequestOf, type FitRequest } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import { memberNode, memberPod, poolOf } from '../fixtures/member-nodes.ts';

/** Nodes of 8 cores each. */
function member(...nodes: string[]): MemberCapacity {
  const capacity = new MemberCapacity({ hostId: 'host-1', pools: [poolOf()] });
  for (const name of nodes) capacity.nodeHandler.added(memberNode(name));
  return capacity;
}

function asks(cpu: string): FitRequest {
  const spec = { containers: [{ name: 'c', resources: { requests: { cpu } } }] };
  return fitRequestOf({ metadata: { name: 'asks', namespace: 'default' }, spec }, 'east');
}

const free = (capacity: MemberCapacity): number => capacity.slots(asks('1'), 1_000);

describe('room that is lifted for a question', () => {
  test('is free for who asks, not for those who wait for room, and is back after it', () => {
    const capacity = member('a');
    capacity.reserve('gang', asks('8'));
    capacity.reserve('homeless', asks('4'), 'binding');
    expect(capacity.lift('gang')).toBe(true);
    expect([capacity.fits(asks('8')).fits, free(capacity)]).toEqual([true, 8]);
    capacity.putBack('gang');
    expect(free(capacity)).toBe(0);
    capacity.release('gang');
    expect(free(capacity)).toBe(4);
  });

  test('is where it was when it is reserved anew meanwhile', () => {
    const capacity = member('a', 'b');
    capacity.reserve('gang', asks('8'));
    capacity.reserve('homeless', asks('8'), 'binding');
    capacity.reserve('waits', asks('4'), 'binding');
    capacity.lift('gang');
    capacity.reserve('gang', asks('8'));
    capacity.putBack('gang');
    capacity.release('homeless', 'binding');
    expect(free(capacity)).toBe(4);
  });

  test('is none of a pod that is bound, or that the member knows, or that holds nothing', () => {
    const capacity = member('a');
    capacity.reserve('bound', asks('2'));
    capacity.reserve('bound', asks('2'), 'binding');
    for (const uid of ['bound', 'nobody']) expect(capacity.lift(uid)).toBe(false);
    expect(free(capacity)).toBe(6);
    capacity.putBack('bound');
    expect(free(capacity)).toBe(6);
  });

  test('goes elsewhere when it was given away meanwhile, and nothing is lost when it is given up', () => {
    const capacity = member('a', 'b');
    capacity.reserve('low', asks('8'));
    capacity.lift('low');
    capacity.podHandler.added(memberPod('foreign', 'a', { cpu: '1' }));
    capacity.reserve('high', asks('8'));
    capacity.putBack('low');
    expect(free(capacity)).toBe(7);
    capacity.release('high');
    expect(free(capacity)).toBe(7);
    capacity.lift('low');
    capacity.release('low');
    expect(free(capacity)).toBe(15);
  });

  test('counts in quota as it did, also of a pod that no node has room for', () => {
    const quota = (cpu: string) => ({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q', namespace: 'default' },
      status: { hard: { 'requests.cpu': cpu }, used: { 'requests.cpu': '0' } },
    });
    const [roomy, full] = [member('a'), member('a')];
    roomy.quotaHandler.added(quota('4'));
    full.quotaHandler.added(quota('3'));
    full.podHandler.added(memberPod('foreign', 'a', { cpu: '7' }));
    for (const [capacity, held, lifted] of [
      [roomy, 1, 4],
      [full, 0, 1],
    ] as const) {
      capacity.reserve('gang', asks('3'));
      expect(free(capacity)).toBe(held);
      capacity.lift('gang');
      expect(free(capacity)).toBe(lifted);
      capacity.putBack('gang');
      expect(free(capacity)).toBe(held);
      capacity.lift('gang');
      capacity.release('gang');
      expect(free(capacity)).toBe(lifted);
    }
  });

  test('changes nothing for anybody else, whoever asks', () => {
    const holds = fc.array(fc.record({ cpu: fc.integer({ min: 1, max: 9 }), bound: fc.boolean() }), { maxLength: 8 });
    fc.assert(
      fc.property(holds, fc.array(fc.nat(7), { maxLength: 6 }), (held, lifted) => {
        const capacity = member('a', 'b');
        for (const [index, { cpu, bound }] of held.entries())
          capacity.reserve(`p${String(index)}`, asks(String(cpu)), bound ? 'binding' : 'choice');
        const before = free(capacity);
        const aside = lifted.map((index) => `p${String(index)}`).filter((uid) => capacity.lift(uid));
        expect(free(capacity)).toBeGreaterThanOrEqual(before);
        for (const uid of aside) capacity.putBack(uid);
        expect(free(capacity)).toBe(before);
      }),
    );
  });
});
