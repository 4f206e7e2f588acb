import { describe, expect, it } from 'vitest';
import { roomInWords } from '../../src/cli/room-text.ts';

describe('the room of a member in words', () => {
  it.each([
    [{ cpu: '2', memory: '24632884Ki', pods: '110' }, '2 CPUs, 23Gi of memory, 110 pods'],
    [{ cpu: '15890m', memory: '512Gi', pods: '440' }, '15.8 CPUs, 512Gi of memory, 440 pods'],
    [{}, '0 CPUs, 0 of memory, 0 pods'],
    [undefined, '0 CPUs, 0 of memory, 0 pods'],
  ])('%j', (allocatable, words) => {
    expect(roomInWords(allocatable)).toBe(words);
  });
});
