import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hostNamespaceFor, isSystemNamespace, memberNamespaceFor } from '../../src/api/namespace-mapping.ts';
import type { NamespaceMapping } from '../../src/api/namespace-mapping.ts';

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const namespaceName = fc
  .stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
  .filter((name) => DNS_LABEL.test(name) && !isSystemNamespace(name));
const prefixText = fc.stringMatching(/^[a-z0-9][-a-z0-9]{0,29}$/).filter((text) => !isSystemNamespace(text));

function mapped(spec: NamespaceMapping, host: string): string {
  const result = memberNamespaceFor(spec, host);
  if ('refused' in result) throw new Error(result.refused);
  return result.namespace;
}
function refusal(spec: NamespaceMapping, host: string): string {
  const result = memberNamespaceFor(spec, host);
  return 'refused' in result ? result.refused : `mapped to ${result.namespace}`;
}

const explicit = [
  { host: 'shop', member: 'lent' },
  { host: 'kube-system', member: 'x' },
];
const long = 'a'.repeat(63);
it.each([
  [{ mapping: 'Same' }, 'shop', 'shop'],
  [{ mapping: 'Same' }, 'kube-system', undefined],
  [{ mapping: 'Prefixed', prefix: 'h-' }, 'h-shop', 'shop'],
  [{ mapping: 'Prefixed', prefix: 'h-' }, 'shop', undefined],
  [{ mapping: 'Prefixed', prefix: 'h-' }, 'h-', undefined],
  [{ mapping: 'Prefixed', prefix: 'h-' }, `h-${long}`.slice(0, 63), undefined],
  [{ mapping: 'Explicit', explicit }, 'lent', 'shop'],
  [{ mapping: 'Explicit', explicit }, 'shop', undefined],
  [{ mapping: 'Explicit', explicit }, 'x', undefined],
] as const)('back from %j %s stands for %s', (spec, member, host) => {
  expect(hostNamespaceFor(spec, member)).toBe(host);
});

describe('memberNamespaceFor', () => {
  it('keeps the name with mapping Same', () => {
    expect(mapped({ mapping: 'Same' }, 'shop')).toBe('shop');
  });

  it('puts the prefix before the name and hashes from 63 characters on', () => {
    const spec: NamespaceMapping = { mapping: 'Prefixed', prefix: 'team-a-' };
    expect(mapped(spec, 'shop')).toBe('team-a-shop');
    expect(mapped(spec, 'x'.repeat(55))).toBe(`team-a-${'x'.repeat(55)}`);
    const long = mapped(spec, 'x'.repeat(56));
    expect(long).toHaveLength(63);
    expect(long).toMatch(/^team-a-x+-[0-9a-f]{16}$/);
  });

  it('gives valid and different names to different namespaces, whatever the prefix', () => {
    fc.assert(
      fc.property(prefixText, namespaceName, namespaceName, (prefix, one, other) => {
        fc.pre(!isSystemNamespace(prefix + one) && !isSystemNamespace(prefix + other));
        const spec: NamespaceMapping = { mapping: 'Prefixed', prefix };
        const first = mapped(spec, one);
        expect(first).toMatch(DNS_LABEL);
        expect(isSystemNamespace(first)).toBe(false);
        expect(first === mapped(spec, other)).toBe(one === other);
      }),
    );
  });

  it('cannot be led to a hashed name by a namespace that is called like one', () => {
    const spec: NamespaceMapping = { mapping: 'Prefixed', prefix: 'p-' };
    const hashed = mapped(spec, 'x'.repeat(63));
    expect(mapped(spec, hashed.slice(2))).not.toBe(hashed);
  });

  it('uses only the listed pairs with mapping Explicit', () => {
    const spec: NamespaceMapping = {
      mapping: 'Explicit',
      explicit: [
        { host: 'shop', member: 'lent-shop' },
        { host: 'a', member: 'shared' },
        { host: 'b', member: 'shared' },
        { host: 'c', member: 'kube-system' },
      ],
    };
    expect(mapped(spec, 'shop')).toBe('lent-shop');
    expect(refusal(spec, 'bank')).toContain('not listed in spec.namespaces.explicit');
    expect(refusal(spec, 'a')).toContain('maps a and b to the same shared');
    expect(refusal(spec, 'c')).toContain('kube-system is a system namespace');
  });

  it.each(['kube-system', 'kube-public', 'kube-anything', 'openshift-etcd', 'spillway-system'])(
    'never takes %s from the host',
    (name) => {
      const explicit = [{ host: name, member: 'fine' }];
      for (const mapping of ['Same', 'Prefixed', 'Explicit'] as const) {
        expect(refusal({ mapping, prefix: 'p-', explicit }, name)).toContain('never mapped');
      }
    },
  );

  it('never lets a prefix lead into a system namespace of the member', () => {
    expect(refusal({ mapping: 'Prefixed', prefix: 'kube-' }, 'system')).toContain('system namespace');
    expect(refusal({ mapping: 'Prefixed', prefix: 'kube' }, '-x')).toContain('not the name of a namespace');
    expect(refusal({ mapping: 'Prefixed', prefix: 'spillway' }, 'x')).toBe('mapped to spillwayx');
    expect(refusal({ mapping: 'Prefixed', prefix: 'spillway-sys' }, 'tem')).toContain('system namespace');
  });

  it.each(['', '../x', 'a/b', 'A', 'a.b', 'x'.repeat(64), '__proto__'])('refuses %j as a name', (name) => {
    expect(refusal({ mapping: 'Same' }, name)).toContain('not the name of a namespace');
  });

  it.each([undefined, '', '-a', 'A', '../', 'x'.repeat(31)])('refuses the prefix %j', (prefix) => {
    const spec: NamespaceMapping = { mapping: 'Prefixed', ...(prefix === undefined ? {} : { prefix }) };
    expect(refusal(spec, 'shop')).toContain('spec.namespaces.prefix');
  });
});
