import { createHash } from 'node:crypto';
import type { OverridePolicySpec } from '../api/override-policy.ts';
import { GROUP } from '../api/marks.ts';
import { overridersSchema } from '../api/overriders.ts';
import { parsed } from '../api/parse-object.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import { isJsonObject, type JsonObject } from '../kube/json-equal.ts';
import { parseJson, stringifyJson } from '../kube/json.ts';
import type { AppliedRule } from './apply-overrides.ts';
import type { PlannedRule } from './planned-rules.ts';
import type { MatchRank } from './selection.ts';

/** Annotation of a member object: which rules it was made with. JSON, see {@link writeRecord}. */
export const APPLIED_OVERRIDES_ANNOTATION = `${GROUP}/applied-overrides`;

/** Annotations of an object may have 256 KiB together. */
export const MAX_RECORD_BYTES = 64 * 1024;
const VERSION = 1;

/** The same for the same rules with the same values, whatever order their fields were written in. */
export function hashOfRules(rules: readonly PlannedRule[]): string {
  const essence = rules.map(({ policy, rule, overriders }) => [policy, rule, overriders]);
  return createHash('sha256').update(canonicalJson(essence)).digest('base64url').slice(0, 16);
}

/**
 * The value of the annotation for a pod: the rules with their values, so that the pod can be rendered the same way again
 * when its policies are others. Undefined when there are no rules; a length in bytes when it would be too long.
 */
export function writePodRecord(applied: readonly AppliedRule[]): string | undefined | { bytes: number } {
  if (applied.length === 0) return undefined;
  const rules = applied.map(({ policy, rule, rank, applyTo, changes, overriders }) => ({
    policy,
    rule,
    rank,
    ...(applyTo === 'NewPods' ? {} : { applyTo }),
    changes,
    overriders,
  }));
  const text = stringifyJson({ v: VERSION, hash: hashOfRules(applied), rules });
  const bytes = Buffer.byteLength(text);
  return bytes > MAX_RECORD_BYTES ? { bytes } : text;
}

/** Keys of labels and annotations that policies set on a copy. */
export interface SetKeys {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
}

/**
 * The same for a copy of a ConfigMap or Secret: without values, which may be as secret as the copy, and only the rules
 * that changed it, as it follows its policies at once. Undefined when nothing was changed.
 */
export function writeCopyRecord(applied: readonly AppliedRule[], keys: SetKeys): string | undefined {
  const rules = applied.filter(({ changes }) => changes.length > 0);
  if (rules.length === 0) return undefined;
  const named = rules.map(({ policy, rule, changes }) => ({ policy, rule, changes }));
  return stringifyJson({ v: VERSION, hash: hashOfRules(rules), rules: named, keys });
}

/** The keys in what {@link writeCopyRecord} wrote; none when it cannot be read. */
export function readSetKeys(text: string | undefined): SetKeys {
  const keys = jsonObjectIn(text)?.['keys'];
  const list = (field: string): string[] => {
    const value: unknown = isJsonObject(keys) ? keys[field] : undefined;
    return Array.isArray(value) ? value.filter((key) => typeof key === 'string') : [];
  };
  return { labels: list('labels'), annotations: list('annotations') };
}

function jsonObjectIn(text: string | undefined): JsonObject | undefined {
  try {
    const value: unknown = text === undefined ? undefined : parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface PodRecord {
  readonly hash: string;
  readonly rules: readonly PlannedRule[];
}

/** What {@link writePodRecord} wrote. `unreadable`: another version of this program did, or somebody changed it. */
export function readPodRecord(text: string | undefined): PodRecord | 'none' | 'unreadable' {
  if (text === undefined) return 'none';
  const value = jsonObjectIn(text);
  if (value?.['v'] !== VERSION || !Array.isArray(value['rules'])) return 'unreadable';
  const rules: PlannedRule[] = [];
  for (const item of value['rules'] as readonly unknown[]) {
    const rule = readRule(item);
    if (rule === undefined) return 'unreadable';
    rules.push(rule);
  }
  const hash = hashOfRules(rules);
  return hash === value['hash'] ? { hash, rules } : 'unreadable';
}

/** The policies that changed something, as a record names them; for people, whatever else is in the record. */
export function policiesInRecord(text: string | undefined): string[] {
  const list = jsonObjectIn(text)?.['rules'];
  const rules: readonly unknown[] = Array.isArray(list) ? list : [];
  const names = rules.flatMap((rule) => {
    if (!isJsonObject(rule) || !Array.isArray(rule['changes']) || rule['changes'].length === 0) return [];
    return typeof rule['policy'] === 'string' ? [rule['policy']] : [];
  });
  return [...new Set(names)];
}

const APPLY_TO: readonly unknown[] = ['NewPods', 'RunningPods'] satisfies OverridePolicySpec['applyTo'][];

function readRule(item: unknown): PlannedRule | undefined {
  if (!isJsonObject(item)) return undefined;
  const { policy, rule, rank, applyTo = 'NewPods' } = item;
  const overriders = parsed(overridersSchema, item['overriders']);
  if (typeof policy !== 'string' || typeof rule !== 'number' || !overriders.success) return undefined;
  if ((rank !== 1 && rank !== 2 && rank !== 3) || !APPLY_TO.includes(applyTo)) return undefined;
  return {
    policy,
    rule,
    rank: rank satisfies MatchRank,
    applyTo: applyTo as OverridePolicySpec['applyTo'],
    overriders: overriders.data,
  };
}
