import { isIP } from 'node:net';
import type { Pod } from '../kube/core-v1.ts';
import type { Service } from '../kube/service.ts';
import { keyOf } from '../kube/object.ts';
import { isHeadless, isMirrored } from './service-copy.ts';

export interface ServiceAddressesOptions {
  /** Services of a namespace of the host. */
  servicesIn: (hostNamespace: string) => readonly Service[];
  /** What stands in the member for a Service of the host. */
  copiesOf: (serviceKey: string) => readonly Service[];
  memberNamespaceOf: (hostNamespace: string) => string | undefined;
  /** No copy will exist, for a reason reported on the MemberCluster. */
  isRefused: (serviceKey: string) => boolean;
  /** Whether copies are known: `known` once caches have synced, `never` when they cannot be read, else `soon`. */
  state: (hostNamespace: string) => 'known' | 'soon' | 'never';
  /** Requeues a pod of the host. */
  requeue: (podKey: string) => void;
}

/** The addresses that Services have in one member, for the variables of pods, and the pods that wait for them. */
export class ServiceAddresses {
  readonly #o: ServiceAddressesOptions;
  /** Keys of pods that wait, by their namespace. */
  readonly #waiting = new Map<string, Set<string>>();

  constructor(options: ServiceAddressesOptions) {
    this.#o = options;
  }

  /** Whether a pod of the host can be made; `first`: it is the first of its namespace to wait. */
  require(hostPod: Pod): { ready: true } | { ready: false; message: string; first: boolean } {
    const { namespace = '' } = hostPod.metadata;
    if (hostPod.spec.enableServiceLinks === false || this.#areKnown(namespace)) return { ready: true };
    const waiting = this.#waiting.get(namespace) ?? new Set<string>();
    const first = waiting.size === 0;
    this.#waiting.set(namespace, waiting.add(keyOf(hostPod)));
    return { ready: false, message: `the Services of namespace ${namespace} do not stand in the member yet`, first };
  }

  /** The Services of a namespace of the host with the addresses that they have in one of the member. */
  seenFrom(hostNamespace: string, memberNamespace: string): Service[] {
    return this.#o.servicesIn(hostNamespace).flatMap((service) => {
      const copies = this.#o.copiesOf(keyOf(service));
      const copy = copies.find(({ metadata }) => metadata.namespace === memberNamespace);
      const clusterIP = copy?.spec?.clusterIP ?? '';
      return isIP(clusterIP) === 0 ? [] : [{ ...service, spec: { ...service.spec, clusterIP } }];
    });
  }

  /** Requeues the waiting pods of a namespace if its Services are known. */
  wake(namespace: string): void {
    const waiting = this.#waiting.get(namespace);
    if (waiting === undefined || !this.#areKnown(namespace)) return;
    this.#waiting.delete(namespace);
    for (const podKey of waiting) this.#o.requeue(podKey);
  }

  wakeAll(): void {
    for (const namespace of this.#waiting.keys()) this.wake(namespace);
  }

  #areKnown(namespace: string): boolean {
    const { servicesIn, copiesOf, memberNamespaceOf, isRefused, state } = this.#o;
    const now = state(namespace);
    if (now !== 'known') return now === 'never';
    const place = memberNamespaceOf(namespace);
    return servicesIn(namespace).every((service) => {
      if (!isMirrored(service) || isHeadless(service) || service.spec?.type === 'ExternalName') return true;
      const key = keyOf(service);
      return isRefused(key) || copiesOf(key).some(({ metadata }) => metadata.namespace === place);
    });
  }
}
