import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { KeyedRequest } from './certificate-key.ts';
import { AutoResetEvent } from './auto-reset-event.ts';
import { monotonic } from './clock.ts';
import { describeError, isNotFound } from './errors.ts';
import { checkKeyed, renewalTime, type KeyedCertificate } from './keyed-certificate.ts';
import { createSigningRequest, readSigningRequest, type SigningApi, type SigningSpec } from './signing-request.ts';

/** Kubernetes forgets requests that nobody answered after 24 h; ask again before that. */
const PATIENCE_MS = 12 * 3_600_000;
const SLOWEST_POLL_MS = 30_000;
const SLOWEST_RETRY_MS = 300_000;
/** One that was issued a moment ago is not asked for again because somebody refused it. */
const LEAST_AGE_MS = 60_000;
const LONGEST_SLEEP_MS = 24 * 3_600_000;

export interface IssuedCertificateOptions {
  /** Creates and reads the requests. */
  readonly host: SigningApi;
  /** What the certificate is for, in logs: `client certificate`. */
  readonly what: string;
  readonly node: string;
  readonly signing: Omit<SigningSpec, 'node' | 'request'>;
  newRequest(): Promise<KeyedRequest>;
  /** Asked before each request; throws with the reason why none may be made now. */
  mayAsk?(signal: AbortSignal): Promise<void>;
  /** Tries a new certificate before it comes into use; throws with the reason why it is of no use. */
  check?(issued: KeyedCertificate, signal: AbortSignal): Promise<void>;
  /** What a person should know while a request is open. */
  hint?(request: string): string;
  /** What is used instead while there is none, in words. */
  readonly meanwhile: string;
  readonly logger: Logger;
  /** Wall clock in ms, for how long a certificate is valid. */
  readonly clock: () => number;
  readonly monotonic?: () => number;
  /** Milliseconds between the first looks at an open request; grows. */
  readonly firstPollMs: number;
  /** Milliseconds before the first retry, which doubles to the slowest. Default: as firstPollMs, and 300,000. */
  readonly firstRetryMs?: number;
  readonly slowestRetryMs?: number;
}

/**
 * A certificate from one of the cluster's signers, renewed with a new key at 70 % of its life. One request at the start
 * and one per renewal, as long as they are granted. Keys are in memory only.
 */
export class IssuedCertificate {
  readonly #o: IssuedCertificateOptions;
  readonly #listeners = new Set<() => void>();
  #current: KeyedCertificate | undefined;
  #expiresAt = 0;
  #problem: string | undefined;
  #issuedAt = -Infinity;
  readonly #monotonic: () => number;
  #refused = false;
  readonly #wake = new AutoResetEvent();

  constructor(options: IssuedCertificateOptions) {
    this.#o = options;
    this.#monotonic = options.monotonic ?? monotonic;
  }

  /** The newest one, as long as it is valid. */
  current(): KeyedCertificate | undefined {
    return this.#o.clock() < this.#expiresAt ? this.#current : undefined;
  }

  /** When the newest one ends, in milliseconds since the epoch; 0 before the first. */
  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Why the last attempt to get one failed; undefined after one that did not. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Somebody does not accept the newest one although it is valid, as when authorities change: asks for another soon. */
  refused(): void {
    if (this.#current === undefined || this.#monotonic() - this.#issuedAt < LEAST_AGE_MS) return;
    this.#refused = true;
    this.#wake.set();
  }

  /** Called after each attempt. Returns how to stop that. */
  onAttempt(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Obtains the first one and keeps it fresh until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, what, node, logger } = this.#o;
    const { firstRetryMs = this.#o.firstPollMs, slowestRetryMs = SLOWEST_RETRY_MS } = this.#o;
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      const wait = this.#freshMs();
      if (wait > 0) {
        await this.#wake.wait(signal, Math.min(wait, LONGEST_SLEEP_MS));
        continue;
      }
      try {
        const issued = await this.#obtain(signal);
        const certificate = checkKeyed(issued);
        this.#expiresAt = Date.parse(certificate.validTo);
        this.#current = issued;
        this.#issuedAt = this.#monotonic();
        this.#refused = false;
        logger.info({ node, until: new Date(this.#expiresAt).toISOString() }, `${what} issued`);
        if (renewalTime(certificate) <= clock()) {
          throw new Error('it is past 70 % of its life already; does the clock here differ from that of the cluster?');
        }
        this.#problem = undefined;
        retryMs = firstRetryMs;
      } catch (error) {
        if (signal.aborted) return;
        this.#problem = describeError(error);
        const inUse = this.current() === undefined ? this.#o.meanwhile : 'the old one';
        const level = retryMs === slowestRetryMs ? 'debug' : 'warn';
        const context = { node, error: this.#problem, retryInMs: retryMs };
        logger[level](context, `no ${what} from ${this.#o.signing.signer}: ${inUse} is in use`);
      }
      for (const listener of this.#listeners) listener();
      if (this.#problem === undefined) continue;
      await sleep(retryMs, signal);
      retryMs = Math.min(retryMs * 2, slowestRetryMs);
    }
  }

  /** For how long no other one is needed. */
  #freshMs(): number {
    if (this.#current === undefined || this.#refused) return 0;
    return renewalTime(checkKeyed(this.#current)) - this.#o.clock();
  }

  async #obtain(signal: AbortSignal): Promise<KeyedCertificate> {
    const { host, node, logger, what, signing } = this.#o;
    await this.#o.mayAsk?.(signal);
    const { key, request } = await this.#o.newRequest();
    const name = await createSigningRequest(host, { ...signing, node, request }, signal);
    const hint = this.#o.hint?.(name);
    if (hint !== undefined) logger.info({ node, request: name }, `waiting for the ${what}; ${hint}`);
    const issued = { cert: await this.#whenIssued(name, signal), key };
    checkKeyed(issued);
    await this.#o.check?.(issued, signal);
    return issued;
  }

  async #whenIssued(name: string, signal: AbortSignal): Promise<string> {
    const { host, firstPollMs } = this.#o;
    const deadline = this.#monotonic() + PATIENCE_MS;
    let pollMs = firstPollMs;
    while (this.#monotonic() < deadline) {
      await sleep(pollMs, signal);
      signal.throwIfAborted();
      pollMs = Math.min(pollMs * 1.5, SLOWEST_POLL_MS);
      const state = await readSigningRequest(host, name, signal).catch((error: unknown) => {
        // A host that cannot be reached for a moment does not make the request void.
        if (isNotFound(error)) {
          throw new Error(`the certificate signing request ${name} was deleted`, { cause: error });
        }
        return { kind: 'open' as const };
      });
      if (state.kind === 'refused') throw new Error(`the certificate signing request ${name} was ${state.why}`);
      if (state.kind === 'issued') return state.certificate;
    }
    throw new Error(`nobody approved the certificate signing request ${name} within ${PATIENCE_MS / 3_600_000} h`);
  }
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
