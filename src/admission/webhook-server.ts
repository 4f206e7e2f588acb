import { createServer, type Server } from 'node:https';
import express from 'express';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { isSystemNamespace } from '../api/namespace-mapping.ts';
import { describeError } from '../kube/errors.ts';
import { closeWithin, listenOn } from '../kube/http-listener.ts';
import { checkKeyed, type KeyedCertificate } from '../kube/keyed-certificate.ts';
import { allow, parseReview } from './admission-review.ts';
import type { AdmissionMetrics } from './metrics.ts';
import { podDefaults, type PodDefaultSettings } from './pod-defaults.ts';

/** API servers send objects of 3 MiB at the most. */
const LARGEST_REVIEW = '8mb';

export interface WebhookServerOptions {
  address: string;
  /** 0: any free port. */
  port: number;
  /** Asked before each handshake, so that a new certificate needs no restart. */
  certificate: () => KeyedCertificate;
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
  #shown: KeyedCertificate;

  constructor(options: WebhookServerOptions) {
    this.#o = options;
    this.#shown = options.certificate();
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    const json = express.json({ limit: LARGEST_REVIEW, type: () => true });
    app.post('/pods/bursting', json, (request, response) => this.#review(request, response, true));
    app.post('/pods/asking', json, (request, response) => this.#review(request, response, false));
    app.use((error: unknown, _request: Request, response: Response, _next: () => void) => {
      this.#malformed(response, error instanceof Error ? error.message : String(error));
    });
    this.#server = createServer(
      { ...this.#shown, minVersion: 'TLSv1.2', requestTimeout: 10_000, headersTimeout: 5_000 },
      (request, response) => {
        app(request, response);
      },
    );
    // Before the listener that begins the handshake.
    this.#server.prependListener('connection', () => this.#refresh());
    this.#server.on('tlsClientError', (error) => {
      // What the API server says of a certificate it does not trust, among others.
      options.logger.debug({ error: error.message }, 'a TLS handshake with the webhook failed');
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

  #review(request: Request, response: Response, optedIn: boolean): void {
    const parsed = parseReview(request.body);
    if ('problem' in parsed) {
      this.#malformed(response, parsed.problem);
      return;
    }
    const { uid, operation, namespace = '', object } = parsed.request;
    const concerned = operation === 'CREATE' && !isSystemNamespace(namespace);
    const patch = concerned ? podDefaults(object, optedIn, this.#o.settings) : [];
    this.#o.metrics.reviews.inc({ outcome: patch.length === 0 ? 'unchanged' : 'changed' });
    response.json(allow(uid, patch));
  }

  #malformed(response: Response, problem: string): void {
    this.#o.metrics.reviews.inc({ outcome: 'malformed' });
    response.status(400).type('text/plain').send(`${problem}\n`);
  }

  #refresh(): void {
    const next = this.#o.certificate();
    if (next.cert === this.#shown.cert && next.key === this.#shown.key) return;
    try {
      checkKeyed(next);
      this.#server.setSecureContext({ ...next, minVersion: 'TLSv1.2' });
      this.#shown = next;
    } catch (error) {
      this.#o.logger.warn(
        { error: describeError(error) },
        'the certificate of the webhook cannot be used: the one before stays in use',
      );
    }
  }
}
