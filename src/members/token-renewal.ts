import type { Logger } from 'pino';
import { RENEWED_TOKEN_LABEL } from '../api/marks.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Secret } from '../kube/core-v1.ts';
import { describeError, isConflict } from '../kube/errors.ts';
import { resourcePath, SECRETS, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import { tokenClaims, tokenIn, tokenRequestFor, type TokenClaims } from '../kube/service-account-token.ts';
import { pause } from '../kube/timers.ts';
import { get, patch } from '../kube/verbs.ts';
import { TOKEN_KEY, type SecretReference } from './credentials-watch.ts';

const HOUR_MS = 3_600_000;
/** A token is renewed when it is so old, or a third of its life is over, in ms. */
const RENEWAL_AGE_MS = 24 * HOUR_MS;
/** Between two looks at a Secret, in ms: another token, or none, may have come into it. */
const LONGEST_WAIT_MS = HOUR_MS;
/** Before another try, in ms. */
const RETRY_MS = 60_000;

export interface TokenRenewalOptions {
  host: KubeClient;
  /** As whom tokens are asked for: their own account. */
  member: KubeClient;
  reference: () => SecretReference;
  /** Why the member does not let in who comes with that token, in words; undefined when it does. Throws where it cannot be asked. */
  refusal: (kubeconfig: string, token: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Whether this process may act for the member. */
  mayWrite: () => boolean;
  /** Why there is no new token, as a sentence without its full stop; the one there is lasts until then, in ms since the epoch. */
  failed: (words: string, expiresAt: number) => void;
  logger: Logger;
  /** Wall clock in ms. */
  clock: () => number;
}

/** When a token is to be renewed, in ms since the epoch. */
export function renewalDue({ issuedAt, expiresAt }: TokenClaims): number {
  return issuedAt + Math.min(RENEWAL_AGE_MS, (expiresAt - issuedAt) / 3);
}

/**
 * Keeps the token of a member fresh where its Secret says so (label `spillway.dev/renew-token`): the account asks the member for
 * another one for itself, for as long as the first one was good, and that takes its place in the Secret once the member let it in.
 * Reads the Secret at the
 * start and once an hour; writes it once a day.
 */
export class TokenRenewal {
  readonly #o: TokenRenewalOptions;

  constructor(options: TokenRenewalOptions) {
    this.#o = options;
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let wait = RETRY_MS;
      try {
        wait = await this.#look(signal);
      } catch (error) {
        const { namespace, name } = this.#o.reference();
        if (!signal.aborted) {
          this.#o.logger.warn(
            `the token in Secret ${namespace}/${name} cannot be looked after: ${describeError(error)}`,
          );
        }
      }
      await pause(wait, signal);
    }
  }

  /** For how long nothing is to be done, in ms. */
  async #look(signal: AbortSignal): Promise<number> {
    const { host, reference, mayWrite, failed, logger, clock } = this.#o;
    const { namespace, name, key } = reference();
    const secret = await get<Secret>(host, SECRETS, { namespace, name }, { signal });
    if (secret.metadata.labels?.[RENEWED_TOKEN_LABEL] !== 'true') return LONGEST_WAIT_MS;
    const text = (of: string): string => Buffer.from(secret.data?.[of] ?? '', 'base64').toString('utf8');
    const claims = tokenClaims(text(TOKEN_KEY));
    // Nobody can do anything with one that is over: it takes somebody who may give another.
    if (claims === undefined || claims.expiresAt <= clock()) return LONGEST_WAIT_MS;
    const wait = renewalDue(claims) - clock();
    if (wait > 0) return Math.min(wait, LONGEST_WAIT_MS);
    if (!mayWrite()) return RETRY_MS;
    let token: string;
    try {
      token = await this.#another(claims, signal);
      await this.#check(token, claims, text(key), signal);
    } catch (error) {
      if (signal.aborted) return 0;
      const help = 'See manifests/member/token.yaml';
      failed(`The member gives no new token: ${describeError(error)}. ${help}`, claims.expiresAt);
      return RETRY_MS;
    }
    const { uid, resourceVersion } = secret.metadata;
    const body = { metadata: { uid, resourceVersion }, data: { [TOKEN_KEY]: Buffer.from(token).toString('base64') } };
    try {
      await patch(host, SECRETS, { namespace, name }, body, { type: 'merge', fieldManager: 'spillway' }, { signal });
    } catch (error) {
      if (signal.aborted) return 0;
      // Somebody else was quicker: what is there now is looked at next.
      if (isConflict(error)) return RETRY_MS;
      const what = `The member gave a new token, and Secret ${namespace}/${name} cannot be written: ${describeError(error)}`;
      failed(`${what}. It takes manifests/secrets.yaml, and a Secret that is not immutable`, claims.expiresAt);
      return RETRY_MS;
    }
    logger.info({ secret: name }, 'the token of the member was renewed');
    return RETRY_MS;
  }

  async #another({ namespace, name, issuedAt, expiresAt }: TokenClaims, signal: AbortSignal): Promise<string> {
    const path = resourcePath(SERVICE_ACCOUNTS, namespace, name, 'token');
    const body = tokenRequestFor(Math.round((expiresAt - issuedAt) / 1000));
    return tokenIn(await this.#o.member.request({ method: 'POST', path, body, signal }));
  }

  /** Throws unless it is of more use than the one there is: nobody could ask for another with one that is not. */
  async #check(token: string, before: TokenClaims, kubeconfig: string, signal: AbortSignal): Promise<void> {
    const claims = tokenClaims(token);
    if (claims?.namespace !== before.namespace || claims.name !== before.name)
      throw new Error('it answered with a token that is not for the same account');
    if (claims.expiresAt <= before.expiresAt) throw new Error('it answered with a token that does not last longer');
    const refusal = await this.#o.refusal(kubeconfig, token, signal);
    if (refusal !== undefined) throw new Error(`it does not let in who comes with the token that it gave: ${refusal}`);
  }
}
