import type { ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { sendAnswer, textAnswer } from './http-answer.ts';
import { serveLogs } from './logs.ts';
import type { OpenStreams } from './open-streams.ts';
import type { PodDirectory } from './pod-directory.ts';
import { sendPodList } from './pod-list.ts';
import { lookUpPod } from './pod-lookup.ts';
import type { LogsRoute, NoRoute, PlainRoute, StreamRoute, SummaryRoute } from './routes.ts';
import { sendText } from './text-answer.ts';
import type { UsagePort } from './usage-port.ts';

/** The only form that every scraper reads. */
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

const REFUSALS = { notFound: 404, methodNotAllowed: 405, badRequest: 400 } as const;

export function noRouteAnswer(route: NoRoute): ReturnType<typeof textAnswer> {
  return textAnswer(REFUSALS[route.kind], route.message);
}

/** Everything that is answered over HTTP itself, for callers who may. */
export class PlainRequests {
  readonly #pods: PodDirectory;
  readonly #streams: OpenStreams;
  readonly #registry: Registry;
  readonly #usage: UsagePort | undefined;

  constructor(o: { pods: PodDirectory; streams: OpenStreams; registry: Registry; usage?: UsagePort | undefined }) {
    this.#pods = o.pods;
    this.#streams = o.streams;
    this.#registry = o.registry;
    this.#usage = o.usage;
  }

  async serve(
    response: ServerResponse,
    route: PlainRoute | LogsRoute | StreamRoute | SummaryRoute | NoRoute,
  ): Promise<void> {
    switch (route.kind) {
      case 'healthz':
        return sendAnswer(response, textAnswer(200, 'ok'));
      case 'metrics': {
        const body = await this.#registry.metrics();
        return sendAnswer(response, { code: 200, contentType: this.#registry.contentType, body });
      }
      case 'metrics/resource':
      case 'metrics/cadvisor':
      case 'stats/summary':
        return this.#serveUsage(response, route);
      case 'pods':
        return sendPodList(response, this.#pods.list());
      case 'runningpods':
        return sendPodList(response, this.#pods.running());
      case 'containerLogs':
        return this.#logs(response, route);
      case 'exec':
      case 'attach':
      case 'portForward':
        return sendAnswer(response, textAnswer(400, 'Upgrade request required'));
      case 'notFound':
      case 'methodNotAllowed':
      case 'badRequest':
        return sendAnswer(response, noRouteAnswer(route));
    }
  }

  async #serveUsage(response: ServerResponse, route: PlainRoute | SummaryRoute): Promise<void> {
    const usage = this.#usage;
    if (usage === undefined) return sendAnswer(response, textAnswer(404, '404 page not found'));
    if (route.kind === 'stats/summary') {
      const body = await usage.summary(route.query.first('only_cpu_and_memory') === 'true');
      return sendAnswer(response, { code: 200, contentType: 'application/json', body });
    }
    const pieces = await (route.kind === 'metrics/resource' ? usage.resourceMetrics() : usage.cadvisorMetrics());
    return sendText(response, PROMETHEUS_TEXT, pieces);
  }

  async #logs(response: ServerResponse, route: LogsRoute): Promise<void> {
    const found = lookUpPod(this.#pods, route);
    switch (found.kind) {
      case 'missing':
        return sendAnswer(response, textAnswer(404, found.text));
      case 'unavailable':
        // 500 and not 503: of a 503 the API server passes on no text, and the user would not learn why.
        return sendAnswer(response, textAnswer(500, found.text));
      case 'found':
        break;
    }
    const full = this.#streams.refusal();
    if (full !== undefined) {
      return sendAnswer(response, textAnswer(500, full.message));
    }
    const { client, namespace, name } = found.target;
    return this.#streams.run(route.kind, (signal) =>
      serveLogs({ response, route, member: client, pod: { namespace, name }, signal }),
    );
  }
}
