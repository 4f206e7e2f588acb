import { createHash } from 'node:crypto';
import { LOCAL } from '../api/cluster-tiers.ts';
import { GROUP } from '../api/marks.ts';
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  HEADLESS_LABEL,
  MANAGED_BY_LABEL,
  SERVICE_NAME_LABEL,
} from '../kube/discovery-v1.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import { takesTraffic } from '../kube/endpoint-slices.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { IMPORT_NAME_LABEL, type ImportType, SOURCE_CLUSTER_LABEL } from '../kube/multicluster-v1.ts';
import { splitKey } from '../kube/object.ts';
import { derivedName, importLabels, type ImportPlace } from './derived-service.ts';

const HASH_LENGTH = 10;
/** Longest name of an object. */
const MAX_NAME = 253;

/** A slice as it stands in a cluster; of one with a digest nothing else is kept of where it leads. */
export interface StandingSlice extends EndpointSlice {
  readonly digest?: string;
}

/** To see whether a slice leads where it is to, without keeping in memory where it leads. */
export function digested(slice: EndpointSlice): StandingSlice {
  const { kind, metadata, addressType } = slice;
  return { ...(kind === undefined ? {} : { kind }), metadata, addressType, digest: digestOf(slice) };
}

/** Where both are there in full, in a sixth of the time that two digests take. */
function leadsAlike(a: EndpointSlice, b: EndpointSlice): boolean {
  return jsonEqual(a.endpoints ?? [], b.endpoints ?? []) && jsonEqual(a.ports ?? [], b.ports ?? []);
}

/** Of where a slice leads, once anybody has asked for it. */
interface Digest {
  value?: string;
}

/** By the hub's slice, that of its copies: all members have the same, and each compares all of them whenever one changes. */
const ofCopies = new WeakMap<EndpointSlice, Digest>();
const ofCopy = new WeakMap<EndpointSlice, Digest>();

function digestOf(slice: EndpointSlice): string {
  const { endpoints = [], ports = [] } = slice;
  const digest = ofCopy.get(slice) ?? {};
  digest.value ??= createHash('sha256')
    .update(canonicalJson([endpoints, ports]))
    .digest('base64');
  return digest.value;
}

export interface SliceSource {
  /** Of the host's ServiceImport. */
  readonly hostKey: string;
  readonly type: ImportType;
  /** The cluster that exports it. */
  readonly cluster: string;
  /** Those of its Service there. */
  readonly slices: readonly EndpointSlice[];
  /** Names of the ports that callers are led to; undefined: all, as it has none. */
  readonly ports: ReadonlySet<string> | undefined;
}

/**
 * The EndpointSlices of one exporting cluster in one that imports: one for each of the source. Endpoints that take no traffic are
 * left out, and so is what would be empty. Nodes and pods are named only where they are the cluster's own.
 */
export function importedSlices(
  { hostKey, type, cluster, slices, ports }: SliceSource,
  place: ImportPlace,
): EndpointSlice[] {
  const isOwn = cluster === (place.member ?? LOCAL);
  return slices.flatMap((slice) => {
    const endpoints = (slice.endpoints ?? []).filter(takesTraffic).map((endpoint) => toldEndpoint(endpoint, isOwn));
    const kept =
      ports === undefined ? (slice.ports ?? []) : (slice.ports ?? []).filter(({ name = '' }) => ports.has(name));
    if (endpoints.length === 0 || (ports !== undefined && kept.length === 0)) return [];
    const source = `${cluster}/${slice.addressType}/${slice.metadata.name}`;
    return [
      renderSlice({ hostKey, type, cluster, source }, place, {
        addressType: slice.addressType,
        endpoints,
        ports: kept.map(asStored),
      }),
    ];
  });
}

/** A slice of the host's for another cluster, as it stands in a member. */
export function copiedSlice(slice: EndpointSlice, place: ImportPlace): EndpointSlice {
  const { name, labels = {} } = slice.metadata;
  const copy = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: place.namespace, labels: { ...labels, ...importLabels(place) } },
    addressType: slice.addressType,
    endpoints: (slice.endpoints ?? []).map((endpoint) => toldEndpoint(endpoint, false)),
    ports: (slice.ports ?? []).map(asStored),
  };
  const digest = ofCopies.get(slice) ?? {};
  ofCopies.set(slice, digest);
  ofCopy.set(copy, digest);
  return copy;
}

/** With what API servers add, so that what stands there is what was sent. */
function asStored({ name = '', protocol = 'TCP', ...port }: EndpointPort): EndpointPort {
  return { name, protocol, ...port };
}

/** What is told of an endpoint; `isOwn`: in its own cluster. */
export function toldEndpoint(endpoint: Endpoint, isOwn: boolean): Endpoint {
  const { addresses, conditions, hostname, zone, nodeName, targetRef } = endpoint;
  return {
    addresses,
    ...(conditions === undefined ? {} : { conditions }),
    ...(hostname === undefined ? {} : { hostname }),
    ...(zone === undefined ? {} : { zone }),
    ...(isOwn && nodeName !== undefined ? { nodeName } : {}),
    ...(isOwn && targetRef !== undefined ? { targetRef } : {}),
  };
}

function renderSlice(
  { hostKey, type, cluster, source }: { hostKey: string; type: ImportType; cluster: string; source: string },
  place: ImportPlace,
  body: { addressType: string; endpoints: Endpoint[]; ports: EndpointPort[] },
): EndpointSlice {
  const { name } = splitKey(hostKey);
  const hash = createHash('sha256').update(`${place.hostId}/${hostKey}/${source}`).digest('hex').slice(0, HASH_LENGTH);
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name.slice(0, MAX_NAME - HASH_LENGTH - 10)}-import-${hash}`,
      namespace: place.namespace,
      labels: {
        ...importLabels(place),
        [SERVICE_NAME_LABEL]: derivedName(hostKey),
        [MANAGED_BY_LABEL]: GROUP,
        [IMPORT_NAME_LABEL]: name,
        [SOURCE_CLUSTER_LABEL]: cluster,
        ...(type === 'Headless' ? { [HEADLESS_LABEL]: '' } : {}),
      },
    },
    ...body,
  };
}

/** Whether the slice that is there says the same; what others added to it is theirs. */
export function isSliceAsWanted(is: StandingSlice, shall: EndpointSlice): boolean {
  const labels = Object.entries({ [HEADLESS_LABEL]: undefined, ...shall.metadata.labels });
  return (
    labels.every(([key, value]) => is.metadata.labels?.[key] === value) &&
    is.addressType === shall.addressType &&
    (is.digest === undefined ? leadsAlike(is, shall) : is.digest === digestOf(shall))
  );
}
