import { createServer, type Server } from 'node:https';
import express from 'express';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { isSystemNamespace } from '../api/namespace-mapping.ts';
import { describeError } from '../kube/errors.ts';
import { closeWithin, listenOn } from '../serving/http-listener.ts';
import { monotonic } from '../kube/clock.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import { ClientTrust } from '../serving/client-trust.ts';
import { TlsListener } from '../serving/tls-listener.ts';
import { allow, parseReview } from './admission-review.ts';
import type { AdmissionMetrics } from './metrics.ts';
import type { PatchStep } from './patch-step.ts';
import { podDefaults, systemPodDefaults, type PodDefaultSettings } from './pod-defaults.ts';

/** API servers take requests of 3 MiB at the most, and send what is in one. */
const LARGEST_REVIEW_BYTES = 4 * 1024 * 1024;
/** Of all reviews that are being read: thousands of usual ones. Who wants more is asked to come again. */
const MOST_BYTES = 32 * 1024 * 1024;
const MOST_CONNECTIONS = 512;
/** Until a handshake, headers, a whole request must be there, and a connection may be silent, in ms. */
const HANDSHAKE_MS = 5_000;
const HEADERS_MS = 5_000;
const REQUEST_MS = 10_000;
const SILENCE_MS = 10_000;
/** How often these are looked at, in ms. */
const LOOK_MS = 1_000;

export interface WebhookServerOptions {
  address: string;
  /** 0: any free port. */
  port: number;
  /** Asked before each handshake, so that a new certificate needs no restart. */
  certificate: () => KeyedCertificate;
  /** PEM bundle, asked likewise: only who shows a client certificate of these CAs is answered. Default: whoever asks is. */
  clientCa?: (() => string | undefined) | undefined;
  settings: PodDefaultSettings;
  metrics: AdmissionMetrics;
  logger: Logger;
}

/**
 * The HTTPS port that API servers ask about new pods: `/pods/bursting` for those of namespaces that opted in, `/pods/asking`
 * for all others. It never refuses a pod. Who asks is not checked: an answer depends on the question alone and changes
 * nothing by itself.
 */
export class WebhookServer {
  readonly #o: WebhookServerOptions;
  readonly #server: Server;
  /** Of the reviews that are being read or answered. */
  #bytes = 0;

  constructor(options: WebhookServerOptions) {
    this.#o = options;
    const { certificate, clientCa, logger } = options;
    const warn = (what: string) => (error: unknown) => logger.warn({ error: describeError(error) }, what);
    const unusable = 'the authorities for clients of the webhook cannot be used: those before stay in force';
    const tls = new TlsListener({
      certificate,
      trust: clientCa === undefined ? undefined : new ClientTrust(clientCa, warn(unusable)),
      monotonic,
      onUnusable: warn('the certificate of the webhook cannot be used: the one before stays in use'),
    });
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    const json = express.json({ limit: LARGEST_REVIEW_BYTES, inflate: false, type: () => true });
    const bounded = (request: Request, response: Response, next: () => void): void => {
      this.#bounded(request, response, next);
    };
    app.post('/pods/bursting', bounded, json, (request, response) => this.#review(request, response, true));
    app.post('/pods/asking', bounded, json, (request, response) => this.#review(request, response, false));
    app.use((error: unknown, _request: Request, response: Response, _next: () => void) => {
      this.#malformed(response, error instanceof Error ? error.message : String(error));
    });
    this.#server = createServer(
      {
        ...tls.options(),
        requestCert: clientCa !== undefined,
        rejectUnauthorized: clientCa !== undefined,
        handshakeTimeout: HANDSHAKE_MS,
        headersTimeout: HEADERS_MS,
        requestTimeout: REQUEST_MS,
        connectionsCheckingInterval: LOOK_MS,
      },
      (request, response) => {
        app(request, response);
      },
    );
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#server.setTimeout(SILENCE_MS);
    // Before the listener that begins the handshake.
    this.#server.prependListener('connection', () => tls.refresh(this.#server));
    this.#server.on('tlsClientError', (error) => {
      // What the API server says of a certificate it does not trust, among others.
      logger.debug({ error: error.message }, 'a TLS handshake with the webhook failed');
    });
  }

  /** Rejects when the address cannot be had, such as EADDRINUSE. */
  async listen(): Promise<{ port: number }> {
    const { address, port, logger } = this.#o;
    const bound = await listenOn(this.#server, { address, port });
    logger.info({ address, port: bound }, 'serving the pod webhook');
    return { port: bound };
  }

  /** Takes no new connections, lets answers end for `graceMs`, then breaks what is left. */
  async close(graceMs: number): Promise<void> {
    await closeWithin(this.#server, graceMs);
  }

  /** Reads no more than fits; API servers say beforehand how long a review is. */
  #bounded(request: Request, response: Response, next: () => void): void {
    const length = Number(request.headers['content-length'] ?? Number.NaN);
    if (Number.isNaN(length)) this.#refuse(response, 411, 'a review has to say how long it is');
    else if (length > LARGEST_REVIEW_BYTES) this.#refuse(response, 413, `${length} bytes are too much for a review`);
    else if (this.#bytes + length > MOST_BYTES) this.#refuse(response, 503, 'too many reviews at once');
    else {
      this.#bytes += length;
      response.once('close', () => {
        this.#bytes -= length;
      });
      next();
    }
  }

  /** Its body is not read, so the connection cannot be used any more. */
  #refuse(response: Response, status: number, problem: string): void {
    this.#o.metrics.reviews.inc({ outcome: 'refused' });
    response.status(status).set('connection', 'close').type('text/plain').send(`${problem}\n`);
  }

  #review(request: Request, response: Response, optedIn: boolean): void {
    const parsed = parseReview(request.body);
    if ('problem' in parsed) {
      this.#malformed(response, parsed.problem);
      return;
    }
    const { uid, operation, namespace = '', object } = parsed.request;
    const patch = operation === 'CREATE' ? this.#patch(object, namespace, optedIn) : [];
    this.#o.metrics.reviews.inc({ outcome: patch.length === 0 ? 'unchanged' : 'changed' });
    response.json(allow(uid, patch));
  }

  #patch(pod: unknown, namespace: string, optedIn: boolean): PatchStep[] {
    return isSystemNamespace(namespace) ? systemPodDefaults(pod) : podDefaults(pod, optedIn, this.#o.settings);
  }

  #malformed(response: Response, problem: string): void {
    this.#o.metrics.reviews.inc({ outcome: 'malformed' });
    response.status(400).type('text/plain').send(`${problem}\n`);
  }
}
