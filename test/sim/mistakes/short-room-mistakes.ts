import type { Mistake } from './mistake.ts';

/** With pods of different priority where room is short. */
export const SHORT_ROOM_MISTAKES: readonly Mistake[] = [
  {
    name: 'evict-whom-a-scheduler-proposes',
    rule: /^(preemption|tiers|room): /,
    seed: 27,
    theme: 'crowded',
    edits: [
      {
        file: 'scheduler/preemption.ts',
        from: '    if (isMadeForItsNode(pod, chain) || view.nodes.anyVirtualNode() === undefined) return evicting(victims);\n',
        to: '    if (view.hasSynced) return evicting(victims);\n',
      },
    ],
  },
  {
    name: 'evict-all-that-are-less-important',
    rule: /^preemption: .*, fewer would do$/,
    seed: 1646,
    theme: 'crowded',
    edits: [
      {
        file: 'capacity/victims.ts',
        from: '    if (room.fits()) continue;\n',
        to: '',
      },
    ],
  },
  {
    name: 'leave-dedicated-nodes-out',
    rule: /^convergence: .* is not bound/,
    seed: 20,
    theme: 'crowded',
    edits: [
      {
        file: 'capacity/eligible-nodes.ts',
        from: 'return dedicatingTaints(node).every((taint) => isAmong(taint, pool.taints)) ?',
        to: 'return dedicatingTaints(node).length === 0 ?',
      },
    ],
  },
  {
    name: 'give-every-pod-another-cost',
    rule: /^costs: /,
    seed: 313,
    theme: 'crowded',
    edits: [
      {
        file: 'placement/cost-places.ts',
        from: '  for (let index = ends.at(-1); index !== undefined; index = before[index]) kept.add(index);\n',
        to: '',
      },
      {
        file: 'placement/cost-numbers.ts',
        from: 'low === undefined ? (high ?? GAP) - count * GAP : low + GAP',
        to: '(low ?? 0) + GAP',
      },
    ],
  },
  {
    name: 'offer-what-the-member-counts',
    rule: /^(room: |convergence: .* is not bound)/,
    seed: 305,
    theme: 'crowded',
    edits: [
      {
        file: 'capacity/ledger.ts',
        from: 'const room = roomLeft(sums, pool, name) + (bound.get(name) ?? 0n);',
        to: 'const room = roomLeft(sums, pool, name) + (sums.ours.get(name) ?? 0n);',
      },
    ],
  },
  {
    name: 'count-the-time-behind-gates',
    rule: /^tiers: .* is to wait for room in /,
    seed: 182,
    theme: 'crowded',
    edits: [
      {
        file: 'scheduler/pod-waits.ts',
        from: '    if (since !== undefined) return this.#monotonic() - since;\n',
        to: '',
      },
    ],
  },
  {
    name: 'take-clusters-that-were-not-asked-about-for-full',
    rule: /^division: /,
    seed: 370,
    theme: 'nominated',
    edits: [
      {
        file: 'scheduler/extender.ts',
        from: "const asIfAll = leftOut === 'none' || leftOut === 'byOthers';",
        to: "const asIfAll = leftOut !== 'perhaps';",
      },
    ],
  },
  {
    name: 'forget-what-the-host-counts',
    rule: /^preemption: .*, which does not fit then$/,
    seed: 3448,
    theme: 'nominated',
    edits: [{ file: 'capacity/host-count.ts', from: 'if (more.size === 0) return request;', to: 'return request;' }],
  },
  {
    name: 'count-what-is-kept-for-the-pod-itself',
    rule: /^convergence: .* is not bound/,
    seed: 285,
    theme: 'nominated',
    edits: [{ file: 'scheduler/nominees.ts', from: 'return [own, ...lower];', to: 'return lower;' }],
  },
];
