import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import express from 'express';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { describeError } from '../kube/errors.ts';
import { closeWithin, listenOn } from '../serving/http-listener.ts';
import { monotonic } from '../kube/clock.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import { ClientTrust } from '../serving/client-trust.ts';
import { PeerCertificates } from '../serving/peer-certificate.ts';
import { HANDSHAKE_TIMEOUT_MS, TlsListener } from '../serving/tls-listener.ts';
import { Asker } from './asker.ts';
import { NotAQuestion, parseExtenderArgs, parsePreemptionArgs, refusing } from './extender-wire.ts';
import type { ExtenderArgs, FilterResult, HostPriority, PreemptionArgs, PreemptionResult } from './extender-wire.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import type { FilterVerb } from './second-question.ts';

export interface ExtenderPort {
  /** Why no question can be answered yet, in words; undefined when they can. */
  notReady(): string | undefined;
  filter(args: ExtenderArgs, verb: FilterVerb): Promise<FilterResult> | FilterResult;
  prioritize(args: ExtenderArgs): readonly HostPriority[];
  /** `hungUp`: nobody hears the answer, so that nobody is evicted for it. */
  preempt(args: PreemptionArgs, hungUp: AbortSignal): Promise<PreemptionResult>;
}

export interface ExtenderServerOptions {
  address: string;
  /** 0: any free port. */
  port: number;
  /** Asked before each handshake, so that a new certificate needs no restart. */
  certificate: () => KeyedCertificate;
  /** PEM bundle of the authorities for client certificates; likewise. Undefined: none is trusted. */
  clientCa: () => string | undefined;
  clientNames: readonly string[];
  extender: ExtenderPort;
  metrics: SchedulerMetrics;
  logger: Logger;
  clock: () => number;
}

/** A pod has 1.5 MiB at the most, and every node a name. */
const LARGEST_QUESTION = '8mb';
/** The same, and each victim its UID: 110 on each of 5,000 nodes are 26 MB. */
const LARGEST_PREEMPTION = '32mb';

const VERBS = ['filter', 'confirm', 'prioritize', 'preempt'] as const;
type Verb = (typeof VERBS)[number];

const NO_CERTIFICATE =
  'Spillway does not know this scheduler: it needs a client certificate (tlsConfig.certFile and keyFile of the extender)';

/**
 * A list of scores cannot say why it is empty. An answer about victims that names no node would forbid the scheduler all evictions, also on
 * nodes that are not our business: words alone are no answer that it can read, so it goes on as if there were none (`ignorable`), or waits.
 */
function refusalTo(verb: Verb | undefined, why: string): unknown {
  if (verb === 'prioritize') return [];
  return verb === 'preempt' ? why : refusing(why);
}

/** The question is at fault, not the answer: it is none of ours, or the body cannot be read (http-errors of express.json). */
function isTheirs(error: unknown): boolean {
  if (error instanceof NotAQuestion) return true;
  return typeof error === 'object' && error !== null && 'expose' in error && error.expose === true;
}

/**
 * The HTTPS port that kube-scheduler asks: `/filter`, `/confirm`, `/prioritize` and `/preempt`, as the extender protocol wants them. Nobody is
 * answered who has no client certificate. Certificates and authorities may change meanwhile.
 *
 * A question that cannot be answered gets status 200 and the reason in the answer: of any other status kube-scheduler tells the
 * owner of the pod nothing but the URL that it asked.
 */
export class ExtenderServer {
  readonly #o: ExtenderServerOptions;
  readonly #server: Server;
  readonly #peers: PeerCertificates;

  /** Throws when the certificate cannot be used. */
  constructor(options: ExtenderServerOptions) {
    this.#o = options;
    const warn = (what: string) => (error: unknown) => options.logger.warn({ error: describeError(error) }, what);
    const trust = new ClientTrust(
      options.clientCa,
      warn('the authorities for clients of the extender cannot be used: those before stay in force'),
    );
    const tls = new TlsListener({
      certificate: options.certificate,
      trust,
      monotonic,
      onUnusable: warn('the certificate of the extender cannot be used: the one before stays in use'),
    });
    this.#peers = new PeerCertificates(trust, options.clock);
    this.#server = createServer(
      {
        ...tls.options(),
        requestCert: true,
        // Who has no certificate is told so in an answer.
        rejectUnauthorized: false,
        ALPNProtocols: ['http/1.1'],
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        headersTimeout: 10_000,
        requestTimeout: 30_000,
        // Longer than the 90 s after which Go clients drop idle connections, so that we never close one in use.
        keepAliveTimeout: 120_000,
        noDelay: true,
      },
      this.#routes(),
    );
    this.#server.prependListener('connection', () => tls.refresh(this.#server));
    this.#server.prependListener('secureConnection', (socket) => {
      this.#peers.remember(socket, tls.handshakeGeneration());
    });
    this.#server.on('tlsClientError', (error) => {
      options.logger.debug({ error: error.message }, 'a TLS handshake with the extender failed');
    });
  }

  /** Rejects when the address cannot be had. */
  async listen(): Promise<{ port: number }> {
    const { address, port, logger } = this.#o;
    const bound = await listenOn(this.#server, { address, port });
    logger.info({ address, port: bound }, 'answering schedulers');
    return { port: bound };
  }

  /** Takes no new connections, lets answers end for `graceMs`, then breaks what is left. */
  async close(graceMs: number): Promise<void> {
    await closeWithin(this.#server, graceMs);
  }

  #routes(): express.Express {
    const { extender, metrics, logger } = this.#o;
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.use((request: Request, response: Response, next: NextFunction) => {
      if (this.#knows(request)) {
        next();
        return;
      }
      // The caller may have another certificate by now, which it shows on another connection.
      response.set('connection', 'close');
      this.#refuse(request, response, 'unknownCaller', NO_CERTIFICATE);
    });
    app.use('/preempt', express.json({ limit: LARGEST_PREEMPTION, type: () => true }));
    app.use(express.json({ limit: LARGEST_QUESTION, type: () => true }));
    const ask = <T>(
      verb: Verb,
      parse: (body: unknown) => T,
      answer: (args: T, response: Response) => unknown,
    ): void => {
      app.post(`/${verb}`, async (request: Request, response: Response) => {
        const end = metrics.seconds.startTimer({ verb });
        const why = extender.notReady();
        if (why === undefined) {
          response.json(await answer(parse(request.body), response));
          metrics.requests.inc({ verb, result: 'answered' });
        } else this.#refuse(request, response, 'notReady', `Spillway cannot answer yet, it is asked again: ${why}`);
        end();
      });
    };
    for (const verb of ['filter', 'confirm'] as const) {
      ask(verb, parseExtenderArgs, (args) => extender.filter(args, verb));
    }
    ask('prioritize', parseExtenderArgs, (args) => extender.prioritize(args));
    ask('preempt', parsePreemptionArgs, async (args, response) => {
      const asker = new Asker(response);
      // What the same scheduler asked before, and did not wait for, is over before this is answered.
      await asker.listen();
      const answer = await extender.preempt(args, asker.hungUp);
      await asker.listen();
      return answer;
    });
    app.use((request: Request, response: Response) => {
      this.#refuse(request, response, 'invalid', `Spillway answers POST of /${VERBS.join(', /')}`);
    });
    app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
      const text = describeError(error);
      logger.warn({ error: text }, 'a question of a scheduler could not be answered');
      if (isTheirs(error)) this.#refuse(request, response, 'invalid', `Spillway cannot read the question: ${text}`);
      // What went wrong here is nothing for the owner of the pod, who reads this in an Event.
      else this.#refuse(request, response, 'failed', 'Spillway failed to work out an answer; its log says why');
    });
    return app;
  }

  /**
   * A scheduler with a client certificate of a trusted authority and one of the names. No other proof counts: the only secret that
   * kube-scheduler could send stands in the URL of its configuration, which it writes into Events and its log.
   */
  #knows({ socket }: Request): boolean {
    const user = this.#peers.user(socket as TLSSocket);
    return user !== undefined && this.#o.clientNames.includes(user.username);
  }

  /** In the words of the protocol where it has some. */
  #refuse(request: Request, response: Response, result: string, why: string): void {
    const verb = VERBS.find((one) => request.path === `/${one}`);
    this.#o.metrics.requests.inc({ verb: verb ?? 'none', result });
    response.status(200).json(refusalTo(verb, why));
  }
}
