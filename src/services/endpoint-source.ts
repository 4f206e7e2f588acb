import type { Node, Pod } from '../kube/core-v1.ts';
import type { Service } from '../kube/service.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { keyOf } from '../kube/object.ts';
import { isolatedSlices } from './isolated-slices.ts';
import type { ServicesHost, ServicesMember, ServicesSpec } from './member-services-options.ts';
import { memberSlices, type OwnPod } from './member-slices.ts';
import type { CopyPlace } from './service-copy.ts';

const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Where Services lead in one member: what the host knows, and what is known of the copies. */
export class EndpointSource {
  readonly #host: Pick<ServicesHost, 'slices' | 'podsIn'>;
  readonly #member: Pick<ServicesMember, 'copyOf' | 'nodes'>;
  readonly #spec: ServicesSpec;

  constructor(
    host: Pick<ServicesHost, 'slices' | 'podsIn'>,
    member: Pick<ServicesMember, 'copyOf' | 'nodes'>,
    spec: ServicesSpec,
  ) {
    this.#host = host;
    this.#member = member;
    this.#spec = spec;
  }

  slicesFor(service: Service, place: CopyPlace): EndpointSlice[] {
    const { copyOf } = this.#member;
    if (service.spec?.type === 'ExternalName') return [];
    const own = (uid: string): OwnPod | undefined => {
      const copy = copyOf(uid);
      return copy === undefined ? undefined : this.#ownPod(copy);
    };
    if (this.#spec().network === 'Flat') {
      return memberSlices({ service, slices: this.#host.slices.of(keyOf(service)), own, place });
    }
    const pods = [...this.#host.podsIn(service.metadata.namespace ?? '')].flatMap((host) => {
      const copy = copyOf(host.metadata.uid ?? '');
      return copy === undefined ? [] : [{ host, copy, own: this.#ownPod(copy) }];
    });
    return isolatedSlices(service, pods, place);
  }

  #ownPod({ metadata: { namespace = '', name, uid = '' }, spec: { nodeName } }: Pod): OwnPod {
    const node = this.#member.nodes.get(nodeName ?? '');
    const zone = node === undefined ? undefined : zoneOf(node);
    return { namespace, name, uid, nodeName, zone };
  }
}

export function zoneOf({ metadata }: Node): string | undefined {
  return metadata.labels?.[ZONE_LABEL];
}
