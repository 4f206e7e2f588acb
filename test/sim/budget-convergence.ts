import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, MEMBER_LABEL } from '../../src/api/marks.ts';
import { covers, isReady } from './disruption-controller.ts';
import { hostUidOf, isFinal } from './pod-shapes.ts';
import type { SimCluster, SimObject } from './sim-cluster.ts';
import { PATHS, type World } from './world.ts';

const BUDGETS = '/apis/policy/v1/poddisruptionbudgets';

/** What is not as it should be with disruption budgets in the end: each covers its copies, and together they allow what the host does. */
export function unsettledBudgets(world: World): string[] {
  const problems: string[] = [];
  for (const budget of world.host.list(BUDGETS)) {
    const { name, namespace = '' } = budget.metadata;
    const pods = [...world.host.list(`/api/v1/namespaces/${namespace}/pods`)].filter((pod) => covers(budget, pod));
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    let sum = 0;
    let ready = 0;
    for (const cluster of world.members.values()) {
      const mirrors = mirrorsOf(cluster, namespace, name);
      for (const copy of copiesIn(cluster, uids)) {
        ready += isReady(copy) ? 1 : 0;
        const covering = mirrors.filter((mirror) => covers(mirror, copy));
        if (covering.length !== 1)
          problems.push(
            `${covering.length} budgets in ${cluster.name} cover the copy ${copy.metadata.name} for ${name}`,
          );
      }
      for (const mirror of mirrors) {
        sum += allowedBy(mirror);
        if (!copiesIn(cluster, uids).some((copy) => covers(mirror, copy)))
          problems.push(`budget ${name} in ${cluster.name} covers nothing`);
      }
    }
    const allowed = allowedBy(budget);
    if (sum > allowed) problems.push(`members allow ${sum} evictions by ${name}, the host ${allowed}`);
    if (sum === 0 && Math.min(allowed, ready) > 0) problems.push(`no member allows an eviction by ${name}`);
  }
  for (const cluster of world.members.values()) {
    for (const { metadata } of cluster.list(BUDGETS)) {
      const { labels, annotations } = metadata;
      if (
        labels?.[HOST_LABEL] === undefined ||
        world.host.get(`${PATHS.members}/${labels[MEMBER_LABEL]}`) === undefined
      )
        continue;
      const of = `${annotations?.[HOST_NAMESPACE_ANNOTATION]}/poddisruptionbudgets/${annotations?.[HOST_NAME_ANNOTATION]}`;
      if (world.host.get(`/apis/policy/v1/namespaces/${of}`) === undefined)
        problems.push(`budget ${metadata.name} is left in ${cluster.name}`);
    }
  }
  return problems;
}

function mirrorsOf(cluster: SimCluster, namespace: string, name: string): SimObject[] {
  return [...cluster.list(BUDGETS)].filter(({ metadata: { labels, annotations } }) => {
    const isOfIt = annotations?.[HOST_NAMESPACE_ANNOTATION] === namespace && annotations[HOST_NAME_ANNOTATION] === name;
    return isOfIt && labels?.[HOST_LABEL] !== undefined;
  });
}

function copiesIn(cluster: SimCluster, uids: ReadonlySet<string>): SimObject[] {
  return [...cluster.list('/api/v1/pods')].filter((pod) => {
    return uids.has(hostUidOf(pod) ?? '') && !isFinal(pod) && pod.metadata.deletionTimestamp === undefined;
  });
}

function allowedBy({ status }: SimObject & { status?: { disruptionsAllowed?: number } }): number {
  return status?.disruptionsAllowed ?? 0;
}
