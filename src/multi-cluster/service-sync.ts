import type { EndpointSlice } from '../kube/discovery-v1.ts';
import type { ServiceExport } from '../kube/multicluster-v1.ts';
import { splitKey } from '../kube/object.ts';
import type { ClusterExports } from './cluster-exports.ts';
import type { ImportPlace } from './derived-service.ts';
import type { ExchangedNames } from './exchanged-names.ts';
import type { ExportLimit } from './export-limit.ts';
import { type ExportRecord, judgeExport } from './export-record.ts';
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

export interface ServiceSyncOptions {
  hub: Hub;
  /** Name of the member. */
  member: string;
  names: ExchangedNames;
  limit: ExportLimit;
}

const NO_PART =
  'Services are not exchanged with this cluster. Condition ServicesExchanged of its MemberCluster, in the host, says why, while there is one.';

/** How the member stands in the exchange at the moment. */
export interface ExchangeState {
  readonly followed: Followed;
  readonly takesPart: boolean;
  /** Its ServiceExports are told that it does not. */
  readonly tellsNoPart: boolean;
}

/** Brings one name in line: what the member exports is told to the host, and what others export stands in the member. */
export class ServiceSync {
  /** Why what others export does not stand in the member, by key. */
  readonly refused = new Map<string, ImportProblem>();
  readonly #o: ServiceSyncOptions;

  constructor(options: ServiceSyncOptions) {
    this.#o = options;
  }

  /** Returns whether something is in the way that nothing tells of when it goes. */
  async sync(key: string, state: ExchangeState, signal: AbortSignal): Promise<boolean> {
    const { hub, member, names, limit } = this.#o;
    const { takesPart, tellsNoPart } = state;
    const { exports, local, imported } = state.followed;
    const { namespace = '', name } = splitKey(key);
    const hostKey = names.hostKeyOf(key);
    const isOpen = takesPart && hostKey !== undefined && names.openHostKey(key) !== undefined;
    const known = exports.get(key);
    const told = known?.toldBy === undefined ? known : undefined;
    const exported = takesPart ? told : undefined;
    const judged = exported === undefined || !isOpen ? undefined : this.#judge(exported, key, state.followed);
    const record = judged !== undefined && 'record' in judged ? judged.record : undefined;
    const place: ImportPlace = { hostId: hub.hostId, member, namespace, name };
    let problem: Awaited<ReturnType<Hub['keepRecord']>>;
    if (hostKey !== undefined) {
      const { namespace: hostNamespace = '' } = splitKey(hostKey);
      const inHost = { ...place, member: undefined, namespace: hostNamespace };
      problem = await hub.keepRecord(hostKey, member, record, signal);
      const own = this.#ownSlices(hostKey, local.slicesOf(key), record, inHost);
      problem ??= await this.#tellSlices(hostKey, own, signal);
    }
    const merged = isOpen ? hub.merged(hostKey) : undefined;
    let refused = !takesPart || known?.toldBy === undefined ? undefined : toldByOthers(key, known.toldBy);
    if (merged === undefined || hostKey === undefined || refused !== undefined) await imported.remove(key, signal);
    else {
      refused = await imported.keep(hostKey, merged, place, signal);
      const others = hub.slicesOf(hostKey, (cluster) => cluster !== member).map((slice) => copiedSlice(slice, place));
      const own = this.#ownSlices(hostKey, local.slicesOf(key), record, place);
      if (refused === undefined || (refused.reason === 'ImportRefused' && imported.hasService(key)))
        await imported.keepSlices(key, [...others, ...own], () => true, signal);
    }
    if (refused === undefined) this.refused.delete(key);
    else this.refused.set(key, refused);
    if (exported !== undefined) {
      const outcome = isOpen
        ? outcomeOf(judged, problem, merged, splitKey(hostKey).namespace ?? '')
        : { refusal: { failed: whyClosed(namespace, hostKey) } };
      await exports.tell(exported, outcome, signal);
    } else if (told !== undefined && tellsNoPart) {
      await exports.tell(told, { refusal: { failed: NO_PART } }, signal);
    }
    const isOneTooMany = judged !== undefined && !limit.counts(key, exports);
    return refused !== undefined || isOneTooMany || (problem !== undefined && record !== undefined);
  }

  /** A member may say what the host's API server does not take. */
  async #tellSlices(
    hostKey: string,
    own: readonly EndpointSlice[],
    signal: AbortSignal,
  ): Promise<ImportProblem | undefined> {
    const { hub, member } = this.#o;
    try {
      await hub.keepSlices(hostKey, member, own, signal);
      return undefined;
    } catch (error) {
      return importRefused(error, 'The host does not take its endpoints');
    }
  }

  #judge(exported: ServiceExport, key: string, { exports, local }: Followed): ReturnType<typeof judgeExport> {
    const { limit } = this.#o;
    if (!limit.counts(key, exports)) {
      const failed = `This cluster has more than ${limit.most} ServiceExports, which is more than the host takes: the oldest ones count. It is tried again by itself.`;
      return { refusal: { failed } };
    }
    return judgeExport(exported, local.serviceOf(key), local.slicesOf(key).length);
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

function whyClosed(namespace: string, hostKey: string | undefined): string {
  return hostKey === undefined
    ? `No namespace of the host stands for namespace ${namespace}.`
    : `Namespace ${namespace} is not lent to the host (label spillway.dev/allow-host).`;
}
