import { parsePlacementPolicy } from '../api/placement-policy.ts';
import type { KubeObject } from '../kube/object.ts';
import { compilePolicy, type CompiledPolicy } from '../placement/policy-selection.ts';

/** Placement policies ready for use. Those that cannot be used have no say, as for the scheduler component. */
export function compiledPolicies(raw: readonly KubeObject[]): CompiledPolicy[] {
  return raw.flatMap((object) => {
    const parsed = parsePlacementPolicy(object);
    if (!('policy' in parsed)) return [];
    const policy = compilePolicy(parsed.policy);
    return 'problems' in policy ? [] : [policy];
  });
}
