import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { atMost } from '../kube/lru-limit.ts';
import type { ReviewApi } from './review-client.ts';
import { ReviewClient } from './review-client.ts';
import type { UserInfo } from '../serving/user-info.ts';
import { withAuthenticatedGroup } from '../serving/user-info.ts';

const PATH = '/apis/authentication.k8s.io/v1/tokenreviews';
const KNOWN_MS = 120_000;
/** Short, so that a token which becomes good (a service account just made) is not refused for long. */
const UNKNOWN_MS = 10_000;
const TOKENS = 4096;
const LONGEST_TOKEN = 16_384;

const answerShape = z.object({
  status: z.object({
    authenticated: z.boolean().optional(),
    error: z.string().optional(),
    user: z
      .object({
        username: z.string().optional(),
        uid: z.string().optional(),
        groups: z.array(z.string()).nullish(),
        extra: z.record(z.string(), z.array(z.string())).nullish(),
      })
      .optional(),
  }),
});

type Verdict = { readonly user: UserInfo } | 'unknown';

/** Bearer tokens by the host's TokenReview. Keeps hashes of tokens, never tokens. */
export class TokenReviewer {
  readonly #reviews: ReviewClient;
  readonly #verdicts: LRUCache<string, { readonly verdict: Verdict }>;

  constructor(host: ReviewApi, monotonic: () => number) {
    this.#reviews = new ReviewClient(host);
    this.#verdicts = new LRUCache({ ...atMost(TOKENS), ttl: KNOWN_MS, ttlResolution: 0, perf: { now: monotonic } });
  }

  /** Undefined: the host does not know the token. Throws ReviewUnavailable when it could not be asked. */
  async review(token: string): Promise<UserInfo | undefined> {
    if (token === '' || token.length > LONGEST_TOKEN) {
      return undefined;
    }
    const key = createHash('sha256').update(token).digest('base64');
    let verdict = this.#verdicts.get(key)?.verdict;
    if (verdict === undefined) {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, spec: { token } };
      verdict = await this.#reviews.ask(key, PATH, body, readVerdict);
      this.#verdicts.set(key, { verdict }, { ttl: verdict === 'unknown' ? UNKNOWN_MS : KNOWN_MS });
    }
    return verdict === 'unknown' ? undefined : verdict.user;
  }
}

function readVerdict(answer: unknown): Verdict {
  const { status } = answerShape.parse(answer);
  const username = status.user?.username ?? '';
  if (status.authenticated !== true || username === '') {
    return 'unknown';
  }
  return {
    user: {
      username,
      groups: withAuthenticatedGroup(status.user?.groups ?? []),
      ...(status.user?.uid === undefined ? {} : { uid: status.user.uid }),
      ...(status.user?.extra ? { extra: new Map(Object.entries(status.user.extra)) } : {}),
    },
  };
}
