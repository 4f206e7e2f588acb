import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { fitRequestOf } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import { RandomScheduling } from '../fixtures/random-scheduling.ts';

describe('MemberCapacity, whatever happens in whatever order', () => {
  it('answers like one that is told only how things stand', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 }), (seed) => {
        const random = new RandomScheduling(seed);
        const live = new MemberCapacity({ hostId: 'h' });
        const names = Array.from({ length: 8 }, (_, index) => `n${String(index)}`);
        const nodes = new Map<string, Node>();
        const pods = new Map<string, Pod>();
        const candidates = Array.from({ length: 12 }, (_, index) => random.candidate(`c${String(index)}`, names));
        const requests = candidates.map((pod) => fitRequestOf(pod, 'v'));
        for (let step = 0; step < 60; step++) {
          const name = random.pick(names);
          const podName = `p${String(random.number(0, 25))}`;
          const pod = pods.get(podName);
          if (random.chance(0.3)) {
            const node = random.node(name);
            nodes.set(name, node);
            live.nodeHandler.updated(node);
          } else if (random.chance(0.1)) {
            const node = nodes.get(name);
            nodes.delete(name);
            if (node !== undefined) live.nodeHandler.deleted(node);
          } else if (pod !== undefined && random.chance(0.5)) {
            pods.delete(podName);
            live.podHandler.deleted(pod);
          } else {
            const bound = random.boundPod(podName, name);
            pods.set(podName, { ...bound, metadata: { ...bound.metadata, uid: podName } });
            live.podHandler.updated({ ...bound, metadata: { ...bound.metadata, uid: podName } });
          }
          // Some shapes are asked about early, so that their answers have to be kept up to date.
          live.fits(random.pick(requests));
        }
        const fresh = new MemberCapacity({ hostId: 'h' });
        for (const pod of pods.values()) fresh.podHandler.added(pod);
        for (const node of nodes.values()) fresh.nodeHandler.added(node);
        for (const request of requests) {
          expect(live.fittingNodes(request).toSorted()).toEqual(fresh.fittingNodes(request).toSorted());
          expect(live.fits(request)).toEqual(fresh.fits(request));
          expect(live.slots(request, 1_000)).toBe(fresh.slots(request, 1_000));
          expect(live.slots(request, 1_000) > 0).toBe(live.fits(request).fits);
        }
      }),
      { numRuns: 150 },
    );
  });
});
