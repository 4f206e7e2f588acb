import type { Access, ClusterEndpoint, Credentials } from '../kube/access.ts';
import { CredentialsError } from '../kube/errors.ts';
import { jsonEqual } from '../kube/json-equal.ts';

/** Where a member is, and the way there. */
export type MemberAddress = Pick<ClusterEndpoint, 'server' | 'serverName' | 'proxy'>;

function addressIn({ server, serverName, proxy }: ClusterEndpoint): MemberAddress {
  return { server, serverName, proxy };
}

/**
 * Access to one address whose CA, certificate and token may change while it is in use: requests made after a change
 * carry the new ones, streams under way go on. While there are none, every request fails with the reason why.
 */
export class RotatingAccess implements Credentials {
  readonly endpoint: ClusterEndpoint;
  #access: Access | undefined;
  #refusal = new CredentialsError('NoCredentials', 'there are no credentials for this member yet');

  private constructor({ server, serverName, proxy }: MemberAddress) {
    const ca = (): string | undefined => this.#access?.endpoint.ca;
    this.endpoint = {
      server,
      serverName,
      proxy,
      get ca() {
        return ca();
      },
    };
  }

  /** With credentials. */
  static of(access: Access): RotatingAccess {
    const rotating = new RotatingAccess(access.endpoint);
    rotating.#access = access;
    return rotating;
  }

  /** Without credentials, and therefore without an address: fails at once, never connects. */
  static without(refusal: CredentialsError): RotatingAccess {
    const rotating = new RotatingAccess({ server: 'https://member.invalid' });
    rotating.#refusal = refusal;
    return rotating;
  }

  /** Where it leads. */
  get address(): MemberAddress {
    return addressIn(this.endpoint);
  }

  leadsTo(address: MemberAddress): boolean {
    return jsonEqual(address, this.address);
  }

  /** Takes over new credentials for the same address; false when they are for another one. */
  use(access: Access): boolean {
    if (!this.leadsTo(addressIn(access.endpoint))) return false;
    this.#access = access;
    return true;
  }

  /** From now on every request fails with `refusal`. */
  withdraw(refusal: CredentialsError): void {
    this.#access = undefined;
    this.#refusal = refusal;
  }

  async headers(force?: boolean): Promise<Record<string, string>> {
    return await this.#current().credentials.headers(force);
  }

  tls(): { cert?: string; key?: string } {
    return this.#current().credentials.tls();
  }

  fingerprint(): string {
    return this.#current().credentials.fingerprint();
  }

  #current(): Access {
    if (this.#access === undefined) throw this.#refusal;
    return this.#access;
  }
}
