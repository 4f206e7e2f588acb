import { expect, it } from 'vitest';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import { VirtualNodeFits } from '../../src/capacity/virtual-node-fits.ts';

const room = (ready: boolean, nodeName = 'east') =>
  ({ nodeName, member: nodeName, ready }) as VirtualNodeCapacity & { ready: boolean };

it('lets the newest room that is ready answer, so that none is missing while one takes over from another', () => {
  const rooms = new VirtualNodeFits();
  expect(rooms.get('east', 'east')).toBeUndefined();
  const [observed, acting] = [room(true), room(false)];
  const endObserved = rooms.add(observed);
  rooms.add(room(true, 'west'));
  expect(rooms.get('east', 'east')).toBe(observed);
  const endActing = rooms.add(acting);
  expect(rooms.get('east', 'east')).toBe(observed);
  acting.ready = true;
  expect(rooms.get('east', 'east')).toBe(acting);
  endObserved();
  expect(rooms.get('east', 'east')).toBe(acting);
  const again = room(false);
  rooms.add(again);
  expect(rooms.get('east', 'east')).toBe(acting);
  endActing();
  // It says itself that it is not ready, and perhaps why.
  expect(rooms.get('east', 'east')).toBe(again);
});

it('lets only the member answer that the Node stands for', () => {
  const rooms = new VirtualNodeFits();
  const [own, wanting] = [room(true, 'east-gpu'), { ...room(true, 'east-gpu'), member: 'east' }];
  rooms.add(own);
  rooms.add(wanting);
  expect(rooms.get('east-gpu', 'east-gpu')).toBe(own);
  expect(rooms.get('east-gpu', 'east')).toBe(wanting);
  expect(rooms.get('east-gpu', undefined)).toBeUndefined();
});
