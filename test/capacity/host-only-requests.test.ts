import { describe, expect, it } from 'vitest';
import { HostOnlyRequests } from '../../src/capacity/host-only-requests.ts';
import { hostPod } from '../fixtures/pods.ts';

const asking = (cpu: string) =>
  hostPod({ spec: { containers: [{ name: 'app', image: 'i', resources: { requests: { cpu } } }] } });
const offer = {
  capacity: { cpu: '4', memory: '8Gi', pods: '10' },
  allocatable: { cpu: '3500m', memory: '4Gi', pods: '8' },
  nodes: { total: 1, eligible: 1 },
};

describe('HostOnlyRequests', () => {
  it('changes nothing without such pods', () => {
    const requests = new HostOnlyRequests();
    expect(requests.set('a', asking('1'), false)).toBe(false);
    expect(requests.onTopOf(offer)).toBe(offer);
  });

  it('adds what they claim, and raises a capacity that would be less', () => {
    const requests = new HostOnlyRequests();
    expect(requests.set('a', asking('500m'), true)).toBe(true);
    expect(requests.set('b', asking('500m'), true)).toBe(true);
    expect(requests.onTopOf(offer)).toEqual({
      capacity: { cpu: '4500m', memory: '8Gi', pods: '10' },
      allocatable: { cpu: '4500m', memory: '4Gi', pods: '10' },
      nodes: { total: 1, eligible: 1 },
    });
  });

  it('follows changes, ends and deletions', () => {
    const requests = new HostOnlyRequests();
    requests.set('a', asking('500m'), true);
    requests.set('a', asking('1'), true);
    expect(requests.onTopOf(offer).allocatable['cpu']).toBe('4500m');
    expect(requests.set('a', asking('1'), false)).toBe(true);
    expect(requests.onTopOf(offer)).toBe(offer);
    requests.set('a', asking('1'), true);
    const finished = { ...asking('1'), status: { phase: 'Failed' as const } };
    expect(requests.set('a', finished, true)).toBe(true);
    expect(requests.onTopOf(offer)).toBe(offer);
  });
});
