import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { PeerCertificates } from '../serving/peer-certificate.ts';
import type { TokenReviewer } from './token-reviewer.ts';
import type { UserInfo } from '../serving/user-info.ts';

const BEARER = /^bearer +([\w\-.~+/]+=*) *$/i;

/** Client certificate first, bearer token second; there is no anonymous user. */
export class Authenticator {
  readonly #certificates: PeerCertificates;
  readonly #tokens: TokenReviewer;

  constructor(certificates: PeerCertificates, tokens: TokenReviewer) {
    this.#certificates = certificates;
    this.#tokens = tokens;
  }

  /** Undefined: nobody we know, to be answered 401. Throws ReviewUnavailable when the host could not be asked. */
  async authenticate(request: IncomingMessage): Promise<UserInfo | undefined> {
    const user = this.#certificates.user(request.socket as TLSSocket);
    if (user !== undefined) {
      return user;
    }
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    return token === undefined ? undefined : this.#tokens.review(token);
  }
}
