import type { ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { sendAnswer, textAnswer } from './answer.ts';
import { serveLogs } from './logs.ts';
import type { OpenStreams } from './open-streams.ts';
import type { PodDirectory } from './pod-directory.ts';
import { sendPodList } from './pod-list.ts';
import { lookUpPod } from './pod-lookup.ts';
import type { LogsRoute, NoRoute, PlainRoute, StreamRoute } from './routes.ts';

const REFUSALS = { notFound: 404, methodNotAllowed: 405, badRequest: 400 } as const;

export function noRouteAnswer(route: NoRoute): ReturnType<typeof textAnswer> {
  return textAnswer(REFUSALS[route.kind], route.message);
}

/** Everything that is answered over HTTP itself, for callers who may. */
export class PlainRequests {
  readonly #pods: PodDirectory;
  readonly #streams: OpenStreams;
  readonly #registry: Registry;

  constructor(o: { pods: PodDirectory; streams: OpenStreams; registry: Registry }) {
    this.#pods = o.pods;
    this.#streams = o.streams;
    this.#registry = o.registry;
  }

  async serve(response: ServerResponse, route: PlainRoute | LogsRoute | StreamRoute | NoRoute): Promise<void> {
    switch (route.kind) {
      case 'healthz':
        return sendAnswer(response, textAnswer(200, 'ok'));
      case 'metrics': {
        const body = await this.#registry.metrics();
        return sendAnswer(response, { code: 200, contentType: this.#registry.contentType, body });
      }
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
