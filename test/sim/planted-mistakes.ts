/** A mistake to put into a copy of the program: in `file` of src, each `from` becomes its `to`. */
export interface Mistake {
  readonly name: string;
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** A history that shows it; looked for anew when it does so no more. */
  readonly seed?: number;
  /** Histories of this theme show it; no others are looked at. */
  readonly theme?: string;
}

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

/** What every program of this kind gets wrong once. */
export const MISTAKES: readonly Mistake[] = [
  {
    name: 'delete-on-absence',
    edits: [
      {
        file: 'pods/collect-pod.ts',
        from: '  const { memory, monotonic } = options;\n',
        to: "  const { memory, monotonic } = options;\n  if (monotonic() > 0) return { delete: true, evidence: { of: memberPod.metadata.labels?.[UID_LABEL] ?? '', says: 'deletion-watched' }, gracePeriodSeconds: undefined };\n",
      },
    ],
  },
  {
    name: 'let-an-observer-keep-for-itself-who-answered',
    seed: 162,
    edits: [
      {
        file: 'members/member-runner.ts',
        from: '          if (this.#link.leadsTo(address)) this.#link.connection?.toldOf(identity);\n',
        to: '          void [identity, address];\n',
      },
    ],
  },
  {
    name: 'give-a-cost-that-others-can-get-below',
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
    name: 'create-a-finished-pod-again',
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
    seed: 6,
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
    edits: [NO_GUARDS, NO_WRITE_AHEAD],
  },
  {
    name: 'give-up-an-unanswered-creation',
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
    name: 'wait-as-long-as-a-server-says',
    edits: [
      {
        file: 'kube/retry-policy.ts',
        from: 'const LONGEST_RETRY_AFTER_MS = 30_000;',
        to: 'const LONGEST_RETRY_AFTER_MS = 86_400_000;',
      },
    ],
  },
  {
    name: 'believe-a-member-about-our-own-conditions',
    seed: 2,
    edits: [
      {
        file: 'pods/host-status.ts',
        from: 'if (isHostsOwn(condition.type) || gates.has(condition.type)) continue;',
        to: "if (isHostsOwn('') || gates.has(condition.type)) continue;",
      },
    ],
  },
  {
    name: 'write-without-asking-again',
    edits: [{ file: 'kube/exchange.ts', from: '    this.#beforeSend?.();\n', to: '    void this.#beforeSend;\n' }],
  },
  {
    name: 'act-for-a-node-of-others',
    edits: [
      {
        file: 'nodes/node-standing.ts',
        from: '    if (this.#ours) return undefined;\n    return this.#refusal ===',
        to: '    if (this.#owner !== undefined) return undefined;\n    return this.#refusal ===',
      },
      {
        file: 'nodes/node-standing.ts',
        from: "    if (signal.aborted || this.#ours === (wanted === 'ours')) return;\n",
        to: "    if (signal.aborted || wanted === 'ours') return;\n",
      },
    ],
  },
  {
    name: 'forget-in-one-life-what-was-made',
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
    name: 'abandon-pools-that-are-not-wanted',
    edits: [
      {
        file: 'manager/virtual-nodes.ts',
        from: '    for (const { name, nodeSelector } of wantedNodesOf(this.#o.acting.member())) {\n',
        to: '    for (const [name, node] of this.#nodes) if (!this.#o.acting.wantsNode(name)) node.stop.abort();\n    for (const { name, nodeSelector } of wantedNodesOf(this.#o.acting.member())) {\n',
      },
      {
        file: 'manager/node-retirement.ts',
        from: '    if (isWanted(name) || othersWant(name) || !isNodeNameOf(member, name)) return;\n',
        to: '    if (name.length > 0) return;\n',
      },
    ],
  },
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
  {
    name: 'believe-any-shape',
    theme: 'hostile',
    edits: [
      {
        file: 'kube/resource.ts',
        from: '  return (resource.shape ?? anyObject)(object)?.slice(1);\n',
        to: '  return anyObject(object)?.slice(1);\n',
      },
      {
        file: 'kube/status.ts',
        from: "  if (!isRecord(value) || value['kind'] !== 'Status') return undefined;\n",
        to: "  if (!isRecord(value) || value['kind'] !== 'Status') return undefined;\n  if (value['kind'] === 'Status') return value as unknown as Status;\n",
      },
    ],
  },
  {
    name: 'show-what-a-member-says-as-it-is',
    edits: [
      {
        file: 'pods/clean-status.ts',
        from: '  return cleaned(status, 0) as PodStatus;\n',
        to: '  return cleaned(status, MAX_DEPTH + 1) as PodStatus;\n',
      },
    ],
  },
  {
    name: 'leave-pods-to-the-taint-manager',
    edits: [
      {
        file: 'pods/outages/toleration-keeper.ts',
        from: '    return isConcerned(pod) ? missing(pod.spec.tolerations ?? [], this.#o.rule, this.#o.nodeFails()) : [];\n',
        to: '    return isConcerned(pod) ? [] : [];\n',
      },
    ],
  },
  {
    name: 'trust-whoever-answers-for-a-member',
    theme: 'swaps',
    edits: [
      {
        file: 'members/cluster-identity.ts',
        from: '    return !this.#misled && this.#observed !== undefined && this.#observed === this.#pinned();\n',
        to: '    return this.#observed !== undefined && this.#pinned() !== undefined;\n',
      },
    ],
  },
  {
    name: 'trust-whoever-answers-for-the-host',
    theme: 'swaps',
    edits: [
      {
        file: 'host/host-identity.ts',
        from: '    if (this.#other === undefined) return undefined;\n',
        to: '    if (this.#other === undefined || this.#other.length > 0) return undefined;\n',
      },
    ],
  },
  {
    name: 'give-members-tokens-of-the-host',
    theme: 'dependents',
    edits: [
      {
        file: 'dependents/copy-decision.ts',
        from: "  return TOKEN_TYPES.has(typeOf(object) ?? '');\n",
        to: "  return TOKEN_TYPES.size === 0 && TOKEN_TYPES.has(typeOf(object) ?? '');\n",
      },
    ],
  },
  {
    name: 'answer-schedulers-with-an-error',
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
    name: 'replace-what-must-not-run-twice',
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
    name: 'end-without-writing-it-down',
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
    name: 'heed-a-word-about-a-member-that-answers',
    seed: 13,
    theme: 'fencing',
    edits: [
      {
        file: 'members/fencing.ts',
        from: "  if (member === 'answers') return 'Refused';\n  return member === 'silent' ? (before ?? FENCED) : before;",
        to: '  return member === undefined ? before : FENCED;',
      },
      {
        file: 'members/fencing.ts',
        from: "isTainted === true && member === 'silent'",
        to: 'isTainted === true',
      },
    ],
  },
  {
    name: 'forget-what-was-released',
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
    name: 'give-gangs-up-by-an-old-status',
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
    name: 'wait-for-those-that-succeeded',
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
    theme: 'tenants',
    edits: [
      {
        file: 'scheduler/extender.ts',
        from: '    if (missing !== undefined && view.nodes.anyVirtualNode() !== undefined) {\n',
        to: '    if (missing !== undefined && nodeNames.length < 0) {\n',
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
    name: 'go-to-members-reserved-for-others',
    theme: 'tenants',
    edits: [
      {
        file: 'placement/candidates.ts',
        from: '  const taint = whyTainted(cluster, placement.tolerations);\n',
        to: '  const taint = 0 < 1 ? undefined : whyTainted(cluster, placement.tolerations);\n',
      },
    ],
  },
  {
    name: 'evict-whom-a-scheduler-proposes',
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
    seed: 285,
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
    name: 'report-for-ever-what-the-host-drops',
    seed: 27,
    theme: 'crowded',
    edits: [
      {
        file: 'nodes/status-changes.ts',
        from: '  const urgent = redeclared && had.declaredFeatures !== undefined;\n',
        to: '  const urgent = redeclared;\n',
      },
    ],
  },
  {
    name: 'take-names-for-virtual-nodes',
    seed: 20,
    theme: 'crowded',
    edits: [
      {
        file: 'scheduler/host-nodes.ts',
        from: '    if (node !== undefined) return memberOfNode(node);\n',
        to: '    void node;\n',
      },
    ],
  },
];
