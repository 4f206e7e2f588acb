import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { monotonic } from '../kube/clock.ts';
import { describeError } from '../kube/errors.ts';
import { sendAnswer, statusAnswer, writeAnswer } from './http-answer.ts';
import { Authenticator } from './authenticator.ts';
import { Authorizer } from './authorizer.ts';
import type { ServingCertificates } from '../serving/certificates.ts';
import { ClientTrust } from '../serving/client-trust.ts';
import { Gatekeeper } from './gatekeeper.ts';
import type { KubeletMetrics } from './metrics.ts';
import { kubeletMetrics } from './metrics.ts';
import { OpenStreams } from './open-streams.ts';
import { PeerCertificates } from '../serving/peer-certificate.ts';
import { noRouteAnswer, PlainRequests } from './plain-requests.ts';
import type { PodDirectory } from './pod-directory.ts';
import type { ReviewApi } from './review-client.ts';
import { parseRequest } from './routes.ts';
import type { UpgradeRequest } from './stream-requests.ts';
import { StreamRequests } from './stream-requests.ts';
import { HANDSHAKE_TIMEOUT_MS, TlsListener } from '../serving/tls-listener.ts';
import { TokenReviewer } from './token-reviewer.ts';
import type { UsagePort } from './usage-port.ts';
import { waitAtMost } from './wait-at-most.ts';

/** As the kubelet: long commands travel in the URL. */
const LARGEST_HEAD = 1_048_576;
const CONNECTIONS = 2048;
/** Callers without a client certificate are scrapers; they are few, and strangers must not crowd out the API server. */
const CONNECTIONS_WITHOUT_CERTIFICATE = 64;
const STREAMS = 1024;
/** For everything to be gone once every connection was closed. */
const LAST_MS = 1_000;

export interface KubeletServerOptions {
  readonly nodeName: string;
  /** To bind to. */
  readonly address: string;
  readonly certificates: ServingCertificates;
  /** PEM bundle of the authorities for client certificates; asked again for each connection. */
  readonly clientCa: () => string | undefined;
  /** Answers TokenReviews and SubjectAccessReviews. */
  readonly host: ReviewApi;
  readonly pods: PodDirectory;
  readonly registry: Registry;
  readonly logger: Logger;
  /** Wall clock in ms, for how long certificates are valid. */
  readonly clock: () => number;
  /** In ms. */
  readonly monotonic?: () => number;
  /** Without it nothing is said about usage: 404. */
  readonly usage?: UsagePort;
  /** Most streams and log answers at once; default 1024. */
  readonly streams?: number;
}

/**
 * The kubelet API of one virtual node over HTTPS. Every request is first authenticated, then authorised, whatever its
 * path; streams and logs then go to the member that runs the pod. Certificates and client authorities may change
 * while it serves.
 */
export class KubeletServer {
  readonly #o: KubeletServerOptions;
  readonly #server: Server;
  readonly #tls: TlsListener;
  readonly #peers: PeerCertificates;
  readonly #gatekeeper: Gatekeeper;
  readonly #plain: PlainRequests;
  readonly #upgrades: StreamRequests;
  readonly #metrics: KubeletMetrics;
  readonly #streams: OpenStreams;
  readonly #sockets = new Set<Socket>();
  /** Connections with an ordinary answer under way: an upgrade that overtakes it would mix the two. */
  readonly #answering = new WeakMap<Socket, number>();
  readonly #work = new Set<Promise<void>>();
  #withoutCertificate = 0;

  /** Throws when the serving certificate cannot be used. */
  constructor(o: KubeletServerOptions) {
    this.#o = o;
    const { clock, host, logger, nodeName, pods, registry } = o;
    const elapsed = o.monotonic ?? monotonic;
    const warn = (what: string) => (error: unknown) =>
      logger.warn({ node: nodeName, error: describeError(error) }, what);
    const trust = new ClientTrust(o.clientCa, warn('client CA bundle cannot be used: the one before stays in force'));
    this.#tls = new TlsListener({
      certificate: () => o.certificates.current(),
      trust,
      monotonic: elapsed,
      onUnusable: warn('kubelet serving certificate cannot be used: the one before stays in use'),
    });
    this.#peers = new PeerCertificates(trust, clock);
    const metrics = kubeletMetrics(registry);
    const streams = new OpenStreams(o.streams ?? STREAMS, (change, route) =>
      metrics.openStreams.inc({ route }, change),
    );
    this.#metrics = metrics;
    this.#streams = streams;
    this.#gatekeeper = new Gatekeeper({
      nodeName,
      authenticator: new Authenticator(this.#peers, new TokenReviewer(host, elapsed)),
      authorizer: new Authorizer({ nodeName, host, monotonic: elapsed }),
      metrics,
      logger,
    });
    this.#plain = new PlainRequests({ pods, streams, registry, usage: o.usage });
    this.#upgrades = new StreamRequests({ nodeName, pods, streams, metrics, logger, monotonic: elapsed });
    this.#server = this.#create();
  }

  #create(): Server {
    const server = createServer({
      ...this.#tls.options(),
      requestCert: true,
      // Callers without a certificate may still have a token; who has neither gets a 401.
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxHeaderSize: LARGEST_HEAD,
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5_000,
      requestTimeout: 30_000,
      // Longer than the 90 s after which Go clients drop idle connections, so that we never close one in use.
      keepAliveTimeout: 120_000,
      noDelay: true,
    });
    server.maxConnections = CONNECTIONS;
    server.prependListener('connection', (connection) => {
      const socket = connection as Socket;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      this.#tls.refresh(server);
    });
    server.prependListener('secureConnection', (socket) => this.#meet(socket));
    server.on('tlsClientError', (error) => {
      const { nodeName, logger } = this.#o;
      logger.debug({ node: nodeName, error: error.message }, 'TLS handshake on the kubelet port failed');
    });
    server.on('request', (request, response) => this.#own(this.#onRequest(request, response)));
    server.on('upgrade', (request, socket, head) => {
      this.#own(this.#onUpgrade({ request, socket: socket as TLSSocket, head }));
    });
    return server;
  }

  /**
   * Answers the port, which matters for 0: any free one. Rejects when the address or port cannot be had, such as
   * EADDRINUSE; then another one may be tried.
   */
  async listen(port: number): Promise<number> {
    this.#server.listen(port, this.#o.address);
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no more connections, lets open streams end by themselves for `graceMs`, cuts the rest. Never hangs. */
  async close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.#streams.drain(graceMs);
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    await waitAtMost(LAST_MS, Promise.all([closed, ...this.#work]));
  }

  #own(work: Promise<void>): void {
    const ended = work
      .catch((error: unknown) => {
        this.#o.logger.error({ node: this.#o.nodeName, err: error }, 'kubelet request failed');
      })
      .finally(() => this.#work.delete(ended));
    this.#work.add(ended);
  }

  #meet(socket: TLSSocket): void {
    this.#peers.remember(socket, this.#tls.handshakeGeneration());
    if (socket.authorized) {
      return;
    }
    this.#withoutCertificate += 1;
    socket.once('close', () => (this.#withoutCertificate -= 1));
    if (this.#withoutCertificate > CONNECTIONS_WITHOUT_CERTIFICATE) {
      socket.destroy();
    }
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const { root, route } = parseRequest(request.method ?? '', request.url ?? '');
    this.#answering.set(socket, (this.#answering.get(socket) ?? 0) + 1);
    response.once('close', () => {
      this.#answering.set(socket, (this.#answering.get(socket) ?? 1) - 1);
      this.#count(route.kind, response.headersSent ? response.statusCode : 0);
    });
    try {
      const admission = await this.#gatekeeper.admit(request, root);
      if ('refused' in admission) {
        sendAnswer(response, admission.refused);
      } else {
        await this.#plain.serve(response, route);
      }
    } catch (error) {
      response.destroy();
      throw error;
    }
  }

  async #onUpgrade(upgrade: UpgradeRequest): Promise<void> {
    const { request, socket } = upgrade;
    // Node has taken its own listeners off; without one an error would end the process.
    socket.on('error', () => socket.destroy());
    if ((this.#answering.get(socket) ?? 0) > 0) {
      socket.destroy();
      return;
    }
    const { root, route } = parseRequest(request.method ?? '', request.url ?? '');
    try {
      const admission = await this.#gatekeeper.admit(request, root);
      if ('refused' in admission) {
        writeAnswer(socket, admission.refused);
        this.#count(route.kind, admission.refused.code);
      } else if (route.kind === 'exec' || route.kind === 'attach' || route.kind === 'portForward') {
        this.#count(route.kind, await this.#upgrades.serve(upgrade, route, admission.caller));
      } else {
        const answer = 'message' in route ? noRouteAnswer(route) : statusAnswer(400, 'no upgrade is possible here');
        writeAnswer(socket, answer);
        this.#count(route.kind, answer.code);
      }
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  #count(route: string, code: number): void {
    this.#metrics.requests.inc({ route, code: String(code) });
  }
}
