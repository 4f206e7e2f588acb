import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Answer } from './http-answer.ts';
import { statusAnswer, textAnswer, writeAnswer } from './http-answer.ts';
import { memberStreamPath } from './member-path.ts';
import type { KubeletMetrics } from './metrics.ts';
import type { OpenStreams } from './open-streams.ts';
import type { PodDirectory, PodTarget } from './pod-directory.ts';
import { lookUpPod } from './pod-lookup.ts';
import type { StreamRoute } from './routes.ts';
import type { SpliceResult } from './splice.ts';
import { splice } from './splice.ts';
import type { UserInfo } from '../serving/user-info.ts';

/** A request to switch protocols, taken out of HTTP parsing. `head`: stream bytes that came with it. */
export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
}

/** Exec, attach and port-forward for callers who may: finds the pod, joins the caller with its member, tells who did what. */
export class StreamRequests {
  readonly #nodeName: string;
  readonly #pods: PodDirectory;
  readonly #streams: OpenStreams;
  readonly #metrics: KubeletMetrics;
  readonly #logger: Logger;
  readonly #monotonic: () => number;

  constructor(o: {
    nodeName: string;
    pods: PodDirectory;
    streams: OpenStreams;
    metrics: KubeletMetrics;
    logger: Logger;
    monotonic: () => number;
  }) {
    this.#nodeName = o.nodeName;
    this.#pods = o.pods;
    this.#streams = o.streams;
    this.#metrics = o.metrics;
    this.#logger = o.logger;
    this.#monotonic = o.monotonic;
  }

  /** Resolves to the code that was answered when the stream is over. */
  async serve(upgrade: UpgradeRequest, route: StreamRoute, user: UserInfo): Promise<number> {
    const started = this.#monotonic();
    const traffic = { toMember: 0, fromMember: 0 };
    const opening = this.#open(upgrade.request, route);
    let end: SpliceResult;
    if ('refused' in opening) {
      writeAnswer(upgrade.socket, opening.refused);
      end = { code: opening.refused.code, result: 'refused' };
    } else {
      const { target, path } = opening;
      end = await this.#streams.run(route.kind, (signal) =>
        splice({ ...upgrade, member: target.client, path, traffic, signal }),
      );
    }
    this.#metrics.bytes.inc({ route: route.kind, direction: 'to-member' }, traffic.toMember);
    this.#metrics.bytes.inc({ route: route.kind, direction: 'from-member' }, traffic.fromMember);
    this.#logger.info(
      {
        audit: route.kind,
        node: this.#nodeName,
        user: user.username,
        groups: user.groups,
        pod: `${route.pod.namespace}/${route.pod.name}`,
        ...('container' in route ? { container: route.container } : {}),
        protocol: upgrade.request.headers.upgrade?.slice(0, 32),
        ...('target' in opening ? { member: opening.target.client.cluster } : {}),
        ...traffic,
        durationMs: Math.round(this.#monotonic() - started),
        ...end,
      },
      `${route.kind} over`,
    );
    return end.code;
  }

  #open(request: IncomingMessage, route: StreamRoute): { target: PodTarget; path: string } | { refused: Answer } {
    if (request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) !== 0) {
      return { refused: statusAnswer(400, 'a request to switch protocols has no body') };
    }
    const found = lookUpPod(this.#pods, route);
    switch (found.kind) {
      case 'missing':
        return { refused: textAnswer(404, found.text) };
      case 'unavailable':
        return { refused: statusAnswer(503, found.text) };
      case 'found':
        break;
    }
    const { target } = found;
    const member = memberStreamPath(route, target);
    if ('refused' in member) {
      return { refused: textAnswer(400, member.refused) };
    }
    const full = this.#streams.refusal();
    return full === undefined ? { target, path: member.path } : { refused: statusAnswer(full.code, full.message) };
  }
}
