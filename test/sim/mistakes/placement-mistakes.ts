import type { Mistake } from './mistake.ts';

/** With where pods may go, and with answers to schedulers. */
export const PLACEMENT_MISTAKES: readonly Mistake[] = [
  {
    name: 'answer-schedulers-with-an-error',
    rule: /^extender: /,
    seed: 6,
    edits: [
      {
        file: 'scheduler/extender-server.ts',
        from: '    response.status(200).json(refusalTo(verb, why));\n',
        to: '    response.status(500).json(refusalTo(verb, why));\n',
      },
    ],
  },
  {
    name: 'give-gangs-up-by-an-old-status',
    rule: /^I11: .*, where all of its gang ran$/,
    theme: 'gangs',
    edits: [
      {
        file: 'scheduler/gangs/gang-keeper.ts',
        from: 'this.#judgeFrom = clock() + followedMs;',
        to: 'this.#judgeFrom = clock() - followedMs;',
      },
      {
        file: 'scheduler/gangs/gang-keeper.ts',
        from: 'const hasNode = await places.hasNode(pod, signal);',
        to: 'const hasNode = signal.aborted ? undefined : false;',
      },
    ],
  },
  {
    name: 'give-gangs-up-beside-the-mover',
    rule: /^mover: /,
    seed: 1477,
    theme: 'gangs',
    edits: [
      {
        file: 'manager/scheduler.ts',
        from: '    await Promise.all([descheduler.run(held), gangs(held)]);',
        to: '    await descheduler.run(held);',
      },
      {
        file: 'manager/scheduler.ts',
        from: '        descheduler.watch(signal),\n',
        to: "        descheduler.watch(signal),\n        whileHeld(services, 'spillway-gangs', logger, signal, async (held, still) => {\n          isHeld = still;\n          await gangs(held);\n        }),\n",
      },
    ],
  },
  {
    name: 'wait-for-those-that-succeeded',
    rule: /^convergence: .* is not bound/,
    theme: 'gangs',
    edits: [
      {
        file: 'scheduler/gangs/gang.ts',
        from: '  const succeeded = succeededKin(pods, all.filter(isFinished));\n',
        to: '  const succeeded = 0 * succeededKin(pods, all.filter(isFinished));\n',
      },
    ],
  },
  {
    name: 'believe-that-a-gang-has-its-place',
    rule: /^residence: .* has to be in /,
    theme: 'tenants',
    edits: [
      {
        file: 'placement/gang-order.ts',
        from: 'tier.whyNot(cluster) ?? whyNoShare(cluster) ?? whyFull(cluster),',
        to: 'whyFull(cluster),',
      },
    ],
  },
  {
    name: 'pass-over-daemon-sets-of-any-group',
    rule: /^residence: .* has to be in /,
    theme: 'tenants',
    edits: [
      {
        file: 'scheduler/daemon-pod.ts',
        from: '  if (owner === undefined || !isDaemonSet(owner)) return false;\n',
        to: "  if (owner?.kind === 'DaemonSet') return true;\n  if (owner === undefined || !isDaemonSet(owner)) return false;\n",
      },
    ],
  },
  {
    name: 'take-owners-that-are-not-known-for-none',
    rule: /^residence: .* has to be in /,
    theme: 'tenants',
    edits: [
      {
        file: 'scheduler/extender.ts',
        from: '    if (unknown !== undefined && view.nodes.anyVirtualNode() !== undefined)\n',
        to: '    if (unknown !== undefined && nodeNames.length < 0)\n',
      },
      {
        file: 'scheduler/owner-directory.ts',
        from: '    if (missing === undefined) return undefined;\n    const started',
        to: '    if (missing !== undefined) return missing.owner;\n    if (missing === undefined) return undefined;\n    const started',
      },
    ],
  },
  {
    name: 'wait-half-a-second-for-each-owner',
    rule: /^waiting: /,
    theme: 'tenants',
    edits: [
      {
        file: 'scheduler/wait-budget.ts',
        from: '    const taken = Math.min(ms, this.#left);\n',
        to: '    const taken = ms;\n',
      },
      {
        file: 'scheduler/owner-look-up.ts',
        from: '    if (resource === undefined || isTooSoon || this.#underWay >= AT_ONCE) return;\n',
        to: '    if (resource === undefined || isTooSoon || this.#underWay >= 0) return;\n',
      },
    ],
  },
  {
    name: 'forget-pods-whose-volumes-are-made',
    rule: /^residence: .*, where one of them may be$/,
    seed: 926,
    theme: 'tenants',
    edits: [
      {
        file: 'scheduler/attempts.ts',
        from: '  static readonly HOLD_MS = 15 * 60_000;\n',
        to: '  static readonly HOLD_MS = 10_000;\n',
      },
    ],
  },
  {
    name: 'divide-one-seat-after-the-other',
    rule: /^busy: /,
    seed: 164,
    theme: 'tenants',
    edits: [
      {
        file: 'placement/highest-averages.ts',
        from: '    if (Math.abs(left) > FEW) left = this.#leap(counts, total);\n',
        to: '    if (Math.abs(left) < 0) left = this.#leap(counts, total);\n',
      },
    ],
  },
  {
    name: 'take-restrictions-away-by-namespaces',
    rule: /^bounds: .*, which holds the pod of the host back$/,
    seed: 21,
    theme: 'tenants',
    edits: [
      {
        file: 'overrides/apply-overrides.ts',
        from: '  if (lost !== undefined) {\n',
        to: "  if (lost === '') {\n",
      },
    ],
  },
  {
    name: 'let-what-tolerates-everything-leave-the-host',
    rule: /^opt-in: /,
    seed: 21,
    theme: 'tenants',
    edits: [
      {
        file: 'admission/pod-defaults.ts',
        from: '    ...(concerned ? [] : stayOnHost(spec)),\n',
        to: '',
      },
    ],
  },
  {
    name: 'tolerate-in-members-what-the-pod-does-not',
    rule: /^bounds: .* tolerates /,
    seed: 21,
    theme: 'tenants',
    edits: [
      {
        file: 'pods/translate-constraints.ts',
        from: '  if (more !== undefined) {\n',
        to: '  if (more === null) {\n',
      },
    ],
  },
  {
    name: 'go-to-members-reserved-for-others',
    rule: /^residence: .*, whose member is reserved for others$/,
    theme: 'tenants',
    edits: [
      {
        file: 'placement/candidates.ts',
        from: '  const taint = whyTainted(cluster, placement.tolerations);\n',
        to: '  const taint = 0 < 1 ? undefined : whyTainted(cluster, placement.tolerations);\n',
      },
    ],
  },
];
