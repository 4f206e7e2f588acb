import type { EndpointSlice } from '../kube/discovery-v1.ts';
import type { ServiceExport } from '../kube/multicluster-v1.ts';
import { keyOf, splitKey } from '../kube/object.ts';
import type { ClusterExports } from './cluster-exports.ts';
import type { ImportPlace } from './derived-service.ts';
import type { ExchangedNames } from './exchanged-names.ts';
import { type ExportLimit, oldestExports } from './export-limit.ts';
import { type ExportRecord, type ExportRefusal, judgeExport } from './export-record.ts';
import { ExportRoom, exportSize } from './export-room.ts';
import { outcomeOf } from './host-exchange.ts';
import type { Hub } from './hub.ts';
import { copiedSlice, importedSlices } from './imported-slices.ts';
import { type ImportedServices, importRefused, type ImportProblem, toldByOthers } from './imported-services.ts';
import type { MemberLocalServices } from './member-local-services.ts';
import { acceptedPorts } from './merged-service.ts';

/** What is read of the member while Services are exchanged with it. */
export interface Followed {
  readonly exports: ClusterExports;
  readonly local: MemberLocalServices;
  readonly imported: ImportedServices;
}

export interface NameSyncOptions {
  hub: Hub;
  /** Name of the member. */
  member: string;
  names: ExchangedNames;
  limit: ExportLimit;
  /** What the member may export together, in bytes as exportSize counts. */
  mostBytes: number;
}

/** `isBeyond`: the member exports more than it may, and nothing tells of when it does no more. */
type Judged = ReturnType<typeof judgeExport> | { refusal: ExportRefusal; isBeyond: true };

const MIB = 1024 * 1024;
const NO_PART =
  'Services are not exchanged with this cluster. Condition ServicesExchanged of its MemberCluster, in the host, says why, while there is one.';

/** How the member stands in the exchange at the moment. */
export interface ExchangeState {
  readonly followed: Followed;
  readonly takesPart: boolean;
  /** Its ServiceExports are told that it does not. */
  readonly tellsNoPart: boolean;
  /** Does what takes a right in the member, unless that is missing: the rest is done all the same. */
  readonly ifAllowed: (right: ExchangeRight, write: () => Promise<void>) => Promise<void>;
}

/** In a member: to have what others export, and to tell its ServiceExports. An owner may give the former in some namespaces only. */
export type ExchangeRight = 'imports' | 'tells';

/** Brings one name in line: what the member exports is told to the host, and what others export stands in the member. */
export class NameSync {
  /** Why what others export does not stand in the member, by key. */
  readonly refused = new Map<string, ImportProblem>();
  readonly #o: NameSyncOptions;
  #room: { readonly of: Followed; readonly room: ExportRoom } | undefined;

  constructor(options: NameSyncOptions) {
    this.#o = options;
  }

  /** Returns whether something is in the way that nothing tells of when it goes. */
  async sync(key: string, state: ExchangeState, signal: AbortSignal): Promise<boolean> {
    const { hub, member, names } = this.#o;
    const { takesPart, tellsNoPart, ifAllowed } = state;
    const { exports, local, imported } = state.followed;
    const { namespace = '', name } = splitKey(key);
    const hostKey = names.hostKeyOf(key);
    const isOpen = takesPart && hostKey !== undefined && names.openHostKey(key) !== undefined;
    const known = exports.get(key);
    const told = known?.toldBy === undefined ? known : undefined;
    const exported = takesPart ? told : undefined;
    const room = this.#roomOf(state.followed);
    // They may change meanwhile, and what is told is what was judged.
    const slices = local.slicesOf(key);
    const judged =
      exported === undefined || !isOpen ? undefined : this.#judge(exported, { key, hostKey, slices }, state.followed);
    const record = judged !== undefined && 'record' in judged ? judged.record : undefined;
    if (record === undefined) room.give(key);
    const place: ImportPlace = { hostId: hub.hostId, member, namespace, name };
    let problem: Awaited<ReturnType<Hub['keepRecord']>>;
    if (hostKey !== undefined) {
      const { namespace: hostNamespace = '' } = splitKey(hostKey);
      const inHost = { ...place, member: undefined, namespace: hostNamespace };
      problem = await hub.keepRecord(hostKey, member, record, signal);
      const own = this.#ownSlices(hostKey, slices, record, inHost);
      problem ??= await keptSlices('The host does not take its endpoints', async () => {
        return await hub.keepSlices(hostKey, member, own, signal);
      });
      if (problem !== undefined && !hub.knows(hostKey, member)) room.give(key);
    }
    const merged = isOpen ? hub.merged(hostKey) : undefined;
    await ifAllowed('imports', async () => {
      let refused = !takesPart || known?.toldBy === undefined ? undefined : toldByOthers(key, known.toldBy);
      if (merged === undefined || hostKey === undefined || refused !== undefined) await imported.remove(key, signal);
      else {
        refused = await imported.keep(hostKey, merged, place, signal);
        // Whoever has the address of our Service would be led to where its endpoints were.
        if (refused?.reason === 'ImportTaken') await imported.remove(key, signal);
        const others = hub.slicesOf(hostKey, (cluster) => cluster !== member).map((slice) => copiedSlice(slice, place));
        const own = this.#ownSlices(hostKey, slices, record, place);
        if (refused === undefined || (refused.reason !== 'ImportTaken' && imported.hasService(key))) {
          const unled = await keptSlices(`EndpointSlices of ${key} cannot stand there`, async () => {
            return await imported.keepSlices(key, [...others, ...own], () => true, signal);
          });
          refused = unled ?? refused;
        }
      }
      if (refused === undefined) this.refused.delete(key);
      else this.refused.set(key, refused);
    });
    await ifAllowed('tells', async () => {
      if (exported !== undefined) {
        const outcome = isOpen
          ? outcomeOf(judged, problem, merged, splitKey(hostKey).namespace ?? '')
          : { refusal: { failed: whyClosed(namespace, hostKey) } };
        await exports.tell(exported, outcome, signal);
      } else if (told !== undefined && tellsNoPart) {
        await exports.tell(told, { refusal: { failed: NO_PART } }, signal);
      }
    });
    const isBeyond = judged !== undefined && 'isBeyond' in judged;
    return this.refused.has(key) || isBeyond || (problem !== undefined && record !== undefined);
  }

  #judge(
    exported: ServiceExport,
    { key, hostKey, slices }: { key: string; hostKey: string; slices: readonly EndpointSlice[] },
    followed: Followed,
  ): Judged {
    const { hub, member, limit, mostBytes } = this.#o;
    const { exports, local } = followed;
    if (!limit.counts(key, exports)) {
      const failed = `This cluster has more than ${limit.most} ServiceExports, which is more than the host takes: the oldest ones count. It is tried again by itself.`;
      return { refusal: { failed }, isBeyond: true };
    }
    const judged = judgeExport(exported, local.serviceOf(key), slices.length);
    if (!('record' in judged)) return judged;
    const bytes = exportSize(judged.record, slices);
    if (this.#roomOf(followed).take(key, bytes, hub.knows(hostKey, member))) return judged;
    const failed = `With this Service the cluster would export more than ${mostBytes / MIB} MiB of ports and endpoints, which is more than the host takes: what is exported already stays. Export fewer Services, or such with fewer endpoints. It is tried again by itself.`;
    return { refusal: { failed }, isBeyond: true };
  }

  /** Those that others know of have their room first, the oldest ones before others: a restart changes nothing. */
  #roomOf(followed: Followed): ExportRoom {
    if (this.#room?.of === followed) return this.#room.room;
    const { hub, member, names, mostBytes } = this.#o;
    const { exports, local } = followed;
    const room = new ExportRoom(mostBytes);
    this.#room = { of: followed, room };
    const told = [...exports.values()].filter((one) => {
      const hostKey = names.openHostKey(keyOf(one));
      return hostKey !== undefined && hub.knows(hostKey, member);
    });
    for (const key of oldestExports(told, told.length)) {
      const exported = exports.get(key);
      const slices = local.slicesOf(key);
      const judged = exported && judgeExport(exported, local.serviceOf(key), slices.length);
      if (judged !== undefined && 'record' in judged) room.take(key, exportSize(judged.record, slices), true);
    }
    return room;
  }

  #ownSlices(
    hostKey: string,
    slices: readonly EndpointSlice[],
    record: ExportRecord | undefined,
    place: ImportPlace,
  ): EndpointSlice[] {
    const merged = this.#o.hub.merged(hostKey);
    if (record === undefined || merged === undefined) return [];
    const ports = record.ports.length === 0 ? undefined : acceptedPorts(record, merged);
    return importedSlices({ hostKey, type: merged.type, cluster: this.#o.member, slices, ports }, place);
  }
}

/** A cluster may say what the API server of another one does not take. */
async function keptSlices(
  what: string,
  keep: () => Promise<ImportProblem | undefined>,
): Promise<ImportProblem | undefined> {
  try {
    return await keep();
  } catch (error) {
    return importRefused(error, what);
  }
}

function whyClosed(namespace: string, hostKey: string | undefined): string {
  return hostKey === undefined
    ? `No namespace of the host stands for namespace ${namespace}.`
    : `Namespace ${namespace} is not lent to the host (label spillway.dev/allow-host).`;
}
