import type { OverridePolicy } from '../api/override-policy.ts';
import type { KubeObject } from '../kube/object.ts';
import { applyRules } from '../overrides/apply-overrides.ts';
import { APPLIED_OVERRIDES_ANNOTATION, hashOfRules, writeCopyRecord } from '../overrides/override-record.ts';
import { planRules, type PlannedRule } from '../overrides/planned-rules.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import type { Cluster } from '../api/cluster.ts';
import { CONTENT_HASH_ANNOTATION, contentHash, copyOf } from './copy.ts';
import type { DependentKind } from '../pods/references.ts';

/** Policies of the host that change copies on their way to the member. */
export interface CopyOverridesPort {
  /** Set until they have been read: nothing is written before. */
  unknown(): object | undefined;
  /** Those that may concern objects of a namespace. The same list until one of them changes. */
  policies(hostNamespace: string): readonly OverridePolicy[];
  /** What policies know of the member. The same object until something of it changes. */
  member(): Cluster;
}

/** What the copy of an object has to carry as {@link CONTENT_HASH_ANNOTATION}, or why there can be none. */
export type CopyPlan = 'unknown' | { refused: string } | { stamp: string };

interface Planned {
  policies: unknown;
  member: unknown;
  plan: CopyPlan;
  rules: readonly PlannedRule[];
}

/** What the host's override policies make of copies. An edited policy is another stamp, so copies follow at once. */
export class CopyOverrides {
  readonly #port: CopyOverridesPort | undefined;
  readonly #plans = new WeakMap<KubeObject, Planned>();

  /** Without a port there are no policies. */
  constructor(port?: CopyOverridesPort) {
    this.#port = port;
  }

  planFor(kind: DependentKind, hostObject: KubeObject): CopyPlan {
    return this.#planned(kind, hostObject).plan;
  }

  /** The copy as the policies make it, with its stamp and what was applied. */
  applyTo(kind: DependentKind, hostObject: KubeObject, copy: KubeObject): KubeObject {
    const { plan, rules } = this.#planned(kind, hostObject);
    if (this.#port === undefined || rules.length === 0) return copy;
    const outcome = applyRules(copy, rules, { subject: subjectOf(kind, hostObject), member: this.#port.member() });
    if ('refused' in outcome) throw new Error(outcome.refused.message);
    const { object, applied } = outcome;
    const keys = { labels: newKeys(copy, object, 'labels'), annotations: newKeys(copy, object, 'annotations') };
    const record = writeCopyRecord(applied, keys);
    const annotations = {
      ...object.metadata.annotations,
      [CONTENT_HASH_ANNOTATION]: stampOf(plan),
      ...(record === undefined ? {} : { [APPLIED_OVERRIDES_ANNOTATION]: record }),
    };
    return { ...object, metadata: { ...object.metadata, annotations } };
  }

  #planned(kind: DependentKind, hostObject: KubeObject): Planned {
    const port = this.#port;
    if (port === undefined) return unplanned({ stamp: contentHash(hostObject) });
    if (port.unknown() !== undefined) return unplanned('unknown');
    const [policies, member] = [port.policies(hostObject.metadata.namespace ?? ''), port.member()];
    const known = this.#plans.get(hostObject);
    if (known !== undefined && known.policies === policies && known.member === member) return known;
    const made = { ...this.#make(kind, hostObject, policies, member), policies, member };
    this.#plans.set(hostObject, made);
    return made;
  }

  /** Tried on a copy, so that what is refused is known before anything is written. */
  #make(
    kind: DependentKind,
    hostObject: KubeObject,
    policies: readonly OverridePolicy[],
    member: Cluster,
  ): Pick<Planned, 'plan' | 'rules'> {
    const subject = subjectOf(kind, hostObject);
    const plan = planRules(subject, policies, member);
    // Labels of the object itself are always known.
    if ('unknown' in plan) return unplanned('unknown');
    if ('refused' in plan) return unplanned({ refused: plan.refused.message });
    const content = contentHash(hostObject);
    const copy = copyOf(kind, hostObject, { hostId: '', member: '', memberNamespace: '' });
    const trial = applyRules(copy, plan.rules, { subject, member });
    if ('refused' in trial) return unplanned({ refused: trial.refused.message });
    // Many rules are for everything and change nothing here: an edit of those is no reason to write.
    const rules = trial.applied.filter(({ changes }) => changes.length > 0);
    return { plan: { stamp: rules.length === 0 ? content : `${content}.${hashOfRules(rules)}` }, rules };
  }
}

function stampOf(plan: CopyPlan): string {
  if (plan === 'unknown' || 'refused' in plan) throw new Error('a copy without a plan has no rules');
  return plan.stamp;
}

function unplanned(plan: CopyPlan): Planned {
  return { plan, rules: [], policies: undefined, member: undefined };
}

function subjectOf(kind: DependentKind, { metadata }: KubeObject): OverrideSubject {
  const { name, namespace = '', labels = {} } = metadata;
  return { namespace, identities: [{ apiVersion: 'v1', kind, name, labels }] };
}

/** Keys that policies set, and that have to go when they do not any more. */
function newKeys(before: KubeObject, after: KubeObject, field: 'labels' | 'annotations'): string[] {
  const [had, has] = [before.metadata[field] ?? {}, after.metadata[field] ?? {}];
  return Object.keys(has).filter((key) => had[key] !== has[key]);
}
