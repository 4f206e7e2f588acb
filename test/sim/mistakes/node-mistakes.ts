import type { Mistake } from './mistake.ts';

/** With virtual nodes. */
export const NODE_MISTAKES: readonly Mistake[] = [
  {
    name: 'act-for-a-node-of-others',
    rule: /^whose-node: /,
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
    name: 'abandon-pools-that-are-not-wanted',
    rule: /^(I17: |convergence: .*(is left in|and still there|is still being deleted))/,
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
    name: 'leave-pods-to-the-taint-manager',
    rule: /^convergence: .* would not outlive an outage/,
    edits: [
      {
        file: 'pods/outages/toleration-keeper.ts',
        from: '    return isConcerned(pod) ? missing(pod.spec.tolerations ?? [], this.#o.rule, this.#o.nodeFails()) : [];\n',
        to: '    return isConcerned(pod) ? [] : [];\n',
      },
    ],
  },
  {
    name: 'report-for-ever-what-the-host-drops',
    rule: /^reports: /,
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
    rule: /^convergence: .* is not bound/,
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
