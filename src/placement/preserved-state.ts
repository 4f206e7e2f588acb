import type { Failover } from '../api/failover.ts';
import { isLabelValue, type StateRule } from '../api/state-preservation.ts';
import { MOST_PRESERVED, type WorkloadPlacementStatus } from '../api/workload-placement.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { parseJsonPath, scalarText, valuesAt } from '../kube/json-path.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';
import type { KeptOwner, TypedObject } from './owner-chain.ts';
import { ruledOutLabels } from './ruled-out-labels.ts';

/** What pods showed when they were moved last, the newest first, as it stands in WorkloadPlacements. */
export type Preserved = NonNullable<WorkloadPlacementStatus['preserved']>;

/** The part of `failover` that a rule stands in: for pods that do not get well, or for all other moves. */
export type StateField = 'application' | 'cluster';

/** The pod that comes in the place of another one. */
export interface Heir {
  /** How it is known: by its name, or as the workload has but one. */
  readonly by: 'sameName' | 'onlyOne';
  /** Labels that it must not be given. */
  readonly ruledOut: ReadonlySet<string>;
}

const FIELDS: readonly StateField[] = ['application', 'cluster'];

export function stateRules(failover: Failover | undefined, field: StateField): readonly StateRule[] {
  return failover?.[field]?.statePreservation?.rules ?? [];
}

/** The labels under which a policy hands anything on. */
export function stateLabels(failover: Failover | undefined): ReadonlySet<string> {
  const rules = FIELDS.flatMap((field) => stateRules(failover, field));
  return new Set(rules.map(({ aliasLabelName }) => aliasLabelName));
}

/** Undefined: nobody can tell which pod comes in the place of this one. */
export function heirOf(pod: Pod, workload: TypedObject, replicas: number | undefined): Heir | undefined {
  const controller = controllerOf(pod);
  if (controller === undefined) return undefined;
  const ruledOut = ruledOutLabels(workload);
  if (controller.kind === 'StatefulSet') return { by: 'sameName', ruledOut };
  const { spec: { completions = 1 } = {} }: KeptOwner = workload;
  // The pods of a Job with several are others, not the same once more.
  return replicas === 1 && (workload.kind !== 'Job' || completions === 1) ? { by: 'onlyOne', ruledOut } : undefined;
}

/** What is not handed on by a rule, and why. */
export interface NotHandedOn {
  readonly rule: StateRule;
  readonly why: string;
}

export interface FoundState {
  readonly labels: Readonly<Record<string, string>>;
  readonly problems: readonly NotHandedOn[];
}

const RULED_OUT =
  'a value is found, but the selector of its workload rules that label out (NotIn, DoesNotExist): its controller could let go of a pod with it, and make another';

/** What rules find in the status of a pod. Of one that finds nothing neither is said. */
export function foundState(
  rules: readonly StateRule[],
  status: unknown,
  { ruledOut }: Pick<Heir, 'ruledOut'>,
): FoundState {
  const labels: Record<string, string> = {};
  const problems: NotHandedOn[] = [];
  for (const rule of rules) {
    const found = valuesAt(parseJsonPath(rule.jsonPath) ?? [], status ?? {});
    const [value] = found;
    if (value === undefined) continue;
    // Programs end what they say with a line break.
    const text = scalarText(value)?.trim();
    if (found.length === 1 && text === '') continue;
    const whyNot = found.length > 1 ? `it finds ${String(found.length)} values` : whyNoLabel(text);
    const why = ruledOut.has(rule.aliasLabelName) ? RULED_OUT : whyNot;
    if (why !== undefined) problems.push({ rule, why });
    else if (text !== undefined) labels[rule.aliasLabelName] = text;
  }
  return { labels, problems };
}

const MOST_CHARACTERS = 63;

function whyNoLabel(text: string | undefined): string | undefined {
  if (text === undefined) return 'it finds no single value, but an object or a list';
  if (isLabelValue(text)) return undefined;
  if (text.length > MOST_CHARACTERS)
    return `the value has ${String(text.length)} characters, and one of a label has at most ${MOST_CHARACTERS}`;
  return 'the value is none that a label may have: letters and digits, and between them ".", "_" and "-"';
}

type Moved = Preserved[number];

/**
 * What is to be written down before a pod is moved; undefined: that stands there already, or there is nothing. Of a rule that finds nothing
 * what the pod before it showed goes on: it may have ended before it could show anything.
 */
export function withState(
  before: Preserved,
  { pod, uid, time }: Pick<Moved, 'pod' | 'uid' | 'time'>,
  { labels, problems }: FoundState,
  { heir, kept }: { heir: Heir; kept: ReadonlySet<string> },
): Preserved | undefined {
  const earlier = entryFor(before, pod, heir);
  const dropped = new Set(problems.map(({ rule }) => rule.aliasLabelName));
  const inherited = Object.entries(earlier?.labels ?? {}).filter(([key]) => kept.has(key) && !dropped.has(key));
  const all = { ...Object.fromEntries(inherited), ...labels };
  if (Object.keys(all).length === 0 && earlier === undefined) return undefined;
  // It was about to be moved before, and was kept.
  if (earlier?.uid === uid && jsonEqual(earlier.labels, all)) return undefined;
  const others = heir.by === 'onlyOne' ? [] : before.filter((one) => one !== earlier);
  if (Object.keys(all).length === 0) return others;
  return [{ pod, uid, time, labels: all }, ...others].slice(0, MOST_PRESERVED);
}

/** The same where nobody can tell which pod comes in the place of the one that is moved: nothing that was there is handed on then. */
export function withoutState(before: Preserved): Preserved | undefined {
  return before.length === 0 ? undefined : [];
}

function entryFor(preserved: Preserved, pod: string, { by }: Heir): Moved | undefined {
  return by === 'onlyOne' ? preserved[0] : preserved.find((one) => one.pod === pod);
}

export interface HandedOn {
  /** Those that the pod is to get yet. */
  readonly labels: Readonly<Record<string, string>>;
  /** Those that it has by itself, with another value, or must not have: a selector may go by them. */
  readonly taken: readonly string[];
}

/** What the pod is to have of the one in whose place it comes; `kept`: the labels that its policy names today. */
export function handedOn(
  { metadata: { name, uid, labels = {} } }: Pod,
  preserved: Preserved,
  { heir, kept }: { heir: Heir; kept: ReadonlySet<string> },
): HandedOn {
  const own = new Map(Object.entries(labels));
  const entry = entryFor(preserved, name, heir);
  const given = entry === undefined || entry.uid === uid ? [] : Object.entries(entry.labels);
  const meant = given.filter(([key, value]) => kept.has(key) && own.get(key) !== value);
  const isTaken = (key: string): boolean => own.has(key) || heir.ruledOut.has(key);
  return {
    labels: Object.fromEntries(meant.filter(([key]) => !isTaken(key))),
    taken: meant.map(([key]) => key).filter(isTaken),
  };
}
