import { createServer } from 'node:http';
import type { Server } from 'node:http';
import express from 'express';
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { closeWithin, listenOn } from '../serving/http-listener.ts';

/** One thing that must hold. `check` answers true, or says in words what is missing. It must not wait. */
export interface HealthCheck {
  name: string;
  check(): true | string;
}

export interface TelemetryServerOptions {
  address: string;
  /** 0: any free port. */
  port: number;
  registry: Registry;
  /** Behind /readyz: whether this process can do its work. */
  readiness: readonly HealthCheck[];
  logger: Logger;
}

/** The manager's plain HTTP port: /metrics, /healthz and /readyz, as Kubernetes probes and Prometheus ask for them. */
export class TelemetryServer {
  readonly #options: TelemetryServerOptions;
  readonly #server: Server;

  constructor(options: TelemetryServerOptions) {
    this.#options = options;
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.get('/healthz', (request, response) => answer([], request, response));
    app.get('/readyz', (request, response) => answer(options.readiness, request, response));
    app.get('/metrics', async (_request, response) => {
      const text = await options.registry.metrics();
      response.set('content-type', options.registry.contentType).send(text);
    });
    this.#server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, (request, response) => {
      app(request, response);
    });
  }

  /** Rejects when the address cannot be had, such as EADDRINUSE. */
  async listen(): Promise<{ port: number }> {
    const { address, port, logger } = this.#options;
    const bound = await listenOn(this.#server, { address, port });
    logger.info({ address, port: bound }, 'serving metrics and health');
    return { port: bound };
  }

  /** Takes no new connections, lets answers end for `graceMs`, then breaks what is left. */
  async close(graceMs: number): Promise<void> {
    await closeWithin(this.#server, graceMs);
  }
}

/** `ok`, or 503 with a line for each check that fails; `?verbose` lists all, as the API server does. */
function answer(checks: readonly HealthCheck[], request: Request, response: Response): void {
  const results = checks.map((one) => ({ name: one.name, result: one.check() }));
  const failed = results.filter(({ result }) => result !== true);
  response.status(failed.length === 0 ? 200 : 503).type('text/plain');
  if (failed.length === 0 && request.query['verbose'] === undefined) {
    response.send('ok');
    return;
  }
  const lines = results.map(({ name, result }) => (result === true ? `[+]${name} ok` : `[-]${name}: ${result}`));
  response.send(`${lines.join('\n')}\n`);
}
