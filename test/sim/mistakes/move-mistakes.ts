import type { Mistake } from './mistake.ts';

/** With pods that leave a cluster, and those that take their places. */
export const MOVE_MISTAKES: readonly Mistake[] = [
  {
    name: 'replace-what-must-not-run-twice',
    rule: /^I11: .*, where it may still run$/,
    theme: 'moves',
    edits: [
      {
        file: 'descheduler/replaceable.ts',
        from: "const REPLACING_AT_ONCE = new Set(['apps/ReplicaSet', '/ReplicationController']);",
        to: "const REPLACING_AT_ONCE = new Set(['apps/ReplicaSet', '/ReplicationController', 'apps/StatefulSet', 'batch/Job']);",
      },
    ],
  },
  {
    name: 'move-out-of-members-that-answer',
    rule: /^I11: .*, which is not lost$/,
    theme: 'moves',
    edits: [
      {
        file: 'placement/lost-members.ts',
        from: 'return reachable === false && mayBeLost;',
        to: 'return reachable !== undefined;',
      },
      {
        file: 'placement/lost-members.ts',
        from: 'return reachable === false && !answers;',
        to: 'return reachable !== undefined;',
      },
      {
        file: 'placement/lost-members.ts',
        from: 'const LARGEST_PART = 0.55;',
        to: 'const LARGEST_PART = 2;',
      },
    ],
  },
  {
    name: 'end-what-is-not-replaced',
    rule: /^I11: .* others of .* are Ready$/,
    theme: 'moves',
    edits: [
      {
        file: 'descheduler/release-rules.ts',
        from: '  if (others < wanted(one)) return undefined;',
        to: "  if (others >= -1) return evicted(one, 'Replaced');",
      },
    ],
  },
  {
    name: 'let-pods-go-before-they-have-what-was-left',
    rule: /^state: /,
    theme: 'moves',
    edits: [
      {
        file: 'scheduler/extender.ts',
        from: '    if (stateless !== undefined) {',
        to: '    if (stateless?.length === 0) {',
      },
      {
        file: 'scheduler/state-giver.ts',
        from: 'const WAIT_MS = 300;',
        to: 'const WAIT_MS = 0;',
      },
    ],
  },
  {
    name: 'forget-what-was-released',
    rule: /^convergence: .* is out of its ReplicaSet still/,
    theme: 'moves',
    edits: [
      {
        file: 'descheduler/descheduler.ts',
        from: '      podCame: seen,\n      podChanged: changed,',
        to: '      podCame: () => undefined,\n      podChanged: changed,',
      },
    ],
  },
  {
    name: 'give-a-cost-that-others-can-get-below',
    rule: /^I11: .* was given back to its ReplicaSet, which ends it, and not the other one$/,
    seed: 1418,
    edits: [
      {
        file: 'descheduler/heal-choice.ts',
        from: '    replacement: isSaid ? undefined : FIRST_TO_GO,\n',
        to: '    replacement: isSaid ? undefined : -1,\n',
      },
    ],
  },
  {
    name: 'move-what-is-only-rehearsed',
    rule: /^I11: .*, which its policy only rehearses$/,
    theme: 'rehearsals',
    edits: [
      {
        file: 'descheduler/rehearsal.ts',
        from: 'failover?.dryRun === true &&',
        to: 'failover === null &&',
      },
    ],
  },
];
