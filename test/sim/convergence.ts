import {
  GANG_LABEL,
  GANG_SIZE_ANNOTATION,
  MEMBER_LABEL,
  NODE_LABEL,
  RELEASED_ANNOTATION,
} from '../../src/api/marks.ts';
import { isTrue } from '../../src/kube/conditions.ts';
import { lacksClaim, unsettledClaims } from './claims-convergence.ts';
import { unsettledCopies, waitsForObject } from './copies-convergence.ts';
import { asPod, hostUidOf, isFinal, phaseOf } from './pod-shapes.ts';
import { lacksRoom } from './room.ts';
import type { SimObject } from './sim-cluster.ts';
import { PATHS, type World } from './world.ts';

/** Said of pods that do not run until somebody does something about it. */
const HELD: ReadonlySet<string> = new Set([
  'NameTaken',
  'NamespaceNotAllowed',
  'ClaimElsewhere',
  'ClaimLost',
  'ClaimNameTaken',
]);

/** What is not as it should be in the end, in words; nothing when all is. */
export function unsettled(world: World): string[] {
  const problems: string[] = [];
  const copies = new Map<string, { cluster: string; node: string; name: string; phase: string; deleting: boolean }[]>();
  const hostUids = new Set<string>();
  for (const cluster of world.members.values()) {
    for (const object of cluster.list('/api/v1/pods')) {
      const uid = hostUidOf(object);
      if (uid === undefined) continue;
      const deleting = object.metadata.deletionTimestamp !== undefined;
      copies.set(uid, [
        ...(copies.get(uid) ?? []),
        {
          cluster: cluster.name,
          node: object.metadata.labels?.[NODE_LABEL] ?? '',
          name: object.metadata.name,
          phase: phaseOf(object),
          deleting,
        },
      ]);
    }
  }
  const virtual = new Set<string>();
  for (const { metadata } of world.host.list('/api/v1/nodes')) {
    if (metadata.labels?.[MEMBER_LABEL] !== undefined) virtual.add(metadata.name);
  }
  const inUse = new Set<string>();
  for (const object of world.host.list('/api/v1/pods')) {
    const { uid, name, deletionTimestamp } = object.metadata;
    hostUids.add(uid);
    if (object.metadata.annotations?.[RELEASED_ANNOTATION] !== undefined)
      problems.push(`host pod ${name} is out of its ReplicaSet still`);
    const { nodeName } = asPod(object).spec;
    if (nodeName === undefined) {
      const waits = lacksOthers(world, object) || lacksRoom(world, object) || lacksClaim(world, object);
      if (!waits) problems.push(`host pod ${name} is not bound`);
      continue;
    }
    inUse.add(nodeName);
    if (!virtual.has(nodeName)) continue;
    if (!waitsForObject(world, object) && lacksTolerations(object))
      problems.push(`host pod ${name} on ${nodeName} would not outlive an outage`);
    const of = copies.get(uid) ?? [];
    if (deletionTimestamp !== undefined) {
      problems.push(`host pod ${name} on ${nodeName} is still being deleted`);
    } else if (isFinal(object)) {
      if (of.some(({ phase }) => phase === 'Running'))
        problems.push(`host pod ${name} on ${nodeName} is final, its copy runs`);
    } else if (of.length !== 1) {
      if (!isHeld(asPod(object)) && !waitsForObject(world, object))
        problems.push(`host pod ${name} (${phaseOf(object)}) on ${nodeName} has ${of.length} copies`);
    } else if (of[0]?.phase !== phaseOf(object)) {
      problems.push(`host pod ${name} on ${nodeName} is ${phaseOf(object)}, its copy is ${of[0]?.phase}`);
    }
  }
  const wanted = new Set(wantedNodes(world));
  for (const name of virtual) {
    if (!wanted.has(name) && !inUse.has(name)) problems.push(`Node ${name} is not wanted, is empty and still there`);
  }
  for (const name of wanted) {
    if (world.host.get(`${PATHS.nodes}/${name}`) === undefined) problems.push(`Node ${name} is not there`);
  }
  for (const [uid, of] of copies) {
    if (!hostUids.has(uid) && !of.every(({ cluster, node }) => isSaidToBeLeft(world, cluster, node)))
      problems.push(`a copy (${of[0]?.name}) is left in ${of[0]?.cluster} of host pod ${uid}, which is gone`);
  }
  for (const { metadata, status } of world.host.list(PATHS.members) as (SimObject & {
    status?: { taints?: object[]; conditions?: readonly { type: string; status: string }[] };
  })[]) {
    if (world.members.has(metadata.name) && !isTrue({ status }, 'Reachable'))
      problems.push(`${metadata.name} is not known to answer`);
    if ((status?.taints ?? []).length > 0) problems.push(`${metadata.name} has the taint of a policy that is gone`);
  }
  return [...problems, ...unsettledCopies(world), ...unsettledClaims(world)];
}

/** The host pod itself says why it is not there, and that somebody else has to do something. */
function isHeld({ status }: ReturnType<typeof asPod>): boolean {
  const reasons = [status?.reason, ...(status?.containerStatuses ?? []).map(({ state }) => state?.waiting?.reason)];
  return reasons.some((reason) => HELD.has(reason ?? ''));
}

/** A real node took the name of the copy's virtual node: whether its pods live is not known, and administrators are told so. */
function isSaidToBeLeft(world: World, member: string, nodeName: string): boolean {
  const node = world.host.get(`${PATHS.nodes}/${nodeName}`);
  if (node === undefined || node.metadata.labels?.[MEMBER_LABEL] !== undefined) return false;
  const { conditions = [] } = (world.host.get(`${PATHS.members}/${member}`)?.['status'] ?? {}) as {
    conditions?: { type: string; status: string; message: string }[];
  };
  return conditions.some(
    ({ type, status, message }) =>
      type === 'NodesRetired' && status === 'False' && message.includes(`node ${nodeName} `),
  );
}

/** The names of all virtual nodes that specs want. */
function wantedNodes(world: World): string[] {
  return [...world.host.list(PATHS.members)].flatMap(({ metadata: { name }, ...object }) => {
    const { virtualNodes = [] } = (object['spec'] ?? {}) as { virtualNodes?: { name: string }[] };
    return virtualNodes.length === 0 ? [name] : virtualNodes.map((pool) => `${name}-${pool.name}`);
  });
}

/** When nobody serves its node for long, Kubernetes would delete it. */
function lacksTolerations(object: SimObject): boolean {
  if (isFinal(object) || object.metadata.deletionTimestamp !== undefined || isHeld(asPod(object))) return false;
  return ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].some(
    (key) =>
      !(asPod(object).spec.tolerations ?? []).some(
        (toleration) => (toleration.key ?? key) === key && toleration.tolerationSeconds === undefined,
      ),
  );
}

/** It waits for pods of its gang that nobody makes any more: those that are there, and those that succeeded, are too few. */
function lacksOthers({ host }: World, { metadata: { labels, annotations, namespace } }: SimObject): boolean {
  const gang = labels?.[GANG_LABEL];
  if (gang === undefined) return false;
  const others = [...host.list(PATHS.pods(namespace ?? ''))].filter(
    (pod) => pod.metadata.labels?.[GANG_LABEL] === gang && pod.metadata.deletionTimestamp === undefined,
  );
  const count = others.filter((pod) => phaseOf(pod) !== 'Failed').length;
  return count < Number(annotations?.[GANG_SIZE_ANNOTATION]);
}
