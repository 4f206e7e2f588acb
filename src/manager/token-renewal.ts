import { refusalOf } from '../kube/member-trial.ts';
import { TokenRenewal } from '../members/token-renewal.ts';
import type { ActingMember } from './acting-member.ts';

/** Renewal of the token that one member is reached with. */
export function tokenRenewal({ services, connection, member, mayWrite, event, logger }: ActingMember): TokenRenewal {
  return new TokenRenewal({
    host: services.host,
    member: connection.client,
    reference: () => member().spec.credentials.secretRef,
    refusal: async (...tried) => await refusalOf(connection.name, ...tried),
    mayWrite,
    failed: (words, expiresAt) => {
      const until = new Date(expiresAt).toISOString();
      event('Warning', 'TokenNotRenewed', `${words}. The one there is lasts until ${until}; it is tried again.`);
    },
    logger,
    clock: Date.now,
  });
}
