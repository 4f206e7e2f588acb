import type { TokenClaims } from '../kube/service-account-token.ts';
import { timestamp } from '../kube/timestamps.ts';
import { no, unknown, yes, type Finding } from './condition-finding.ts';
import type { Reachability } from './reachability.ts';

/**
 * `accepted`: the kubeconfig is usable; `token`: what the one beside it says of itself, if it ends. `refused`: it is not usable;
 * `stillUsed`: an earlier one is in use meanwhile.
 */
export type CredentialsFacts =
  | { state: 'waiting'; message: string }
  | { state: 'accepted'; secret: string; token?: TokenClaims | undefined }
  | { state: 'refused'; stillUsed: boolean; reason: string; message: string };

/** Condition CredentialsValid; `now`: wall clock in ms. Pure. */
export function credentialsValid(
  { credentials, reachability }: { credentials: CredentialsFacts; reachability: Reachability },
  now: number,
): Finding {
  const type = 'CredentialsValid';
  if (credentials.state === 'waiting') return unknown(type, 'SecretNotRead', credentials.message);
  if (credentials.state === 'refused') {
    const next = credentials.stillUsed
      ? ' The credentials read before stay in use.'
      : ' The member is not contacted until this is mended.';
    return no(type, credentials.reason, `${credentials.message}.${next}`);
  }
  const { failure } = reachability;
  if (failure?.reason === 'Unauthorized' && reachability.reachable !== true)
    return no(type, failure.reason, failure.message);
  if (reachability.reachable !== true)
    return unknown(
      type,
      'NotContacted',
      `The kubeconfig in ${credentials.secret} is usable; the member has not answered yet.`,
    );
  const { token } = credentials;
  if (token !== undefined && now >= (token.issuedAt + token.expiresAt) / 2) {
    const end = timestamp(token.expiresAt);
    return yes(
      type,
      'TokenNotRenewed',
      `The member accepts the kubeconfig in ${credentials.secret} until ${end}: more than half of the life of its token is over, ` +
        'and no other one has come. Without one the member is out of reach from then on.',
    );
  }
  return yes(type, 'Accepted', `The member accepts the kubeconfig in ${credentials.secret}.`);
}
