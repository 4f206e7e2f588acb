import type { MemberCluster } from '../api/member-cluster.ts';
import { ClaimTopology } from './claim-topology.ts';
import { type ClaimHome, claimHomeOf } from './claim-refusal.ts';
import { CopyInformers, type CopyInformersOptions } from './copy-informers.ts';
import type { HostClaims } from './host-claims.ts';
import { VolumePlaces } from './volume-places.ts';

export interface ObservedClaimsOptions extends Pick<
  CopyInformersOptions,
  'client' | 'hostId' | 'namespaces' | 'isUsable' | 'logger' | 'metrics'
> {
  hostClaims: HostClaims;
  member: () => MemberCluster;
  /** UID of the kube-system namespace of the cluster behind it. */
  identity: () => string;
}

/**
 * The claims of the host in a member that another replica acts for, as far as they decide where pods can run: our claims
 * there, and the volumes behind them, where volumes of the host say that there are any. Nothing is ever written.
 */
export class ObservedClaims {
  readonly places: ClaimTopology;
  readonly #o: ObservedClaimsOptions;
  readonly #copies: CopyInformers;
  readonly #volumes: VolumePlaces;

  constructor(options: ObservedClaimsOptions) {
    const { hostClaims, member, identity, ...rest } = options;
    const { client, logger } = rest;
    this.#o = options;
    this.#copies = new CopyInformers({
      ...rest,
      sought: [],
      changed: (copy) => this.places.copySeen(copy),
      known: () => undefined,
    });
    this.#volumes = new VolumePlaces({ member: client.cluster, client, logger });
    const home = (): ClaimHome => claimHomeOf(member(), identity());
    this.places = new ClaimTopology({ hostClaims, home, copies: this.#copies, places: this.#volumes });
  }

  /** Works until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const off = this.#o.hostClaims.on({
      claim: () => undefined,
      volume: (name) => this.#look(name),
      everything: () => this.#lookAtAll(),
    });
    this.#lookAtAll();
    await Promise.all([this.#copies.run(signal), this.#volumes.run(signal)]);
    off();
  }

  #lookAtAll(): void {
    for (const { metadata } of this.#o.hostClaims.volumes()) this.#look(metadata.name);
  }

  /** A question is all it takes for claims in a namespace of the member to be followed. */
  #look(name: string): void {
    const { hostClaims, member } = this.#o;
    const volume = hostClaims.volume(name);
    if (volume?.member === member().metadata.name) this.#copies.knowledge('PersistentVolumeClaim', volume.namespace);
  }
}
