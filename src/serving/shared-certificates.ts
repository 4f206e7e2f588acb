import type { Logger } from 'pino';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import type { Secret } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isAlreadyExists, isConflict } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import { SECRETS } from '../kube/resource.ts';
import { create, get, replace } from '../kube/verbs.ts';
import { dueCertificates, dueClientCertificate, type Purpose, type StoredCertificates } from './stored-certificates.ts';

/** Between two looks at the Secrets, and before another try, in ms. */
const PERIOD_MS = 60_000;
const RETRY_MS = 5_000;
const FILES = { bundle: 'ca.crt', authorityKey: 'ca.key', cert: 'tls.crt', key: 'tls.key' } as const;

interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

export interface SharedCertificatesOptions {
  host: KubeClient;
  /** Whose they are, in words: `the webhook`. */
  owner: string;
  secret: SecretName;
  /** Asked at each look. */
  purpose: () => Purpose;
  /** Who calls with a client certificate of the same authority, and the Secret in which it gets that and whom to trust. */
  client?: { readonly user: string; readonly secret: SecretName } | undefined;
  logger: Logger;
  /** Milliseconds since the epoch. */
  clock: () => number;
}

/**
 * The certificates of a port, made by the first replica that needs them and kept in a Secret that all replicas look at once
 * a minute; whoever finds something due writes it. Nobody outside has to issue anything.
 */
export class SharedCertificates {
  readonly #o: SharedCertificatesOptions;
  readonly #listeners = new Set<() => void>();
  readonly #wakeUp = new AutoResetEvent();
  #stored: StoredCertificates | undefined;

  constructor(options: SharedCertificatesOptions) {
    this.#o = options;
  }

  /** Undefined until the Secret was read or made. */
  current(): KeyedCertificate | undefined {
    return this.#stored?.serving;
  }

  /** PEM; whom callers are to trust. */
  bundle(): string | undefined {
    return this.#stored?.bundle;
  }

  /** Calls the listener when certificates changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** The purpose has changed. */
  trigger(): void {
    this.#wakeUp.set();
  }

  /** Keeps them fresh until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let wait = PERIOD_MS;
      try {
        const stored = await this.#look(signal);
        await this.#giveClient(stored, signal);
      } catch (error) {
        wait = RETRY_MS;
        const { owner, secret } = this.#o;
        if (!signal.aborted && !isConflict(error) && !isAlreadyExists(error)) {
          const what = `the certificates of ${owner} in namespace ${secret.namespace} cannot be kept: ${describeError(error)}`;
          this.#o.logger.warn(`${what}. Tried again in ${String(RETRY_MS / 1000)} s`);
        }
      }
      await this.#wakeUp.wait(signal, wait);
    }
  }

  async #look(signal: AbortSignal): Promise<StoredCertificates> {
    const { host, owner, secret, purpose, clock, logger } = this.#o;
    const found = await ifThere(get<Secret>(host, SECRETS, secret, { signal }));
    const stored = storedIn(found);
    const due = await dueCertificates(stored, purpose(), clock());
    if (due !== stored) {
      const { bundle, authorityKey, serving } = due;
      await this.#write(found, secret, { bundle, authorityKey, ...serving }, signal);
      logger.info({ secret: secret.name }, `the certificates of ${owner} were made anew`);
    }
    const changed = due.bundle !== this.#stored?.bundle || due.serving.cert !== this.#stored.serving.cert;
    this.#stored = due;
    if (changed) for (const listener of this.#listeners) listener();
    return due;
  }

  async #giveClient(stored: StoredCertificates, signal: AbortSignal): Promise<void> {
    const { host, owner, client, clock, logger } = this.#o;
    if (client === undefined) return;
    const { user, secret } = client;
    const found = await ifThere(get<Secret>(host, SECRETS, secret, { signal }));
    const known = found === undefined ? undefined : { cert: textOf(found, 'cert'), key: textOf(found, 'key') };
    const due = await dueClientCertificate(known, stored, user, clock());
    if (found !== undefined && due === known && textOf(found, 'bundle') === stored.bundle) return;
    await this.#write(found, secret, { bundle: stored.bundle, ...due }, signal);
    logger.info({ secret: secret.name, user }, `the certificate for callers of ${owner} was made anew`);
  }

  async #write(
    found: Secret | undefined,
    secret: SecretName,
    texts: Partial<Record<keyof typeof FILES, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const data = { ...found?.data };
    for (const [file, text] of Object.entries(texts)) {
      data[FILES[file as keyof typeof FILES]] = Buffer.from(text).toString('base64');
    }
    const object: Secret = {
      ...found,
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...found?.metadata, ...secret },
      type: found?.type ?? 'Opaque',
      data,
    };
    const { host } = this.#o;
    await (found === undefined
      ? create(host, SECRETS, object, { signal })
      : replace(host, SECRETS, object, { signal }));
  }
}

function storedIn(secret: Secret | undefined): StoredCertificates | undefined {
  if (secret === undefined) return undefined;
  const serving = { cert: textOf(secret, 'cert'), key: textOf(secret, 'key') };
  return { bundle: textOf(secret, 'bundle'), authorityKey: textOf(secret, 'authorityKey'), serving };
}

function textOf(secret: Secret, file: keyof typeof FILES): string {
  return Buffer.from(secret.data?.[FILES[file]] ?? '', 'base64').toString('utf8');
}
