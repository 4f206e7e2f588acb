import { expect, test } from 'vitest';
import { fitRequestOf, type FitRequest } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import { memberNode, memberPod, poolOf } from '../fixtures/member-nodes.ts';

/** One node of 8 cores, where a pod of the member's own takes them all. */
function fullMember(): { capacity: MemberCapacity; grow: () => void } {
  const capacity = new MemberCapacity({ hostId: 'host-1', pools: [poolOf()] });
  capacity.nodeHandler.added(memberNode('a'));
  const foreign = (cpu: string) => memberPod('foreign', 'a', { cpu });
  let taken = 8;
  capacity.podHandler.added(foreign('8'));
  const grow = (): void => {
    const before = foreign(String(taken));
    taken -= 1;
    capacity.podHandler.updated(foreign(String(taken)), before);
  };
  return { capacity, grow };
}

function asks(cpu: string): FitRequest {
  const spec = { containers: [{ name: 'c', resources: { requests: { cpu } } }] };
  return fitRequestOf({ metadata: { name: 'asks', namespace: 'default' }, spec }, 'east');
}

const TOO_LARGE = asks('9');
const ONE_CORE = asks('1');
const free = (capacity: MemberCapacity): number => capacity.slots(ONE_CORE, 1_000);

test('each pod that found no room gets its turn, however many wait that fit nowhere', () => {
  const { capacity, grow } = fullMember();
  for (let index = 0; index < 200; index += 1) capacity.reserve(`large-${index}`, TOO_LARGE, 'binding');
  capacity.reserve('small', ONE_CORE, 'binding');
  grow();
  // Nothing else changes meanwhile.
  const seen = Array.from({ length: 4 }, () => free(capacity));
  expect(seen).toEqual([1, 1, 1, 0]);
});

test('one whose turn has not come is not passed over when something changes again', () => {
  const { capacity, grow } = fullMember();
  for (let index = 0; index < 100; index += 1) capacity.reserve(`large-${index}`, TOO_LARGE, 'binding');
  capacity.reserve('small', ONE_CORE, 'binding');
  grow();
  expect(free(capacity)).toBe(1);
  grow();
  expect(free(capacity)).toBe(1);
});

test('those that go meanwhile take no turn of others', () => {
  const { capacity, grow } = fullMember();
  for (let index = 0; index < 100; index += 1) capacity.reserve(`large-${index}`, TOO_LARGE, 'binding');
  for (const uid of ['small', 'other']) capacity.reserve(uid, ONE_CORE, 'binding');
  grow();
  for (let index = 0; index < 100; index += 1) capacity.release(`large-${index}`, 'binding');
  expect(free(capacity)).toBe(0);
  grow();
  expect(free(capacity)).toBe(0);
});
