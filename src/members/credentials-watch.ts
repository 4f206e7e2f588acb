import type { Logger } from 'pino';
import type { Secret } from '../kube/core-v1.ts';
import type { Access } from '../kube/access.ts';
import type { KubeClient } from '../kube/client.ts';
import { CredentialsError } from '../kube/errors.ts';
import { Informer } from '../kube/informer.ts';
import { memberAccess } from '../kube/member-access.ts';
import { SECRETS } from '../kube/resource.ts';
import { tokenClaims, type TokenClaims } from '../kube/service-account-token.ts';

export interface SecretReference {
  namespace: string;
  name: string;
  key: string;
}

/** Key of a Secret whose token takes the place of the one in the kubeconfig: it can be renewed without touching whom to trust. */
export const TOKEN_KEY = 'token';

/**
 * What the Secret gives: access, with what its token says of itself, or why not. `gone`: the Secret or its key is not there (any
 * more).
 */
export type CredentialsState =
  | { access: Access; token: TokenClaims | undefined }
  | { refusal: CredentialsError; gone: boolean };

/** The Secret's content as access, never quoting it. `secret` undefined: it does not exist. */
export function readCredentials(reference: SecretReference, secret: Secret | undefined): CredentialsState {
  const where = `Secret ${reference.namespace}/${reference.name}`;
  if (secret === undefined) {
    return { refusal: new CredentialsError('SecretNotFound', `${where} does not exist in the host`), gone: true };
  }
  const value = secret.data?.[reference.key];
  if (value === undefined || value === '') {
    return { refusal: new CredentialsError('SecretKeyMissing', `${where} has no key ${reference.key}`), gone: true };
  }
  const text = (base64: string): string => Buffer.from(base64, 'base64').toString('utf8');
  const data = secret.data?.[TOKEN_KEY];
  const token = data === undefined || data === '' ? undefined : text(data);
  try {
    const access = memberAccess(text(value), token);
    return { access, token: token === undefined ? undefined : tokenClaims(token) };
  } catch (error) {
    const reason = error instanceof CredentialsError ? error.reason : 'InvalidKubeconfig';
    const words = error instanceof CredentialsError ? error.message : 'the kubeconfig cannot be read';
    return { refusal: new CredentialsError(reason, `${where}, key ${reference.key}: ${words}`), gone: false };
  }
}

/** Follows one Secret by name and tells its content at first and whenever it changes. */
export class CredentialsWatch {
  readonly #reference: SecretReference;
  readonly #informer: Informer<Secret>;
  readonly #told: (state: CredentialsState, version: string | undefined) => void;

  constructor(o: {
    host: KubeClient;
    reference: SecretReference;
    /** `version`: resourceVersion of the Secret. */
    told: (state: CredentialsState, version: string | undefined) => void;
    logger?: Logger;
  }) {
    this.#reference = o.reference;
    this.#told = o.told;
    this.#informer = new Informer<Secret>({
      client: o.host,
      resource: SECRETS,
      namespace: o.reference.namespace,
      fieldSelector: `metadata.name=${o.reference.name}`,
      logger: o.logger,
    });
  }

  /** Why the Secret cannot be read, in words; undefined while it can. */
  get problem(): string | undefined {
    return this.#informer.problem;
  }

  async run(signal: AbortSignal): Promise<void> {
    const tell = (): void => {
      if (this.#informer.hasSynced && !signal.aborted) this.#notify();
    };
    const off = this.#informer.on({ added: tell, updated: tell, deleted: tell });
    const running = this.#informer.run(signal);
    await this.#informer.whenSynced(signal).then(tell, () => undefined);
    await running;
    off();
  }

  #notify(): void {
    const { namespace, name } = this.#reference;
    const secret = this.#informer.get(`${namespace}/${name}`);
    this.#told(readCredentials(this.#reference, secret), secret?.metadata.resourceVersion);
  }
}
