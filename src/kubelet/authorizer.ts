import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { atMost } from '../kube/lru-limit.ts';
import { nodeAttributes } from './authorization-attributes.ts';
import type { ReviewApi } from './review-client.ts';
import { ReviewClient } from './review-client.ts';
import type { UserInfo } from '../serving/user-info.ts';

const PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const ALLOWED_MS = 300_000;
const DENIED_MS = 30_000;
const ANSWERS = 8192;

const answerShape = z.object({ status: z.object({ allowed: z.boolean(), denied: z.boolean().optional() }) });

export type Decision =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly verb: string; readonly subresources: readonly string[] };

/** Asks the host whether a caller may use this virtual node's kubelet API; answers are kept as the kubelet keeps them. */
export class Authorizer {
  readonly #nodeName: string;
  readonly #reviews: ReviewClient;
  readonly #answers: LRUCache<string, { readonly allowed: boolean }>;

  constructor(o: { nodeName: string; host: ReviewApi; monotonic: () => number }) {
    this.#nodeName = o.nodeName;
    this.#reviews = new ReviewClient(o.host);
    this.#answers = new LRUCache({ ...atMost(ANSWERS), ttl: ALLOWED_MS, ttlResolution: 0, perf: { now: o.monotonic } });
  }

  /** `root`: the path's first segment. Throws ReviewUnavailable; that is never a yes. */
  async authorize(user: UserInfo, method: string, root: string): Promise<Decision> {
    const attributes = nodeAttributes(method, root);
    if (attributes === undefined) {
      return { allowed: false, verb: method.toLowerCase(), subresources: ['proxy'] };
    }
    for (const subresource of attributes.subresources) {
      if (await this.#may(user, attributes.verb, subresource)) {
        return { allowed: true };
      }
    }
    return { allowed: false, ...attributes };
  }

  async #may(user: UserInfo, verb: string, subresource: string): Promise<boolean> {
    const extra = user.extra === undefined ? {} : { extra: Object.fromEntries(user.extra) };
    const spec = {
      user: user.username,
      groups: user.groups,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...extra,
      resourceAttributes: { verb, version: 'v1', resource: 'nodes', subresource, name: this.#nodeName },
    };
    const key = JSON.stringify(spec);
    const kept = this.#answers.get(key);
    if (kept !== undefined) {
      return kept.allowed;
    }
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', metadata: {}, spec };
    const allowed = await this.#reviews.ask(key, PATH, body, readAllowed);
    this.#answers.set(key, { allowed }, { ttl: allowed ? ALLOWED_MS : DENIED_MS });
    return allowed;
  }
}

function readAllowed(answer: unknown): boolean {
  const { status } = answerShape.parse(answer);
  return status.allowed && status.denied !== true;
}
