import type { Mistake } from './mistake.ts';

/** With deletions of many copies at once, whose host pods merely cannot be found. */
export const DELETION_MISTAKES: readonly Mistake[] = [
  {
    name: 'delete-however-many-are-missing',
    rule: /^I2: /,
    edits: [
      {
        file: 'pods/deletion-breaker.ts',
        from: 'if (this.#permits.size >= Math.max(5, Math.floor(total / 10))) {',
        to: 'if (total < 0) {',
      },
    ],
  },
  {
    name: 'forget-that-deletions-are-held-back',
    rule: /^I2: /,
    theme: 'breakers',
    edits: [
      {
        file: 'manager/held-deletions.ts',
        from: '    this.#breakerOpen = wasBreakerOpen(acting.member().status);\n',
        to: '    this.#breakerOpen = wasBreakerOpen(undefined);\n',
      },
    ],
  },
  {
    name: 'count-pods-of-other-pools',
    rule: /^I2: /,
    theme: 'breakers',
    edits: [
      {
        file: 'pods/pod-actor.ts',
        from: '        ownPods: () => copies.all.length,\n',
        to: '        ownPods: () => member.pods.size,\n',
      },
    ],
  },
  {
    name: 'let-the-breaker-rest-unseen',
    rule: /^I2: /,
    theme: 'breakers',
    edits: [
      {
        file: 'pods/kept-pods.ts',
        from: '    if (!sees || hostPods.problem !== undefined || member.pods.problem !== undefined || this.#hasOrphans()) {\n',
        to: '    if (sees && hostPods.problem === member.pods.problem && this.#hasOrphans()) {\n',
      },
    ],
  },
];
