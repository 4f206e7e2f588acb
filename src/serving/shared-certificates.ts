import type { Logger } from 'pino';
import type { Secret } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import { SECRETS } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { create, get, replace } from '../kube/verbs.ts';
import { dueCertificates, type StoredCertificates } from './stored-certificates.ts';

/** Between two looks at the Secret, and before another try, in ms. */
const PERIOD_MS = 60_000;
const RETRY_MS = 5_000;
const FILES = { bundle: 'ca.crt', authorityKey: 'ca.key', cert: 'tls.crt', key: 'tls.key' } as const;

export interface SharedCertificatesOptions {
  host: KubeClient;
  secret: { namespace: string; name: string };
  /** DNS names and addresses under which the API server calls. */
  names: readonly string[];
  logger: Logger;
  /** Milliseconds since the epoch. */
  clock: () => number;
}

/**
 * The webhook's certificates, made by the first replica that needs them and kept in a Secret that all replicas look at once
 * a minute; whoever finds something due writes it. Nobody outside has to issue anything.
 */
export class SharedCertificates {
  readonly #o: SharedCertificatesOptions;
  readonly #listeners = new Set<() => void>();
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

  /** Keeps them fresh until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let wait = PERIOD_MS;
      try {
        await this.#look(signal);
      } catch (error) {
        wait = RETRY_MS;
        const { namespace, name } = this.#o.secret;
        if (!signal.aborted && !isConflict(error) && !isAlreadyExists(error)) {
          const what = `the webhook's certificates in Secret ${namespace}/${name} cannot be kept: ${describeError(error)}`;
          this.#o.logger.warn(`${what}. Tried again in ${String(RETRY_MS / 1000)} s`);
        }
      }
      await pause(wait, signal);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { host, secret, names, clock, logger } = this.#o;
    const found = await this.#read(signal);
    const stored = storedIn(found);
    const due = await dueCertificates(stored, names, clock());
    if (due !== stored) {
      const object = secretOf(found, secret, due);
      await (found === undefined
        ? create(host, SECRETS, object, { signal })
        : replace(host, SECRETS, object, { signal }));
      logger.info({ secret: secret.name }, 'the certificates of the webhook were made anew');
    }
    const changed = due.bundle !== this.#stored?.bundle || due.serving.cert !== this.#stored.serving.cert;
    this.#stored = due;
    if (changed) for (const listener of this.#listeners) listener();
  }

  async #read(signal: AbortSignal): Promise<Secret | undefined> {
    try {
      return await get<Secret>(this.#o.host, SECRETS, this.#o.secret, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

function storedIn(secret: Secret | undefined): StoredCertificates | undefined {
  const text = (key: string): string => Buffer.from(secret?.data?.[key] ?? '', 'base64').toString('utf8');
  if (secret === undefined) return undefined;
  const serving = { cert: text(FILES.cert), key: text(FILES.key) };
  return { bundle: text(FILES.bundle), authorityKey: text(FILES.authorityKey), serving };
}

function secretOf(
  found: Secret | undefined,
  ref: { namespace: string; name: string },
  { bundle, authorityKey, serving }: StoredCertificates,
): Secret {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return {
    ...found,
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...found?.metadata, ...ref },
    type: found?.type ?? 'Opaque',
    data: {
      ...found?.data,
      [FILES.bundle]: base64(bundle),
      [FILES.authorityKey]: base64(authorityKey),
      [FILES.cert]: base64(serving.cert),
      [FILES.key]: base64(serving.key),
    },
  };
}
