import type { Mistake } from './mistake.ts';

/** The last look before a write would stop what decides wrongly: where a mistake is to show, it is blind. */
const NO_GUARDS = {
  file: 'pods/pod-writes.ts',
  from: '    if (violation !== undefined) throw invariants.violated(violation.invariant, violation.what, about);\n',
  to: '    void violation;\n',
};
const NO_SYNC_GUARD = {
  file: 'pods/pod-writes.ts',
  from: '    if (!hostPods.hasSynced || (!member.pods.hasSynced && !isFenced)) {',
  to: '    if (hostPods === undefined) {',
};

/** Nothing is written down before a creation is sent. */
const NO_WRITE_AHEAD = {
  file: 'pods/creation-intent.ts',
  from: '  const { restartPolicy } = spec;\n',
  to: '  const { restartPolicy } = spec;\n  if (restartPolicy !== undefined) return false;\n',
};

/** With the life of a pod and its copy: made twice, deleted without reason, forgotten. */
export const POD_LIFE_MISTAKES: readonly Mistake[] = [
  {
    name: 'delete-on-absence',
    rule: /^(I1|I2): /,
    edits: [
      {
        file: 'pods/collect-pod.ts',
        from: '  const { memory, monotonic } = options;\n',
        to: "  const { memory, monotonic } = options;\n  if (monotonic() > 0) return { delete: true, evidence: { of: memberPod.metadata.labels?.[UID_LABEL] ?? '', says: 'deletion-watched' }, gracePeriodSeconds: undefined };\n",
      },
    ],
  },
  {
    name: 'create-a-finished-pod-again',
    rule: /^(once|I6|I9): /,
    edits: [
      NO_GUARDS,
      {
        file: 'pods/decide.ts',
        from: '  if (isFinished(hostPod)) return finished(own, facts);\n',
        to: "  if (isFinished(hostPod) && own === undefined) return { do: 'create', hostPod };\n  if (isFinished(hostPod)) return finished(own, facts);\n",
      },
    ],
  },
  {
    name: 'adopt-a-stranger',
    rule: /^(I15|I4|I5): /,
    edits: [
      NO_GUARDS,
      {
        file: 'pods/decide.ts',
        from: '  const own = ours ? memberPod : undefined;\n',
        to: '  const own = memberPod;\n',
      },
    ],
  },
  {
    name: 'act-before-sync',
    rule: /^I7: /,
    seed: 13,
    edits: [
      NO_GUARDS,
      NO_SYNC_GUARD,
      {
        file: 'pods/decide.ts',
        from: "  if (facts.frozen !== undefined) return { do: 'wait', why: facts.frozen };\n",
        to: "  if (facts.frozen !== undefined && facts.frozen !== 'the caches are not complete yet') return { do: 'wait', why: facts.frozen };\n",
      },
      {
        file: 'pods/pod-controller.ts',
        from: '      await Promise.all([hostPods.whenSynced(signal), member.pods.whenSynced(signal)]).catch(() => undefined);\n',
        to: '',
      },
    ],
  },
  {
    name: 'forget-a-deletion',
    rule: /^convergence: .*a copy \(.*\) is left in /,
    edits: [
      {
        file: 'pods/decide.ts',
        from: "  return { do: 'collect', memberPod, deletionSeen: facts.hostDeletionSeen(uid) };\n",
        to: "  return facts.hostDeletionSeen(uid) ? { do: 'collect', memberPod, deletionSeen: true } : { do: 'nothing' };\n",
      },
    ],
  },
  {
    name: 'forget-what-was-made',
    rule: /^(once|I6): /,
    edits: [NO_GUARDS, NO_WRITE_AHEAD],
  },
  {
    name: 'give-up-an-unanswered-creation',
    rule: /^(ghost: |convergence: .*a copy \(.*\) is left in )/,
    theme: 'creations',
    edits: [
      NO_GUARDS,
      {
        file: 'pods/unanswered-creation.ts',
        from: 'until: Math.max(same?.until ?? 0, now + openMs),',
        to: 'until: now + 0 * openMs,',
      },
      { file: 'pods/unanswered-creation.ts', from: 'until: now + OPEN_CREATION_MS,', to: 'until: now,' },
    ],
  },
  {
    name: 'forget-in-one-life-what-was-made',
    rule: /^(once|I6): /,
    edits: [
      NO_GUARDS,
      NO_WRITE_AHEAD,
      {
        file: 'pods/catch-up.ts',
        from: '  else if (memory.created?.uid !== uid) memory.created = { of, uid, at: now };\n',
        to: '  else delete memory.created;\n',
      },
    ],
  },
  {
    name: 'end-without-writing-it-down',
    rule: /^fenced: /,
    seed: 39,
    theme: 'fencing',
    edits: [
      NO_GUARDS,
      {
        file: 'pods/pod-ending.ts',
        from: '    if (!(await fencing.tell(hostPod, signal))) {',
        to: '    if (hostPod === undefined) {',
      },
    ],
  },
  {
    name: 'write-what-is-there-already',
    rule: /^I8: /,
    edits: [
      {
        file: 'pods/status-patch.ts',
        from: '    if (before === undefined || !jsonEqual(before, condition)) changes.push(withRemovals(before, condition));\n',
        to: '    if (before === undefined || before.type === wanted.type) changes.push(withRemovals(before, condition));\n',
      },
    ],
  },
  {
    name: 'fail-what-waits-for-its-member',
    rule: /^I10: /,
    edits: [
      NO_GUARDS,
      {
        file: 'pods/hold-patch.ts',
        from: "      ...(wasIgnored ? { phase: 'Pending' } : {}),\n",
        to: "      ...(reason === 'MemberUnreachable' ? { phase: 'Failed' } : wasIgnored ? { phase: 'Pending' } : {}),\n",
      },
    ],
  },
];
