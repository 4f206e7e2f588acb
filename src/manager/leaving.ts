import { HOST_LABEL, NODE_LABEL } from '../api/marks.ts';
import { isLeaving, isNodeNameOf } from '../api/member-cluster.ts';
import type { MemberBudgets } from '../budgets/member-budgets.ts';
import type { HostClaims } from '../dependents/host-claims.ts';
import type { MemberVolume } from '../api/member-volume.ts';
import { isToGo } from '../dependents/reclaim.ts';
import { keyFor, keyOf } from '../kube/object.ts';
import { claimStays, claimWaits } from '../members/leaving/leaving-words.ts';
import { MemberLeaving } from '../members/leaving/member-leaving.ts';
import { readMemberRemains } from '../members/leaving/member-remains.ts';
import { NamespaceRemoval } from '../members/leaving/namespace-removal.ts';
import { nameIn, type Remains } from '../members/leaving/remains.ts';
import { removeSigningRequests } from '../members/leaving/signing-requests.ts';
import type { MemberDependents } from './member-dependents.ts';
import { budgetsWereMirrored, servicesWereExchanged, servicesWereMirrored } from '../members/written-status.ts';
import type { MemberNamespaces } from '../members/namespaces.ts';
import type { ActingMember } from './acting-member.ts';
import { isForced, whyNotAsked } from './given-up.ts';
import type { NodeRetirement } from './node-retirement.ts';
import type { MemberExchange } from '../multi-cluster/member-exchange.ts';
import type { MemberServices } from '../services/member-services.ts';
import type { VirtualNodeScope } from './virtual-node.ts';

export interface LeavingOptions {
  acting: ActingMember;
  namespaces: MemberNamespaces;
  dependents: MemberDependents;
  retirement: NodeRetirement;
  budgets: MemberBudgets;
  memberServices: MemberServices;
  exchange: MemberExchange;
  /** Virtual nodes at work. */
  scopes: () => readonly VirtualNodeScope[];
}

/** The end of a MemberCluster that somebody deletes, with all that it has to know of its other parts. */
export function memberLeaving(options: LeavingOptions): MemberLeaving {
  const { acting, dependents, retirement, scopes } = options;
  const { services, connection, standing, member, givenUp, mayWrite, event, logger } = acting;
  const { host, hostId, hostClaims, invariants } = services;
  const { client } = connection;
  const { name, uid = '' } = member().metadata;
  const namespacesThat = (is: (labels: Record<string, string>) => boolean): string[] =>
    [...connection.namespaces.values()].flatMap(({ metadata }) => (is(metadata.labels ?? {}) ? metadata.name : []));
  const isMade = (labels: Record<string, string>): boolean => labels[HOST_LABEL] === hostId;
  const made = (): string[] => (standing.isKnownToBeShared() ? [] : namespacesThat(isMade));
  const isOthersNode = (node: string): boolean => standing.othersWant(node) || !isNodeNameOf(name, node);
  const remains = {
    client,
    hostId,
    namespaces: () => namespacesThat((labels) => options.namespaces.isUsable({ metadata: { name: '', labels } })),
    isOthersNode,
    isOthersWork: (writer: string) => writer !== name && standing.sharesCluster(writer),
    isInUse: dependents.mirror.isInUse.bind(dependents.mirror),
    isShared: standing.isShared,
    isKnownToBeShared: standing.isKnownToBeShared,
    mayHold: () => ({
      budgets: budgetsWereMirrored(member().status),
      services: servicesWereMirrored(member().status),
      imports: servicesWereExchanged(member().status),
      claims: [...volumesIn(hostClaims, name)].length > 0,
    }),
  };
  const removal = new NamespaceRemoval({ client, hostId, invariants });
  return new MemberLeaving({
    member: () => {
      const { forceLeaveSeconds } = services.config;
      return { name, uid, hostId, forced: isForced(member()), forceAfterSeconds: forceLeaveSeconds };
    },
    leaves: () => isLeaving(member()),
    givenUp,
    unreachable: () => whyNotAsked(connection),
    nodes: () => retirement.retiring(),
    nodesKnown: () => (givenUp() ? retirement.nodesKnown : retirement.allKnown),
    podCount: () => scopes().reduce((sum, scope) => sum + (scope.bound.size ?? 0), 0),
    claims: () => (hostClaims.unknown() === undefined ? [...claimsIn(hostClaims, name)] : undefined),
    knownRemains: () => [...knownRemains(options, isOthersNode), ...made().map((one) => `Namespace ${one}`)],
    writtenRemains: () => member().status?.leaving?.mayRemain ?? [],
    readRemains: async (signal) => {
      return withClaims(await readMemberRemains(remains, signal), options);
    },
    namespaces: made,
    removeNamespace: async (one, signal) =>
      standing.isShared()
        ? 'another MemberCluster may stand for the same cluster'
        : await removal.removeIfEmpty(one, signal),
    removeRequests: async (signal) => await removeSigningRequests(host, name, signal),
    mayWrite,
    event,
    logger,
  });
}

/** By name what is in the member, as caches have it and the pods and volumes of the host tell. */
function* knownRemains(
  { acting: { services, connection }, dependents, budgets, memberServices, exchange, scopes }: LeavingOptions,
  isOthersNode: (nodeName: string) => boolean,
): Generator<string> {
  for (const scope of scopes()) for (const copy of scope.bound.copyKeys()) yield `Pod ${copy}`;
  for (const pod of connection.pods.values()) {
    const { labels } = pod.metadata;
    const isOurs = labels?.[HOST_LABEL] === services.hostId && !isOthersNode(labels[NODE_LABEL] ?? '');
    if (isOurs) yield `Pod ${keyOf(pod)}`;
  }
  for (const { namespace, claim } of volumesIn(services.hostClaims, connection.name))
    yield `PersistentVolumeClaim ${namespace}/${claim}`;
  for (const copy of dependents.copies.values()) yield `${copy.kind} ${keyOf(copy)}`;
  for (const { namespace, name } of budgets.inMember()) yield `PodDisruptionBudget ${namespace}/${name}`;
  for (const copy of memberServices.inMember())
    yield `${'addressType' in copy ? 'EndpointSlice' : 'Service'} ${keyOf(copy)}`;
  for (const one of exchange.inMember()) yield `${one.kind ?? 'ServiceImport'} ${keyOf(one)}`;
}

/** Claims of the host whose data are in the member, as `namespace/name`. */
function* claimsIn(hostClaims: HostClaims, member: string): Generator<string> {
  for (const volume of volumesIn(hostClaims, member)) {
    const { namespace, name, uid } = volume.for;
    const key = keyFor(namespace, name);
    if (hostClaims.get(key)?.claim.metadata.uid === uid) yield key;
  }
}

/**
 * With the claims there that go as those of the host are gone, until their volumes have gone, too: nobody would see to them later.
 * Those that the member does not let be deleted are not waited for, like all where nobody may look.
 */
function withClaims(found: Remains, { acting: { services, connection }, dependents }: LeavingOptions): Remains {
  const { hostClaims } = services;
  const [waits, stays, names] = [[...found.copies], [...found.unseen], new Set<string>()];
  for (const volume of volumesIn(hostClaims, connection.name)) {
    const { namespace, name } = volume.for;
    const hostClaimUid = hostClaims.get(keyFor(namespace, name))?.claim.metadata.uid;
    if (volume.identity !== connection.identity() || !isToGo(volume, hostClaimUid)) continue;
    const claim = nameIn('PersistentVolumeClaim', { namespace: volume.namespace, name: volume.claim });
    const problem = dependents.claims.reclaimer.problemOf(volume.name);
    names.add(claim);
    if (problem?.lasts === true) stays.push(`${claim} ${claimStays(volume.name, problem.why)}`);
    else waits.push(problem === undefined ? claim : `${claim} ${claimWaits(volume.name, problem.why)}`);
  }
  return { ...found, copies: waits, unseen: stays, others: found.others.filter((one) => !names.has(one)) };
}

function* volumesIn(hostClaims: HostClaims, member: string): Generator<MemberVolume> {
  for (const { metadata } of hostClaims.volumes()) {
    const volume = hostClaims.volume(metadata.name);
    if (volume?.member === member) yield volume;
  }
}
