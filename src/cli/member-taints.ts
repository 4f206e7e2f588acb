import { DRAIN_TAINT, NOT_READY_TAINT, UNREACHABLE_TAINT, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import { clusterTaintsOf, type MemberCluster } from '../api/member-cluster.ts';
import type { Node } from '../kube/core-v1.ts';
import { someOf } from '../kube/some-of.ts';
import { HARD_EFFECTS, type Taint, taintInWords } from '../kube/taints.ts';

/** What people and policies said that keeps pods off a member, or has them moved out of it. */
export interface MemberTaints {
  /** Virtual nodes that are to be emptied; `null`: the viewer may not know. */
  drained: string[] | null;
  /** All other such taints of the member as a whole and of its virtual nodes, but for those that the spec gives a pool. As kubectl shows them. */
  taints: string[];
}

/** Others tell of those: Ready, Reachable and OutOfService of the member, its cordon, its taintMode. */
const TOLD_ELSEWHERE: ReadonlySet<string> = new Set([VIRTUAL_NODE_TAINT, UNREACHABLE_TAINT, NOT_READY_TAINT]);

/** @param own virtual nodes of the member; undefined: not allowed */
export function memberTaints(member: MemberCluster | undefined, own: readonly Node[] | undefined): MemberTaints {
  const spec = member?.spec.taints ?? [];
  const ofPools = (member?.spec.virtualNodes ?? []).flatMap(({ taints }) => taints);
  // Of effect NoExecute those of the spec stand on Nodes as NoSchedule.
  const known = [...spec, ...ofPools];
  const others = (own ?? [])
    .flatMap(({ spec: node }) => node?.taints ?? [])
    .filter((taint) => isOfSomebody(taint) && !known.some((one) => isLike(one, taint)));
  const all = [...spec, ...(member === undefined ? [] : clusterTaintsOf(member)), ...others];
  return {
    drained: own === undefined ? null : own.filter(isToBeEmptied).map(({ metadata }) => metadata.name),
    taints: [...new Set(all.filter(({ effect }) => HARD_EFFECTS.includes(effect)).map(taintInWords))],
  };
}

/** With another effect the taint empties nothing. */
export function isToBeEmptied({ spec }: Node): boolean {
  return (spec?.taints ?? []).some(({ key, effect }) => key === DRAIN_TAINT && HARD_EFFECTS.includes(effect));
}

/** `drained: taint spillway.dev/drain on node east; tainted example.com/degraded:NoSchedule`; '' without any. */
export function taintsInWords({ drained, taints }: MemberTaints): string {
  const nodes = drained ?? [];
  return [
    ...(nodes.length === 0
      ? []
      : [`drained: taint ${DRAIN_TAINT} on node${nodes.length === 1 ? '' : 's'} ${someOf(nodes)}`]),
    ...(taints.length === 0 ? [] : [`tainted ${someOf(taints)}`]),
  ].join('; ');
}

function isOfSomebody({ key }: Taint): boolean {
  return key !== DRAIN_TAINT && !TOLD_ELSEWHERE.has(key) && !key.startsWith('node.kubernetes.io/');
}

function isLike(a: Taint, b: Taint): boolean {
  return a.key === b.key && (a.value ?? '') === (b.value ?? '');
}
