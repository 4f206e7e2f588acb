import { isFinished } from '../api/pod-phase.ts';
import type { Container, ContainerStatus, Pod, PodSpec, ResourceList } from '../kube/core-v1.ts';
import { addTo, formatAmounts, parseAmounts, raiseTo, UNIT } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import { conditionOf, unscheduledOf } from '../kube/conditions.ts';

/** Finished pods hold nothing; all others hold their requests until they are gone, being deleted or not. */
export function holdsResources(pod: Pod): boolean {
  return !isFinished(pod);
}

/** The scheduler of its cluster has found no node for the pod. */
export function isUnschedulable(pod: Pod): boolean {
  return unscheduledOf(pod)?.reason === 'Unschedulable';
}

/**
 * What a pod takes of its node, as kube-scheduler counts it (component-helpers' PodRequests plus `pods: 1`): the sum of
 * the containers and sidecars, or the largest step of the init sequence if that is more (KEP-753); pod-level requests in
 * place of that where given (KEP-2837); plus overhead. Of a resize under way the larger of wanted, allocated and actual
 * counts (KEP-1287). A missing request is zero.
 */
export function podRequests(pod: Pod): Amounts {
  const { containers, initContainers = [], overhead } = pod.spec;
  const infeasible = resizeIsInfeasible(pod);
  const statuses = statusesByName(pod);
  const demandOf = (container: Container): Amounts =>
    demand(container.resources?.requests, statuses?.get(container.name), infeasible);

  const sum = sumOverContainers(containers, initContainers, demandOf, ({ resources }) =>
    parseAmounts(resources?.requests),
  );
  applyPodLevel(pod, sum, infeasible);
  if (overhead !== undefined) addTo(sum, parseAmounts(overhead));
  sum.set('pods', UNIT);
  return sum;
}

/**
 * The spec with requests that come to {@link podRequests} of the pod without its status, for those who keep only that. Of a pod with all
 * that it asks for, which nearly all are, it is the spec itself.
 */
export function grantedSpec(pod: Pod): PodSpec {
  const { containers, initContainers, resources } = pod.spec;
  const statuses = statusesByName(pod);
  const { resources: actual, allocatedResources } = pod.status ?? {};
  if (statuses === undefined && (resources === undefined || actual === undefined)) return pod.spec;
  const infeasible = resizeIsInfeasible(pod);
  const granted = (container: Container): Container => {
    const requests = counted(container.resources?.requests, statuses?.get(container.name), infeasible);
    return requests === container.resources?.requests
      ? container
      : { ...container, resources: { ...container.resources, ...(requests === undefined ? {} : { requests }) } };
  };
  const asked = resources?.requests;
  const level = counted(asked, { resources: actual, allocatedResources }, infeasible);
  return {
    ...pod.spec,
    containers: containers.map(granted),
    ...(initContainers === undefined
      ? {}
      : { initContainers: initContainers.map((one) => (one.restartPolicy === 'Always' ? granted(one) : one)) }),
    // For the whole pod counts only what is asked for it.
    ...(asked === undefined || level === asked
      ? {}
      : {
          resources: { requests: Object.fromEntries(Object.keys(asked).map((name) => [name, level?.[name] ?? '0'])) },
        }),
  };
}

/** What counts of these requests; the list itself where it says just that, which needs no arithmetic. */
function counted(
  requests: ResourceList | undefined,
  granted: Granted | undefined,
  infeasible: boolean,
): ResourceList | undefined {
  if (granted?.resources === undefined) return requests;
  const lists = [granted.resources.requests ?? {}, granted.allocatedResources ?? {}];
  const isAsked = lists.every((list) => Object.entries(list).every(([name, amount]) => requests?.[name] === amount));
  if (isAsked && !infeasible) return requests;
  return formatAmounts(demand(requests, granted, infeasible));
}

/**
 * The limits of a pod, as quota counts them: summed up like requests; pod-level limits in place of that where given; and
 * overhead on top where there is a limit at all.
 */
export function podLimits({ containers, initContainers = [], resources, overhead }: PodSpec): Amounts {
  const limitsOf = (container: Container): Map<string, bigint> => parseAmounts(container.resources?.limits);
  const sum = sumOverContainers(containers, initContainers, limitsOf, limitsOf);
  for (const [name, nanos] of parseAmounts(resources?.limits)) if (isOfWholePod(name)) sum.set(name, nanos);
  for (const [name, nanos] of parseAmounts(overhead)) {
    const limit = sum.get(name) ?? 0n;
    if (limit > 0n) sum.set(name, limit + nanos);
  }
  return sum;
}

/** All containers and sidecars together, or the largest step of the init sequence where that is more (KEP-753). */
function sumOverContainers(
  containers: readonly Container[],
  initContainers: readonly Container[],
  amountsOf: (container: Container) => Amounts,
  amountsOfStep: (container: Container) => Map<string, bigint>,
): Map<string, bigint> {
  const sum = new Map<string, bigint>();
  for (const container of containers) addTo(sum, amountsOf(container));
  const sidecars = new Map<string, bigint>();
  const largestStep = new Map<string, bigint>();
  for (const container of initContainers) {
    if (container.restartPolicy === 'Always') {
      const amounts = amountsOf(container);
      addTo(sum, amounts);
      addTo(sidecars, amounts);
      raiseTo(largestStep, sidecars);
    } else {
      const step = amountsOfStep(container);
      addTo(step, sidecars);
      raiseTo(largestStep, step);
    }
  }
  raiseTo(sum, largestStep);
  return sum;
}

/** What can be requested for a pod as a whole (KEP-2837). */
export function isOfWholePod(resource: string): boolean {
  return resource === 'cpu' || resource === 'memory' || resource.startsWith('hugepages-');
}

/** Pod-level requests exist for these resources only, and replace what the containers come to. */
function applyPodLevel(pod: Pod, sum: Map<string, bigint>, infeasible: boolean): void {
  const requests = pod.spec.resources?.requests;
  if (requests === undefined) return;
  const { resources, allocatedResources } = pod.status ?? {};
  const status = resources === undefined ? undefined : { resources, allocatedResources };
  const wanted = demand(requests, status, infeasible);
  for (const name of Object.keys(requests)) {
    if (isOfWholePod(name)) sum.set(name, wanted.get(name) ?? 0n);
  }
}

interface Granted {
  resources?: { requests?: ResourceList } | undefined;
  allocatedResources?: ResourceList | undefined;
}

function demand(requests: ResourceList | undefined, granted: Granted | undefined, infeasible: boolean): Amounts {
  const wanted = parseAmounts(requests);
  if (granted?.resources === undefined) return wanted;
  const result = infeasible ? new Map<string, bigint>() : wanted;
  raiseTo(result, parseAmounts(granted.resources.requests));
  raiseTo(result, parseAmounts(granted.allocatedResources));
  return result;
}

function resizeIsInfeasible(pod: Pod): boolean {
  const condition = conditionOf(pod, 'PodResizePending');
  return condition?.reason === 'Infeasible';
}

/** Only statuses that say something about resources; most pods have none that differ, so most get no map. */
function statusesByName(pod: Pod): Map<string, ContainerStatus> | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  let found: Map<string, ContainerStatus> | undefined;
  for (const status of [...containerStatuses, ...initContainerStatuses]) {
    if (status.resources === undefined) continue;
    found ??= new Map();
    found.set(status.name, status);
  }
  return found;
}
