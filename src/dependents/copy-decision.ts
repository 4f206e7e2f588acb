import type { KubeObject } from '../kube/object.ts';
import { TOKEN_SECRET_TYPE } from '../pods/translate-tokens.ts';
import { CONTENT_HASH_ANNOTATION, type CopyRecord } from './copy.ts';
import type { CopyPlan } from './copy-overrides.ts';
import type { HostState } from './host-objects.ts';

/** Everything that decides about one copy that pods refer to. */
export interface CopyFacts {
  /** Some pod that refers to it is to run in the member, or runs there. */
  wanted: boolean;
  host: HostState;
  /** Our copy in the member, from a cache that has synced. */
  copy: CopyRecord | undefined;
  /** What override policies make of the host's object. */
  planFor: (object: KubeObject) => CopyPlan;
  /** The copy stays as override policies make it for another MemberCluster. */
  isOthers: (copy: CopyRecord) => boolean;
}

/**
 * `delete` with `confirm`: pods still use the copy; ask the host once more before it goes. `unknown` and `leaving` are
 * waits that end by an event.
 */
export type CopyAction =
  | { do: 'nothing'; because: 'current' | 'absent' | 'unknown' | 'leaving' | 'refused' | 'unwanted' }
  /** A policy cannot be applied. A copy that is there stays as it is. */
  | { do: 'nothing'; because: 'overrides-refused'; message: string }
  /** Two MemberClusters that stand for one cluster cannot each have it their way, nor write it in turns for ever. */
  | { do: 'nothing'; because: 'others' }
  | { do: 'create'; from: KubeObject }
  | { do: 'replace'; from: KubeObject; copy: CopyRecord }
  | { do: 'delete'; copy: CopyRecord; confirm: boolean };

/** Tokens of the host's API server, which a member gets only by a pod's service account mode. */
const TOKEN_TYPES = new Set(['kubernetes.io/service-account-token', TOKEN_SECRET_TYPE]);

/** What has to be done so that the member's copy is as the host's object. Pure. */
export function decideCopy(facts: CopyFacts): CopyAction {
  const { wanted, host, copy } = facts;
  if (copy?.metadata.deletionTimestamp !== undefined) return { do: 'nothing', because: 'leaving' };
  if (host.state === 'unknown') return { do: 'nothing', because: 'unknown' };
  if (host.state === 'absent') {
    return copy === undefined ? { do: 'nothing', because: 'absent' } : { do: 'delete', copy, confirm: true };
  }
  if (isToken(host.object)) {
    return copy === undefined ? { do: 'nothing', because: 'refused' } : { do: 'delete', copy, confirm: false };
  }
  const plan = facts.planFor(host.object);
  if (plan === 'unknown') return { do: 'nothing', because: 'unknown' };
  if ('refused' in plan) return { do: 'nothing', because: 'overrides-refused', message: plan.refused };
  if (copy === undefined) return wanted ? { do: 'create', from: host.object } : { do: 'nothing', because: 'unwanted' };
  const stamp = copy.metadata.annotations?.[CONTENT_HASH_ANNOTATION];
  if (stamp === plan.stamp) return { do: 'nothing', because: 'current' };
  if (rulesIn(stamp) !== rulesIn(plan.stamp) && facts.isOthers(copy)) return { do: 'nothing', because: 'others' };
  // The API server refuses changes of these; the next round creates it anew.
  if (copy.immutable || copy.type !== typeOf(host.object)) return { do: 'delete', copy, confirm: false };
  return { do: 'replace', from: host.object, copy };
}

export function isToken(object: KubeObject): boolean {
  return TOKEN_TYPES.has(typeOf(object) ?? '');
}

/** What of the stamp stands for override rules; undefined: none applied. */
function rulesIn(stamp = ''): string | undefined {
  return stamp.split('.')[1];
}

function typeOf(object: KubeObject): string | undefined {
  return 'type' in object && typeof object.type === 'string' ? object.type : undefined;
}
