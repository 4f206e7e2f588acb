import { HOST_LABEL, HOST_NAMESPACE_ANNOTATION } from '../../src/api/marks.ts';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import { referencesOf, refersTo } from './oracles/references.ts';
import { asPod, hostUidOf, isFinal } from './pod-shapes.ts';
import type { SimObject } from './sim-cluster.ts';
import type { World } from './world.ts';

const PLURALS = { ConfigMap: 'configmaps', Secret: 'secrets' } as const;

/** Copies of ConfigMaps and Secrets that are not as the host's objects, are missing, or that nobody needs, in words. */
export function unsettledCopies(world: World): string[] {
  const problems: string[] = [];
  const live = new Map<string, SimObject>();
  for (const pod of world.host.list('/api/v1/pods')) {
    if (!isFinal(pod) && pod.metadata.deletionTimestamp === undefined) live.set(pod.metadata.uid, pod);
  }
  for (const cluster of world.members.values()) {
    for (const copy of cluster.list('/api/v1/pods')) {
      const pod = live.get(hostUidOf(copy) ?? '');
      if (pod === undefined) continue;
      for (const { kind, name } of referencesOf(pod)) {
        const place = (namespace = ''): string => `/api/v1/namespaces/${namespace}/${PLURALS[kind]}/${name}`;
        const source = world.host.get(place(pod.metadata.namespace));
        const there = cluster.get(place(copy.metadata.namespace));
        if (source === undefined || isToken(source)) continue;
        if (there === undefined) problems.push(`${kind} ${name} of ${pod.metadata.name} is not in ${cluster.name}`);
        else if (!jsonEqual(source['data'], there['data'])) {
          problems.push(`${kind} ${name} of ${pod.metadata.name} is not as the host's in ${cluster.name}`);
        }
      }
    }
    for (const kind of ['ConfigMap', 'Secret'] as const) {
      for (const { metadata } of cluster.list(`/api/v1/${PLURALS[kind]}`)) {
        if (metadata.labels?.[HOST_LABEL] === undefined) continue;
        const namespace = metadata.annotations?.[HOST_NAMESPACE_ANNOTATION];
        const isNeeded =
          world.host
            .list('/api/v1/pods')
            .some((pod) => pod.metadata.namespace === namespace && refersTo(pod, kind, metadata.name)) ||
          cluster
            .list(`/api/v1/namespaces/${metadata.namespace ?? ''}/pods`)
            .some((pod) => refersTo(pod, kind, metadata.name));
        if (!isNeeded) problems.push(`a copy of ${kind} ${metadata.name} is left in ${cluster.name}`);
      }
    }
  }
  return problems;
}

/** The host pod says that it waits for an object, which indeed is not to be had. */
export function waitsForObject(world: World, pod: SimObject): boolean {
  const { status } = asPod(pod);
  const reasons = [status?.reason, ...(status?.containerStatuses ?? []).map(({ state }) => state?.waiting?.reason)];
  return referencesOf(pod).some(({ kind, name, optional }) => {
    const source = world.host.get(`/api/v1/namespaces/${pod.metadata.namespace ?? ''}/${PLURALS[kind]}/${name}`);
    return source === undefined
      ? !optional && reasons.includes(`Mandatory${kind}NotFound`)
      : isToken(source) && reasons.includes('ServiceAccountTokenNotAvailable');
  });
}

function isToken(object: SimObject): boolean {
  return object['type'] === 'kubernetes.io/service-account-token';
}
