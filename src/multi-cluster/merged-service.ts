import { LOCAL } from '../api/cluster-tiers.ts';
import type { ImportPort, ImportType } from '../kube/multicluster-v1.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { type ExportRecord } from './export-record.ts';

/** The reasons of condition `Conflict` of KEP-1645, in the order in which they are told. */
const CONFLICTS = [
  'TypeConflict',
  'PortConflict',
  'SessionAffinityConflict',
  'SessionAffinityConfigConflict',
  'InternalTrafficPolicyConflict',
  'TrafficDistributionConflict',
  'IPFamilyConflict',
] as const;
export type Conflict = (typeof CONFLICTS)[number];

/** One Service of several clusters, as all of them see it. */
export interface MergedService {
  readonly type: ImportType;
  readonly ports: ImportPort[];
  readonly ipFamilies: ExportRecord['ipFamilies'];
  readonly sessionAffinity: string;
  readonly affinitySeconds?: number;
  readonly internalTrafficPolicy?: string;
  readonly trafficDistribution?: string;
  /** The clusters that export it, by name. */
  readonly clusters: string[];
  /** The one that all others follow where they differ. */
  readonly leader: string;
  /** In what they differ. */
  readonly conflicts: Conflict[];
}

/**
 * What the exports of one name come to (KEP-1645): a union of ports, and in all else, and where ports do not go together, what the
 * leader says. It is the host, where it exports the name, so that no member changes what the host's Service is; then the
 * oldest export. Undefined: nobody exports it.
 */
export function mergeExports(records: ReadonlyMap<string, ExportRecord>): MergedService | undefined {
  const ordered = [...records].toSorted(
    ([a, { since: sinceA }], [b, { since: sinceB }]) =>
      Number(b === LOCAL) - Number(a === LOCAL) || Date.parse(sinceA) - Date.parse(sinceB) || (a < b ? -1 : 1),
  );
  const [first, ...rest] = ordered;
  if (first === undefined) return undefined;
  const [leader, lead] = first;
  const found = new Set(rest.flatMap(([, one]) => [...conflictsOf(lead, one)]));
  return {
    type: lead.type,
    ports: unionOfPorts(ordered.map(([, { ports }]) => ports)),
    ipFamilies: lead.ipFamilies,
    sessionAffinity: lead.sessionAffinity,
    ...(lead.affinitySeconds === undefined ? {} : { affinitySeconds: lead.affinitySeconds }),
    ...(lead.internalTrafficPolicy === undefined ? {} : { internalTrafficPolicy: lead.internalTrafficPolicy }),
    ...(lead.trafficDistribution === undefined ? {} : { trafficDistribution: lead.trafficDistribution }),
    clusters: ordered.map(([name]) => name).toSorted(),
    leader,
    conflicts: CONFLICTS.filter((one) => found.has(one)),
  };
}

function* conflictsOf(lead: ExportRecord, one: ExportRecord): Generator<Conflict> {
  if (one.type !== lead.type) yield 'TypeConflict';
  if (!jsonEqual(sorted(one.ports), sorted(lead.ports))) yield 'PortConflict';
  if (one.sessionAffinity !== lead.sessionAffinity) yield 'SessionAffinityConflict';
  else if (one.affinitySeconds !== lead.affinitySeconds) yield 'SessionAffinityConfigConflict';
  if (one.internalTrafficPolicy !== lead.internalTrafficPolicy) yield 'InternalTrafficPolicyConflict';
  if (one.trafficDistribution !== lead.trafficDistribution) yield 'TrafficDistributionConflict';
  if (!jsonEqual(one.ipFamilies.toSorted(), lead.ipFamilies.toSorted())) yield 'IPFamilyConflict';
}

const nameOf = ({ name = '' }: ImportPort): string => name;
const protocolOf = ({ protocol = 'TCP' }: ImportPort): string => protocol;

function sorted(ports: readonly ImportPort[]): ImportPort[] {
  return ports.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** Of two ports that cannot stand in one Service the one that comes first stays: names are unique, and so are numbers of a protocol. */
function unionOfPorts(all: readonly (readonly ImportPort[])[]): ImportPort[] {
  const union: ImportPort[] = [];
  for (const port of all.flat()) {
    const isNamed = nameOf(port) !== '' && union.every((one) => nameOf(one) !== '');
    const fits = (one: ImportPort): boolean =>
      nameOf(one) !== nameOf(port) && !(one.port === port.port && protocolOf(one) === protocolOf(port));
    if (union.length === 0 || (isNamed && union.every(fits))) union.push(port);
  }
  return union;
}

/** The names of the ports of an export that are as all clusters see them: only to these are callers led there. */
export function acceptedPorts({ ports }: ExportRecord, merged: MergedService): Set<string> {
  const isSame = (a: ImportPort, b: ImportPort): boolean =>
    nameOf(a) === nameOf(b) && a.port === b.port && protocolOf(a) === protocolOf(b);
  return new Set(ports.filter((port) => merged.ports.some((one) => isSame(one, port))).map(nameOf));
}
