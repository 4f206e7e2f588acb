import { type OverridePolicy, type OverridePolicyKind, parseOverridePolicy } from '../api/override-policy.ts';
import type { KubeObject } from '../kube/object.ts';

/** Override policies that can be used; the others are not followed. */
export function readableOverrides(kind: OverridePolicyKind, raw: readonly KubeObject[]): OverridePolicy[] {
  return raw.flatMap((one) => {
    const parsed = parseOverridePolicy(kind, one);
    return 'policy' in parsed ? [parsed.policy] : [];
  });
}
