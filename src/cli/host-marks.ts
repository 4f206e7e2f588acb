import { ALLOW_HOST_LABEL, HOST_LABEL } from '../api/marks.ts';
import { cleanText } from '../kube/clean-text.ts';
import { NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PODS, type Resource } from '../kube/resource.ts';
import type { Viewer } from './viewer.ts';

/** Value of ALLOW_HOST_LABEL that stands for all hosts. */
export const ANY = 'any';
/** Longest value of a label. */
const LONGEST_ID = 63;

/** What shows in a member that a host has, or may have, anything there. */
export interface HostMark {
  /** Of that host; `any`: whichever it is. */
  readonly hostId: string;
  /** As people name it: `namespace/shop`, `pod/web-1 of namespace shop`. */
  readonly object: string;
  /** The namespace that is lent by it. */
  readonly lends?: string;
}

/** Marks of hosts with another id, such as may have been let in without join. `lent`: to this host, by join. Throws CliError. */
export async function marksOfOthers(member: Viewer, hostId: string, lent: readonly string[]): Promise<HostMark[]> {
  const found: HostMark[] = [];
  for (const resource of [NAMESPACES, PODS, PERSISTENT_VOLUME_CLAIMS]) {
    for (const { metadata } of await member.list(resource, { labelSelector: HOST_LABEL })) {
      found.push({ hostId: metadata.labels?.[HOST_LABEL] ?? hostId, object: named(resource.kind, metadata) });
    }
  }
  for (const { metadata } of await member.list(NAMESPACES, { labelSelector: ALLOW_HOST_LABEL })) {
    const { name, labels } = metadata;
    const to = labels?.[ALLOW_HOST_LABEL] ?? hostId;
    if (to === ANY && lent.includes(name)) continue;
    found.push({ hostId: to, object: `${named('Namespace', metadata)}, which is lent`, lends: name });
  }
  return found
    .filter((mark) => mark.hostId !== hostId)
    .map((mark) => ({ ...mark, hostId: cleanText(mark.hostId, LONGEST_ID) }));
}

/** What of these kinds carries the mark of this host. Throws CliError. */
export async function ownRemains(member: Viewer, hostId: string, kinds: readonly Resource[]): Promise<string[]> {
  const found: string[] = [];
  for (const resource of kinds) {
    const objects = await member.list(resource, { labelSelector: `${HOST_LABEL}=${hostId}` });
    found.push(...objects.map(({ metadata }) => named(resource.kind, metadata)));
  }
  return found;
}

/** The first of them, and how many there are besides. */
export function firstOf(objects: readonly string[]): string {
  const MOST = 3;
  const more = objects.length - MOST;
  return [...objects.slice(0, MOST), ...(more > 0 ? [`${more} more`] : [])].join('; ');
}

function named(kind: string, { namespace, name }: { namespace?: string; name: string }): string {
  return `${kind.toLowerCase()}/${name}${namespace === undefined ? '' : ` of namespace ${namespace}`}`;
}
