import { describe, expect, test } from 'vitest';
import { nodeAttributes } from '../../src/kubelet/authorization-attributes.ts';
import { Authorizer } from '../../src/kubelet/authorizer.ts';
import { ReviewUnavailable } from '../../src/kubelet/review-client.ts';

describe('rights that a request needs', () => {
  test.each([
    ['GET', 'pods', 'get', ['pods', 'proxy']],
    ['GET', 'runningpods', 'get', ['pods', 'proxy']],
    ['GET', 'healthz', 'get', ['healthz', 'proxy']],
    ['GET', 'configz', 'get', ['configz', 'proxy']],
    ['GET', 'stats', 'get', ['stats']],
    ['POST', 'stats', 'create', ['stats']],
    ['GET', 'metrics', 'get', ['metrics']],
    ['GET', 'logs', 'get', ['log']],
    ['POST', 'checkpoint', 'create', ['checkpoint']],
    ['GET', 'statusz', 'get', ['statusz']],
    ['GET', 'flagz', 'get', ['configz']],
    ['GET', 'containerLogs', 'get', ['proxy']],
    ['GET', 'exec', 'create', ['proxy']],
    ['POST', 'exec', 'create', ['proxy']],
    ['GET', 'attach', 'create', ['proxy']],
    ['GET', 'portForward', 'create', ['proxy']],
    ['GET', 'run', 'create', ['proxy']],
    ['GET', '', 'get', ['proxy']],
    ['GET', 'unknown', 'get', ['proxy']],
    ['GET', '__proto__', 'get', ['proxy']],
    ['HEAD', 'healthz', 'get', ['healthz', 'proxy']],
    ['PUT', 'x', 'update', ['proxy']],
    ['PATCH', 'x', 'patch', ['proxy']],
    ['DELETE', 'pods', 'delete', ['pods', 'proxy']],
  ])('%s /%s asks %s on %j', (method, root, verb, subresources) => {
    expect(nodeAttributes(method, root)).toEqual({ verb, subresources });
  });

  test('a method without a verb has no right', () => {
    expect(nodeAttributes('PROPFIND', 'pods')).toBeUndefined();
  });
});

interface Asked {
  user: string;
  groups: string[];
  resourceAttributes: { verb: string; subresource: string; name: string; resource: string };
}

function authorizerWith(answer: (asked: Asked) => unknown): {
  authorizer: Authorizer;
  asked: Asked[];
  passTime: (ms: number) => void;
} {
  const asked: Asked[] = [];
  let now = 1_000;
  const host = {
    request: <T>(request: { path: string; body: unknown }): Promise<T> => {
      expect(request.path).toBe('/apis/authorization.k8s.io/v1/subjectaccessreviews');
      const { spec } = request.body as { spec: Asked };
      asked.push(spec);
      return Promise.resolve().then(() => answer(spec) as T);
    },
  };
  const authorizer = new Authorizer({ nodeName: 'virtual-1', host, monotonic: () => now });
  return { authorizer, asked, passTime: (ms) => (now += ms) };
}

const USER = { username: 'alice', groups: ['dev', 'system:authenticated'] };

describe('asking the host', () => {
  test('tries the fine subresource first, then proxy; one yes is enough', async () => {
    const { authorizer, asked } = authorizerWith((spec) => ({
      status: { allowed: spec.resourceAttributes.subresource === 'proxy' },
    }));
    expect(await authorizer.authorize(USER, 'GET', 'pods')).toEqual({ allowed: true });
    expect(asked.map((spec) => spec.resourceAttributes)).toEqual(
      ['pods', 'proxy'].map((subresource) => ({
        verb: 'get',
        version: 'v1',
        resource: 'nodes',
        subresource,
        name: 'virtual-1',
      })),
    );
    expect(asked[0]).toMatchObject({ user: 'alice', groups: ['dev', 'system:authenticated'] });
  });

  test('keeps a yes for five minutes and a no for thirty seconds, per user and right', async () => {
    let allowed = true;
    const { authorizer, asked, passTime } = authorizerWith(() => ({ status: { allowed } }));
    await authorizer.authorize(USER, 'GET', 'stats');
    allowed = false;
    passTime(299_000);
    expect((await authorizer.authorize(USER, 'GET', 'stats')).allowed).toBe(true);
    expect(asked).toHaveLength(1);
    passTime(2_000);
    expect(await authorizer.authorize(USER, 'GET', 'stats')).toEqual({
      allowed: false,
      verb: 'get',
      subresources: ['stats'],
    });
    allowed = true;
    passTime(29_000);
    expect((await authorizer.authorize(USER, 'GET', 'stats')).allowed).toBe(false);
    passTime(2_000);
    expect((await authorizer.authorize(USER, 'GET', 'stats')).allowed).toBe(true);
    expect(asked).toHaveLength(3);
    await authorizer.authorize({ ...USER, username: 'bob' }, 'GET', 'stats');
    await authorizer.authorize({ ...USER, groups: [] }, 'GET', 'stats');
    await authorizer.authorize(USER, 'POST', 'stats');
    expect(asked).toHaveLength(6);
  });

  test('an explicit denial wins over allowed', async () => {
    const { authorizer } = authorizerWith(() => ({ status: { allowed: true, denied: true } }));
    expect((await authorizer.authorize(USER, 'GET', 'stats')).allowed).toBe(false);
  });

  test.each([
    ['an error', () => Promise.reject(new Error('connection refused'))],
    ['an empty object', () => ({})],
    ['no answer in the status', () => ({ status: {} })],
    ['a string for a boolean', () => ({ status: { allowed: 'true' } })],
  ])('%s is neither yes nor remembered', async (_what, answer) => {
    let broken = true;
    const { authorizer } = authorizerWith(() => (broken ? answer() : { status: { allowed: true } }));
    await expect(authorizer.authorize(USER, 'GET', 'stats')).rejects.toBeInstanceOf(ReviewUnavailable);
    broken = false;
    expect((await authorizer.authorize(USER, 'GET', 'stats')).allowed).toBe(true);
  });

  test('the same question at the same time is asked once, and many questions are bounded', async () => {
    let open = 0;
    let most = 0;
    const { authorizer, asked } = authorizerWith(async () => {
      open += 1;
      most = Math.max(most, open);
      await new Promise((resolve) => setImmediate(resolve));
      open -= 1;
      return { status: { allowed: true } };
    });
    await Promise.all(Array.from({ length: 50 }, () => authorizer.authorize(USER, 'GET', 'stats')));
    expect(asked).toHaveLength(1);
    const many = await Promise.allSettled(
      Array.from({ length: 400 }, (_, i) => authorizer.authorize({ ...USER, username: `u${i}` }, 'GET', 'stats')),
    );
    expect(most).toBeLessThanOrEqual(16);
    expect(many.filter((one) => one.status === 'rejected').length).toBeGreaterThan(100);
    expect(many.filter((one) => one.status === 'fulfilled').length).toBeGreaterThan(200);
  });
});
