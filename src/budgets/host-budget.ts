import { MEMBER_EVICTIONS_ANNOTATION } from '../api/marks.ts';
import type { PodDisruptionBudget } from '../kube/policy-v1.ts';
import { keyOf } from '../kube/object.ts';
import { type LabelMatcher, labelMatcher } from '../kube/label-matcher.ts';
import { labelSelectorOf } from '../kube/label-selector.ts';
import { type Claims, parseClaims } from './claims.ts';

/** A PodDisruptionBudget of the host, as far as members have to know it. */
export interface HostBudget {
  /** `namespace/name` */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Whether it covers pods of its namespace with these labels. */
  readonly covers: LabelMatcher;
  /** Evictions that the host would grant now; none while its controller has not judged the budget as it is. */
  readonly allowed: number;
  readonly expected: number;
  /** As many pods are healthy as it asks for. */
  readonly isMet: boolean;
  /** Changes whenever the host's controller counts anew and finds something else. */
  readonly mark: string;
  readonly unhealthyPodEvictionPolicy: string | undefined;
  readonly claims: Claims;
}

/**
 * @param covers of the same selector, where that is at hand: as long as anybody likes, and read anew it takes time.
 * @throws SelectorError which API servers do not let come to pass.
 */
export function readHostBudget(budget: PodDisruptionBudget, covers?: LabelMatcher): HostBudget {
  const { metadata, spec, status = {} } = budget;
  const { namespace = '', name, uid = '', resourceVersion = '', generation = 0 } = metadata;
  const counts = [status.disruptionsAllowed, status.currentHealthy, status.desiredHealthy, status.expectedPods];
  const [allowed, healthy, desired, expected] = counts.map(count);
  const isJudged = (status.observedGeneration ?? -1) >= generation;
  return {
    key: keyOf(budget),
    namespace,
    name,
    uid,
    resourceVersion,
    covers: covers ?? labelMatcher(spec.selector === undefined ? undefined : labelSelectorOf(spec.selector)),
    allowed: isJudged ? (allowed ?? 0) : 0,
    expected: expected ?? 0,
    isMet: isJudged && (healthy ?? 0) >= (desired ?? 0),
    mark: [status.observedGeneration, ...counts].join('/'),
    unhealthyPodEvictionPolicy: spec.unhealthyPodEvictionPolicy,
    claims: parseClaims(metadata.annotations?.[MEMBER_EVICTIONS_ANNOTATION]),
  };
}

function count(value: number | undefined): number {
  return Number.isSafeInteger(value) && value !== undefined && value > 0 ? value : 0;
}
