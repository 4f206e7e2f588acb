import { expect, test } from 'vitest';
import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION } from '../../src/api/marks.ts';
import { MemberUses } from '../../src/dependents/member-uses.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

const copy = (annotations: Record<string, string>): Pod => ({
  metadata: { name: 'web-0', namespace: 'shop', labels: { [HOST_LABEL]: 'host-1' }, annotations },
  spec: { containers: [], volumes: [{ name: 'v', configMap: { name: 'settings' } }] },
});
const SETTINGS = { kind: 'ConfigMap', namespace: 'shop', name: 'settings' } as const;

test.each([
  ['names its pod', { [HOST_NAMESPACE_ANNOTATION]: 'shop', [HOST_NAME_ANNOTATION]: 'web-0' }, true],
  ['lost its marks', {}, false],
  ['lost one of them', { [HOST_NAMESPACE_ANNOTATION]: 'shop' }, false],
])('a copy that %s uses what it refers to', (_, annotations, isKnown) => {
  const uses = new MemberUses('host-1', { hasSynced: true, values: () => [copy(annotations)] }, () => 0);
  expect(uses.has(SETTINGS)).toBe(true);
  expect(uses.hasOnly(SETTINGS, new Set(['shop/web-0']))).toBe(isKnown);
});
