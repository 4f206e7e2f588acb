import { UID_LABEL } from '../api/marks.ts';
import type { ServicesHost, ServicesMember, ServicesSpec } from './member-services-options.ts';

interface ServicePlacesOptions {
  host: Pick<ServicesHost, 'podsIn'>;
  member: Pick<ServicesMember, 'namespaces' | 'copiesOf' | 'copyOf'>;
  spec: ServicesSpec;
}

/** Where in one member Services of the host are to stand, and for whom. */
export class ServicePlaces {
  readonly #o: ServicePlacesOptions;

  constructor(options: ServicePlacesOptions) {
    this.#o = options;
  }

  /** The namespaces of the member in which the Services of one of the host are to stand. */
  of(hostNamespace: string): Set<string> {
    const { spec, host, member } = this.#o;
    const { mode, namespaces: always } = spec().services;
    const places = new Set<string>();
    if (mode === 'None') return places;
    const place = member.namespaces.memberNamespaceOf(hostNamespace);
    if (place === undefined) return places;
    if (always.includes(hostNamespace) || hasAny(host.podsIn(hostNamespace))) places.add(place);
    // Pods stay where they are when the mapping is edited.
    for (const { metadata } of member.copiesOf(hostNamespace)) places.add(metadata.namespace ?? '');
    return places;
  }

  /** Whether this MemberCluster itself needs them in that namespace of the member: others that stand for its cluster have pods there, too. */
  isNeededIn(namespace: string, hostNamespace: string): boolean {
    const { spec, host, member } = this.#o;
    const pods = host.podsIn(hostNamespace);
    if (member.namespaces.memberNamespaceOf(hostNamespace) === namespace)
      return spec().services.namespaces.includes(hostNamespace) || hasAny(pods);
    for (const { metadata } of pods) {
      if (member.copyOf(metadata.uid ?? '')?.metadata.namespace === namespace) return true;
    }
    return false;
  }

  /** Whether of each copy from that namespace the pod of the host is known: after a start that is not so at once. */
  knowsPodsOf(hostNamespace: string): boolean {
    const { host, member } = this.#o;
    const known = new Set(Array.from(host.podsIn(hostNamespace), ({ metadata }) => metadata.uid));
    return member.copiesOf(hostNamespace).every(({ metadata }) => known.has(metadata.labels?.[UID_LABEL]));
  }

  /** Whether there are pods of that namespace of the host in the member that are not of this MemberCluster, or are none of the host's any more. */
  hasOthersPods(hostNamespace: string): boolean {
    const { host, member } = this.#o;
    let own = 0;
    for (const { metadata } of host.podsIn(hostNamespace)) {
      if (member.copyOf(metadata.uid ?? '') !== undefined) own += 1;
    }
    return member.copiesOf(hostNamespace).length > own;
  }
}

/** Whether there is any of them. */
export function hasAny(values: Iterable<unknown>): boolean {
  for (const _ of values) return true;
  return false;
}
