import { parseAmounts, formatAmounts, raiseTo } from '../kube/amounts.ts';
import type { Container, Pod, ResourceList } from '../kube/core-v1.ts';
import { recordOf } from '../kube/json-fields.ts';

/** What each container of a template asks for of what may change while a pod runs (KEP-1287), by its name. */
export type TemplateRequests = Readonly<Record<string, ResourceList>>;

const RESIZABLE = ['cpu', 'memory'];

/** Undefined: nothing. `template`: of pods, as a controller has it. */
export function templateRequests(template: unknown): TemplateRequests | undefined {
  const spec = recordOf(recordOf(template)?.['spec']) ?? {};
  const found: Record<string, ResourceList> = {};
  for (const list of [spec['containers'], spec['initContainers']]) {
    for (const { name, resources: { requests = {}, limits = {} } = {} } of Array.isArray(list)
      ? (list as readonly Container[])
      : []) {
      // Where a container has a limit only, the API server takes that for the request.
      const asked = Object.entries({ ...limits, ...requests }).filter(([resource]) => RESIZABLE.includes(resource));
      if (asked.length > 0) found[name] = Object.fromEntries(asked);
    }
  }
  return Object.keys(found).length === 0 ? undefined : found;
}

/**
 * The next one of its template, as far as requests go: at least what the template asks for, where this pod may have been resized while it
 * ran. What admission gave more of, it will give again; what it took away of a pod that was never changed since, too. The very pod where nothing is to be
 * raised: what is known of its shape goes by the object.
 */
export function asTemplateAsks(pod: Pod, requests: TemplateRequests | undefined): Pod {
  // API servers before 1.34 do not count.
  const wasChanged = (pod.metadata.generation ?? 2) > 1;
  if (requests === undefined || !wasChanged) return pod;
  const raised = (container: Container): Container => {
    const { [container.name]: asked } = requests;
    if (asked === undefined) return container;
    const own = parseAmounts(container.resources?.requests);
    const most = new Map(own);
    raiseTo(most, parseAmounts(asked));
    if ([...most].every(([name, nanos]) => own.get(name) === nanos)) return container;
    return { ...container, resources: { ...container.resources, requests: formatAmounts(most) } };
  };
  const { containers, initContainers } = pod.spec;
  const [next, nextInit] = [containers.map(raised), initContainers?.map(raised)];
  const isRaised = (one: Container, index: number): boolean => one !== containers[index];
  const isInitRaised = (one: Container, index: number): boolean => one !== initContainers?.[index];
  if (!next.some(isRaised) && nextInit?.some(isInitRaised) !== true) return pod;
  const spec = { ...pod.spec, containers: next };
  return { ...pod, spec: nextInit === undefined ? spec : { ...spec, initContainers: nextInit } };
}
