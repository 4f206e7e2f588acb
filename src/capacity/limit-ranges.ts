import type { Container, ResourceList } from '../kube/core-v1.ts';
import type { LimitRange, LimitRangeItem } from '../kube/namespace-limits.ts';
import { parseAmounts, UNIT } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import type { FitSpec } from './fit-request.ts';
import { podLimits, podRequests } from './pod-requests.ts';

/**
 * What the LimitRanges of a namespace make of a pod: their defaults filled in, and why admission would refuse it, in
 * words. In the order of their names, as the API server's own order is not known.
 */
export function underLimits(
  spec: FitSpec,
  limitRanges: readonly LimitRange[],
): { spec: FitSpec; refused: string | undefined } {
  const ranges = limitRanges.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  let filled = spec;
  for (const range of ranges) filled = withDefaults(filled, range);
  for (const range of ranges) {
    for (const item of range.spec?.limits ?? []) {
      const why = whyRefused(filled, item);
      if (why !== undefined) return { spec: filled, refused: `limit range ${range.metadata.name}: ${why}` };
    }
  }
  return { spec: filled, refused: undefined };
}

function withDefaults(spec: FitSpec, range: LimitRange): FitSpec {
  const requests: ResourceList = {};
  const limits: ResourceList = {};
  for (const item of range.spec?.limits ?? []) {
    if (item.type !== 'Container') continue;
    Object.assign(requests, item.defaultRequest);
    Object.assign(limits, item.default);
  }
  if (Object.keys(requests).length + Object.keys(limits).length === 0) return spec;
  const fill = (container: Container): Container => ({
    ...container,
    resources: {
      requests: { ...requests, ...container.resources?.requests },
      limits: { ...limits, ...container.resources?.limits },
    },
  });
  return { ...spec, containers: spec.containers.map(fill), initContainers: spec.initContainers.map(fill) };
}

function whyRefused(spec: FitSpec, item: LimitRangeItem): string | undefined {
  if (item.type === 'Pod') {
    const pod = {
      containers: [...spec.containers],
      initContainers: [...spec.initContainers],
      ...(spec.resources === undefined ? {} : { resources: spec.resources }),
    };
    return breach('Pod', item, podRequests({ metadata: { name: '' }, spec: pod }), podLimits(pod));
  }
  if (item.type !== 'Container') return undefined;
  for (const { resources } of [...spec.containers, ...spec.initContainers]) {
    const why = breach('Container', item, parseAmounts(resources?.requests), parseAmounts(resources?.limits));
    if (why !== undefined) return why;
  }
  return undefined;
}

/** The first of its rules that is broken: minimum, maximum, ratio of limit to request. */
function breach(kind: string, item: LimitRangeItem, requests: Amounts, limits: Amounts): string | undefined {
  for (const [name, least] of parseAmounts(item.min)) {
    const [request, limit] = [requests.get(name), limits.get(name)];
    if (request === undefined || request < least || (limit !== undefined && limit < least)) {
      return `a ${kind} must ask for at least ${String(item.min?.[name])} ${name}`;
    }
  }
  for (const [name, most] of parseAmounts(item.max)) {
    const [request, limit] = [requests.get(name), limits.get(name)];
    if (limit === undefined || limit > most || (request !== undefined && request > most)) {
      return `a ${kind} must have a limit of at most ${String(item.max?.[name])} ${name}`;
    }
  }
  for (const [name, most] of parseAmounts(item.maxLimitRequestRatio)) {
    const [request = 0n, limit = 0n] = [requests.get(name), limits.get(name)];
    if (request === 0n || limit === 0n || limit * UNIT > most * request) {
      const ratio = String(item.maxLimitRequestRatio?.[name]);
      return `the ${name} limit of a ${kind} must be at most ${ratio} times its request`;
    }
  }
  return undefined;
}
