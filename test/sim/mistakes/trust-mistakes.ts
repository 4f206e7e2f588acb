import type { Mistake } from './mistake.ts';

/** With what other clusters say, and which ones they are. */
export const TRUST_MISTAKES: readonly Mistake[] = [
  {
    name: 'let-an-observer-keep-for-itself-who-answered',
    rule: /^I3: /,
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
    name: 'trust-whoever-answers-for-a-member',
    rule: /^I3: /,
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
    rule: /^I3: /,
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
    name: 'heed-a-word-about-a-member-that-answers',
    rule: /^I9: .* removes host pod /,
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
    name: 'believe-a-member-about-our-own-conditions',
    rule: /^own-conditions: /,
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
    name: 'believe-any-shape',
    rule: /^(alive|shape): /,
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
    rule: /^text: /,
    edits: [
      {
        file: 'pods/clean-status.ts',
        from: '  return cleaned(status, 0) as PodStatus;\n',
        to: '  return cleaned(status, MAX_DEPTH + 1) as PodStatus;\n',
      },
    ],
  },
  {
    name: 'give-members-tokens-of-the-host',
    rule: /^I13: .*, the token of a service account$/,
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
    name: 'wait-as-long-as-a-server-says',
    rule: /^asking: /,
    edits: [
      {
        file: 'kube/retry-policy.ts',
        from: 'const LONGEST_RETRY_AFTER_MS = 30_000;',
        to: 'const LONGEST_RETRY_AFTER_MS = 86_400_000;',
      },
    ],
  },
  {
    name: 'write-without-asking-again',
    rule: /^(fencing|I3): /,
    edits: [{ file: 'kube/exchange.ts', from: '    this.#beforeSend?.();\n', to: '    void this.#beforeSend;\n' }],
  },
];
