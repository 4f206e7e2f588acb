import { expect, it } from 'vitest';
import { EXTENDER_RESOURCE } from '../../src/api/marks.ts';
import type { FitAnswer } from '../../src/capacity/fit-answer.ts';
import { fitRequestOf, type FitRequest } from '../../src/capacity/fit-request.ts';
import { withHostCount } from '../../src/capacity/host-count.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import type { ResourceList } from '../../src/kube/core-v1.ts';
import { slotsTaken } from '../../src/scheduler/slots-taken.ts';
import { memberNode, memberPod, poolOf } from '../fixtures/member-nodes.ts';

/** Two nodes of 8 cores each. */
function member(): MemberCapacity {
  const capacity = new MemberCapacity({ hostId: 'host', pools: [poolOf({})] });
  for (const name of ['a', 'b']) capacity.nodeHandler.added(memberNode(name));
  return capacity;
}

function request(inMember: ResourceList, inHost: ResourceList): FitRequest {
  const copy = fitRequestOf(memberPod('copy', undefined, inMember), 'east');
  return withHostCount(copy, memberPod('asks', undefined, inHost));
}

const why = (answer: FitAnswer): string | undefined => (answer.fits ? undefined : answer.reasons[0]?.text);

it('is what a virtual node has left that the host’s scheduler compares with, for a pod whose copy asks for less', () => {
  const capacity = member();
  expect(why(capacity.fits(request({ cpu: '1' }, { cpu: '16' })))).toBeUndefined();
  const tooMuch = request({ cpu: '1' }, { cpu: '16001m' });
  expect(why(capacity.fits(tooMuch))).toBe(
    "the host's scheduler counts 16001m cpu for it, and its virtual node has 16 left",
  );
  expect(capacity.slots(tooMuch, 100)).toBe(0);
  const gpu = request({ cpu: '1' }, { cpu: '1', 'nvidia.com/gpu': '1' });
  expect(why(capacity.fits(gpu))).toBe(
    "the host's scheduler counts 1 nvidia.com/gpu for it, and its virtual node has 0 left",
  );
});

it('lets so many there as come one after the other, each of which takes what its copy asks for', () => {
  const capacity = member();
  expect(capacity.slots(request({ cpu: '1' }, { cpu: '1' }), 100)).toBe(16);
  expect(capacity.slots(request({ cpu: '1' }, { cpu: '3' }), 100)).toBe(14);
  expect(capacity.slots(request({ cpu: '500m' }, { cpu: '16' }), 100)).toBe(1);
  capacity.reserve('before', request({ cpu: '1' }, { cpu: '1' }));
  expect(capacity.slots(request({ cpu: '1' }, { cpu: '3' }), 100)).toBe(13);
});

it('may take all places at once, of a pod whose copy asks for nothing of what the host counts', () => {
  const capacity = member();
  const none = request({ memory: '1Mi' }, { cpu: '3', memory: '1Mi' });
  const other = request({ cpu: '6' }, { cpu: '6' });
  expect(capacity.slots(none, 10)).toBe(10);
  for (const uid of ['a', 'b']) capacity.reserve(uid, request({ cpu: '7' }, { cpu: '7' }));
  expect(capacity.slots(none, 10)).toBe(0);
  expect(slotsTaken(other, none)).toBeUndefined();
  expect(slotsTaken(other, request({ cpu: '2' }, { cpu: '3' }))).toBe(3);
});

it('is nothing of its own where the copy asks for as much, or where only the mark of the extender is more', () => {
  const copy = fitRequestOf(memberPod('copy', undefined, { cpu: '2' }), 'east');
  expect(withHostCount(copy, memberPod('asks', undefined, { cpu: '1', [EXTENDER_RESOURCE]: '1' }))).toBe(copy);
});
