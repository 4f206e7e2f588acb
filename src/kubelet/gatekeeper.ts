import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import type { Answer } from './http-answer.ts';
import { statusAnswer, textAnswer } from './http-answer.ts';
import type { Authenticator } from './authenticator.ts';
import type { Authorizer } from './authorizer.ts';
import type { KubeletMetrics } from './metrics.ts';
import { ReviewUnavailable } from './review-client.ts';
import type { UserInfo } from '../serving/user-info.ts';

export type Admission = { readonly caller: UserInfo } | { readonly refused: Answer };

/** The one way into a kubelet server: every request passes here before anything looks at what it wants. */
export class Gatekeeper {
  readonly #nodeName: string;
  readonly #authenticator: Authenticator;
  readonly #authorizer: Authorizer;
  readonly #metrics: KubeletMetrics;
  readonly #logger: Logger;

  constructor(o: {
    nodeName: string;
    authenticator: Authenticator;
    authorizer: Authorizer;
    metrics: KubeletMetrics;
    logger: Logger;
  }) {
    this.#nodeName = o.nodeName;
    this.#authenticator = o.authenticator;
    this.#authorizer = o.authorizer;
    this.#metrics = o.metrics;
    this.#logger = o.logger;
  }

  /** `root`: the path's first segment. Nobody known: 401; no right: 403; the host cannot be asked: 503. */
  async admit(request: IncomingMessage, root: string): Promise<Admission> {
    try {
      const caller = await this.#authenticator.authenticate(request);
      if (caller === undefined) {
        this.#metrics.denied.inc({ reason: 'unauthenticated' });
        return { refused: textAnswer(401, 'Unauthorized') };
      }
      const decision = await this.#authorizer.authorize(caller, request.method ?? '', root);
      if (decision.allowed) {
        return { caller };
      }
      const { verb, subresources } = decision;
      this.#metrics.denied.inc({ reason: 'forbidden' });
      this.#logger.info({ node: this.#nodeName, user: caller.username, verb, subresources }, 'kubelet request denied');
      const needed = `verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(' ')}]`;
      return { refused: textAnswer(403, `Forbidden (user=${caller.username}, ${needed})\n`) };
    } catch (error) {
      if (!(error instanceof ReviewUnavailable)) {
        throw error;
      }
      this.#metrics.denied.inc({ reason: 'review-failed' });
      this.#logger.warn({ node: this.#nodeName, error: error.message }, 'kubelet request could not be reviewed');
      const text = 'the host cluster could not be asked about this request; try again in a moment';
      return { refused: statusAnswer(503, text) };
    }
  }
}
