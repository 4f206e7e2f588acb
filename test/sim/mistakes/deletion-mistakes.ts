import type { Mistake } from './mistake.ts';

/** With deletions of many copies at once, whose host pods merely cannot be found. */
export const DELETION_MISTAKES: readonly Mistake[] = [
  {
    name: 'delete-however-many-are-missing',
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
    seed: 8325,
    theme: 'vanishing',
    edits: [
      {
        file: 'manager/held-deletions.ts',
        from: '    this.#breakerOpen = wasBreakerOpen(acting.member().status);\n',
        to: '    this.#breakerOpen = wasBreakerOpen(undefined);\n',
      },
    ],
  },
];
