import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { ClientTrust } from './client-trust.ts';
import type { UserInfo } from './user-info.ts';
import { withAuthenticatedGroup } from './user-info.ts';

interface Identity {
  readonly user: UserInfo;
  readonly leaf: X509Certificate;
  readonly notBefore: number;
  readonly notAfter: number;
  /** The trust it was last verified against. */
  generation: number;
}

/** Callers by client certificate: common name is the user, organisations are the groups. */
export class PeerCertificates {
  readonly #trust: ClientTrust;
  readonly #clock: () => number;
  readonly #identities = new WeakMap<TLSSocket, Identity>();

  constructor(trust: ClientTrust, clock: () => number) {
    this.#trust = trust;
    this.#clock = clock;
  }

  /** To be called once, when the handshake is done. `generation`: the trust that the handshake used. */
  remember(socket: TLSSocket, generation: number): void {
    if (!socket.authorized) {
      return;
    }
    const peer = socket.getPeerCertificate();
    const username: unknown = peer.subject?.CN;
    // Several common names, or none: nobody that Kubernetes would know.
    if (typeof username !== 'string' || username === '') {
      return;
    }
    const organisations: unknown = peer.subject.O;
    const groups = (Array.isArray(organisations) ? organisations : [organisations]).filter(
      (group): group is string => typeof group === 'string' && group !== '',
    );
    this.#identities.set(socket, {
      user: { username, groups: withAuthenticatedGroup(groups) },
      leaf: new X509Certificate(peer.raw),
      notBefore: Date.parse(peer.valid_from),
      notAfter: Date.parse(peer.valid_to),
      // A resumed session carries the verdict of an earlier handshake.
      generation: socket.isSessionReused() ? -1 : generation,
    });
  }

  /** The caller, as far as the trust in force now and the certificate's dates allow. */
  user(socket: TLSSocket): UserInfo | undefined {
    const identity = this.#identities.get(socket);
    if (identity === undefined) {
      return undefined;
    }
    const now = this.#clock();
    if (!(identity.notBefore <= now && now <= identity.notAfter)) {
      return undefined;
    }
    const { generation } = this.#trust.current();
    if (identity.generation !== generation) {
      if (!this.#trust.issued(identity.leaf)) {
        return undefined;
      }
      identity.generation = generation;
    }
    return identity.user;
  }
}
