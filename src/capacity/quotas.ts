import type { Container } from '../kube/core-v1.ts';
import type { QuotaScope, ResourceQuota } from '../kube/namespace-limits.ts';
import { addTo, formatAmounts, parseAmounts, UNIT } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import { requestsOf } from './fit-request.ts';
import type { FitSpec } from './fit-request.ts';
import { isOfWholePod, podLimits } from './pod-requests.ts';

/** What a pod counts for in quotas, by quota resource such as `requests.cpu`. */
export type QuotaUsage = Amounts;

/** Quota demands that every container says how much it needs of these, if they are limited and the pod does not say it. */
const MUST_BE_SAID = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'];

/** What the pod counts for: itself, its requests and its limits, as quota/v1's pod evaluator has it. */
export function quotaUsageOf(spec: FitSpec): QuotaUsage {
  const limits = podLimits({
    containers: [...spec.containers],
    initContainers: [...spec.initContainers],
    ...(spec.resources === undefined ? {} : { resources: spec.resources }),
    ...(spec.overhead === undefined ? {} : { overhead: spec.overhead }),
  });
  const usage = computeUsage(requestsOf(spec), limits);
  usage.set('count/pods', UNIT);
  return usage;
}

function computeUsage(requests: Amounts, limits: Amounts): Map<string, bigint> {
  const usage = new Map<string, bigint>([['pods', UNIT]]);
  for (const [name, nanos] of requests) {
    if (name === 'pods') continue;
    usage.set(`requests.${name}`, nanos);
    if (!name.includes('/')) usage.set(name, nanos);
  }
  for (const name of ['cpu', 'memory', 'ephemeral-storage']) {
    const nanos = limits.get(name);
    if (nanos !== undefined) usage.set(`limits.${name}`, nanos);
  }
  return usage;
}

export interface QuotaQuestion {
  readonly spec: FitSpec;
  readonly usage: QuotaUsage;
}

/** A quota that leaves less than a pod needs, for people; undefined when none does. `reserved` is what others will use. */
export function whyOverQuota(
  quotas: readonly ResourceQuota[],
  question: QuotaQuestion,
  reserved: Amounts,
): string | undefined {
  for (const quota of quotas) {
    const unsaid = scopesMatch(quota, question.spec) ? whatIsUnsaid(quota, question.spec) : undefined;
    if (unsaid !== undefined) return `quota ${quota.metadata.name}: ${unsaid}`;
    for (const { resource, left, wanted } of limitsFor(quota, question, reserved)) {
      if (wanted > left) {
        const texts = [wanted, left > 0n ? left : 0n].map((nanos) => inWords(resource, nanos));
        return `quota ${quota.metadata.name}: ${texts[0] ?? ''} ${resource} wanted, ${texts[1] ?? ''} left`;
      }
    }
  }
  return undefined;
}

/** How many such pods the quotas leave room for; Infinity when they do not limit it. */
export function slotsInQuota(quotas: readonly ResourceQuota[], question: QuotaQuestion, reserved: Amounts): number {
  let slots = Infinity;
  for (const quota of quotas) {
    if (scopesMatch(quota, question.spec) && whatIsUnsaid(quota, question.spec) !== undefined) return 0;
    for (const { left, wanted } of limitsFor(quota, question, reserved)) {
      slots = Math.min(slots, left > 0n ? Number(left / wanted) : 0);
    }
  }
  return slots;
}

/** Everything of the quota that the pod would use up. */
function* limitsFor(
  quota: ResourceQuota,
  { spec, usage }: QuotaQuestion,
  reserved: Amounts,
): Generator<{ resource: string; left: bigint; wanted: bigint }> {
  if (!scopesMatch(quota, spec)) return;
  const used = parseAmounts(quota.status?.used);
  for (const [resource, hard] of parseAmounts(quota.status?.hard)) {
    const wanted = usage.get(resource);
    if (wanted === undefined || wanted <= 0n) continue;
    yield { resource, wanted, left: hard - (used.get(resource) ?? 0n) - (reserved.get(resource) ?? 0n) };
  }
}

function inWords(resource: string, nanos: bigint): string {
  const name = resource.replace(/^(requests|limits)\./, '');
  return formatAmounts(new Map([[name, nanos]]))[name] ?? '0';
}

function whatIsUnsaid(quota: ResourceQuota, spec: FitSpec): string | undefined {
  const said = [...Object.keys(spec.resources?.requests ?? {}), ...Object.keys(spec.resources?.limits ?? {})];
  if (said.some(isOfWholePod)) return undefined;
  const hard = Object.keys(quota.status?.hard ?? {});
  const required = MUST_BE_SAID.filter((name) => hard.includes(name));
  for (const container of [...spec.containers, ...spec.initContainers]) {
    const usage = usageOfContainer(container);
    const missing = required.find((name) => !usage.has(name));
    if (missing !== undefined) return `container ${container.name} must specify ${missing}`;
  }
  return undefined;
}

function usageOfContainer({ resources }: Container): QuotaUsage {
  return computeUsage(parseAmounts(resources?.requests), parseAmounts(resources?.limits));
}

/** All scopes must match; a quota without scopes is for every pod. */
function scopesMatch({ spec }: ResourceQuota, pod: FitSpec): boolean {
  const plain = (spec?.scopes ?? []).map((scopeName): QuotaScope => ({ scopeName, operator: 'Exists' }));
  return [...plain, ...(spec?.scopeSelector?.matchExpressions ?? [])].every((scope) => scopeMatches(scope, pod));
}

function scopeMatches({ scopeName, operator, values = [] }: QuotaScope, pod: FitSpec): boolean {
  switch (scopeName) {
    case 'Terminating':
      return pod.hasDeadline;
    case 'NotTerminating':
      return !pod.hasDeadline;
    case 'BestEffort':
      return isBestEffort(pod);
    case 'NotBestEffort':
      return !isBestEffort(pod);
    case 'CrossNamespacePodAffinity':
      return pod.crossesNamespaces;
    case 'PriorityClass': {
      const name = pod.priorityClassName ?? '';
      if (operator === 'Exists') return name !== '';
      if (operator === 'DoesNotExist') return name === '';
      return operator === 'In' ? name !== '' && values.includes(name) : name === '' || !values.includes(name);
    }
    default:
      return false;
  }
}

function isBestEffort({ containers, initContainers, resources }: FitSpec): boolean {
  const all = resources === undefined ? [...containers, ...initContainers].map((one) => one.resources) : [resources];
  const asked = all.flatMap((one) => [parseAmounts(one?.requests), parseAmounts(one?.limits)]);
  return !asked.some((amounts) => (amounts.get('cpu') ?? 0n) > 0n || (amounts.get('memory') ?? 0n) > 0n);
}

/** What several pods count for together, kept by namespace. */
export class ReservedQuota {
  readonly #namespaces = new Map<string, Map<string, bigint>>();

  add(namespace: string, usage: QuotaUsage, times: 1n | -1n): void {
    const sum = this.#namespaces.get(namespace) ?? new Map<string, bigint>();
    this.#namespaces.set(namespace, sum);
    addTo(sum, usage, times);
    if (sum.size === 0) this.#namespaces.delete(namespace);
  }

  in(namespace: string): Amounts {
    return this.#namespaces.get(namespace) ?? new Map<string, bigint>();
  }
}
