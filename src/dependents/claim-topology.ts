import type { NodeSelector, Pod } from '../kube/core-v1.ts';
import { keyFor } from '../kube/object.ts';
import { claimsOfPod } from '../pods/translate-claims.ts';
import { isIn } from './claim-decision.ts';
import { type ClaimHome, type ClaimRefusal, refusalOfClaim } from './claim-refusal.ts';
import { type ClaimCopy, type CopyKind, type CopyRecord, isClaimCopy } from './copy.ts';
import type { HostClaims } from './host-claims.ts';
import type { VolumePlaces } from './volume-places.ts';

export interface ClaimTopologyOptions {
  hostClaims: Pick<HostClaims, 'get'>;
  home: () => ClaimHome;
  copies: { get(kind: CopyKind, namespace: string, name: string): CopyRecord | undefined };
  /** Where the member's volumes can be used. Default: everywhere. */
  places?: Pick<VolumePlaces, 'want' | 'forget' | 'of'>;
}

/** What a pod's claims mean for where it can run in one member; from memory, for any pod of the host. Reads only. */
export class ClaimTopology {
  readonly #o: ClaimTopologyOptions;

  constructor(options: ClaimTopologyOptions) {
    this.#o = options;
  }

  /** A claim of ours in the member came, changed or went. */
  copySeen(copy: CopyRecord): void {
    const { namespace = '', name } = copy.metadata;
    const volume = copy.claim?.spec.volumeName;
    if (volume === undefined) return;
    if (this.copyAt(namespace, name) === undefined) this.#o.places?.forget(volume);
    else this.#o.places?.want(volume);
  }

  /** Our claim of that name in the member. */
  copyAt(namespace: string, name: string): ClaimCopy | undefined {
    const found = this.#o.copies.get('PersistentVolumeClaim', namespace, name);
    return found !== undefined && isClaimCopy(found) ? found : undefined;
  }

  /** Why the pod cannot run in that namespace of the member for its claims' sake, whatever happens. */
  refusalOf(pod: Pod, place: string | undefined): ClaimRefusal | undefined {
    const { hostClaims, home } = this.#o;
    for (const { claim } of claimsOfPod(pod)) {
      const host = hostClaims.get(keyFor(pod.metadata.namespace, claim));
      const refusal = host === undefined ? undefined : refusalOfClaim(host, home(), place);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** The nodes of the member that volumes of the pod's claims are limited to, as far as that is known. */
  placesOf(pod: Pod): readonly NodeSelector[] {
    const { hostClaims, home, places } = this.#o;
    const claims = places === undefined ? [] : claimsOfPod(pod);
    return claims.flatMap(({ claim }): NodeSelector[] => {
      const host = hostClaims.get(keyFor(pod.metadata.namespace, claim));
      if (host?.volume === undefined) return [];
      const copy = this.copyAt(host.volume.namespace, host.volume.claim);
      const volume = isIn({ ...host, home: home(), copy }) ? copy?.claim.spec.volumeName : undefined;
      const place = volume === undefined ? undefined : places?.of(volume);
      return place === undefined ? [] : [place];
    });
  }
}
