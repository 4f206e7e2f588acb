import { describe, expect, it } from 'vitest';
import { ApiError, TransportError } from '../../src/kube/errors.ts';
import { refusalOf } from '../../src/pods/member-refusal.ts';
import { eachInPodWorld, type PodWorld } from '../fixtures/pod-world.ts';
import { hostPod } from '../fixtures/pods.ts';

const refused = (code: number, message: string, reason = 'Forbidden'): ApiError =>
  new ApiError({
    cluster: 'east',
    method: 'POST',
    path: '/api/v1/namespaces/shop/pods',
    code,
    status: { kind: 'Status', message, reason, code },
  });

/** A quota that creations of others were counted in at the same moment. */
const OTHERS_COUNTED =
  'Operation cannot be fulfilled on resourcequotas "gke-resource-quotas": the object has been modified; please apply your changes to the latest version and try again';

describe('what a refusal by the member is called', () => {
  it.each([
    [refused(403, 'pods "a" is forbidden: exceeded quota: small, requested: pods=1'), 'MemberQuotaExceeded'],
    [refused(403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest": …'), 'MemberPodSecurity'],
    [refused(403, 'pods "a" is forbidden: no PriorityClass with name burst-high was found'), 'MemberPriorityClass'],
    [
      refused(
        403,
        'pods "a" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [burst-high]}]',
      ),
      'MemberQuotaExceeded',
    ],
    [refused(403, 'pods is forbidden: User "spillway" cannot create resource "pods"'), 'MemberForbidden'],
    [
      refused(
        403,
        'pods "a" is forbidden: unable to create new content in namespace shop because it is being terminated',
      ),
      'NamespaceTerminating',
    ],
    [refused(422, 'Pod "a" is invalid: spec.containers[0].image: Required value', 'Invalid'), 'MemberInvalid'],
    [refused(413, 'Request entity too large: limit is 3145728', 'RequestEntityTooLarge'), 'MemberInvalid'],
    [refused(500, 'etcdserver: request is too large', ''), 'MemberInvalid'],
    [
      refused(
        403,
        'pods "a" is forbidden: error looking up service account shop/default: serviceaccount "default" not found',
      ),
      'MemberUnavailable',
    ],
    [
      refused(
        403,
        'pods "a" is forbidden: error looking up service account shop/vault: serviceaccount "vault" not found',
      ),
      'MemberServiceAccount',
    ],
    [
      refused(403, 'admission webhook "policy.example" denied the request: serviceaccount "default" not found'),
      'MemberRefused',
    ],
    [refused(400, 'admission webhook "policy" denied the request: no', 'BadRequest'), 'MemberRefused'],
    [
      refused(
        422,
        `pods "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
        'Invalid',
      ),
      'MemberRefused',
    ],
    [refused(403, 'admission webhook "policy.example" denied the request: no'), 'MemberRefused'],
    [
      refused(
        500,
        'Internal error occurred: failed calling webhook "slow": context deadline exceeded',
        'InternalError',
      ),
      'MemberUnavailable',
    ],
    [refused(429, 'too many requests', 'TooManyRequests'), 'MemberUnavailable'],
    [refused(409, OTHERS_COUNTED, 'Conflict'), 'MemberUnavailable'],
    [refused(409, 'admission webhook "policy.example" denied the request: no', 'Conflict'), 'MemberRefused'],
    [
      new TransportError({
        cluster: 'east',
        kind: 'refused',
        method: 'POST',
        path: '/x',
        detail: 'connection refused',
      }),
      'MemberUnavailable',
    ],
  ])('%s', (error, reason) => {
    const hold = refusalOf(error, 'east');
    expect(hold.reason).toBe(reason);
    expect(hold.message).toContain('Cluster "east"');
    expect(hold.message).toContain('again');
  });

  it("repeats the member's own words, without control characters and not endlessly", () => {
    const hold = refusalOf(refused(403, `webhook says \u001b[31mno\u0007 ${'x'.repeat(5000)}`), 'east');
    expect(hold.message).toContain('webhook says [31mno x');
    expect(hold.message.length).toBeLessThan(1000);
    expect(hold.message).not.toMatch(/\p{Cc}/u);
  });
});

describe('a quota of the member that others are counted in at the same moment', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  it.each(['Always', 'Never'] as const)(
    'is no news, and the pod is made at once (restartPolicy %s)',
    async (restartPolicy) => {
      const containers = [{ name: 'app', image: 'busybox' }];
      await world.stored(world.host, hostPod({ spec: { containers, restartPolicy } }));
      let times = 0;
      world.member.fault = ({ method, path }) => {
        if (method !== 'POST' || !path.endsWith('/pods') || (times += 1) > 2) return undefined;
        return { code: 409, reason: 'Conflict', message: OTHERS_COUNTED };
      };
      await world.start();
      await world.follow(1_500);
      expect([world.creations.length, world.events]).toEqual([3, []]);
      expect(world.mirrored()?.status).toBe('True');
      // The intent, where there is one, and what the copy says.
      expect(world.host.requests('PATCH')).toHaveLength(restartPolicy === 'Always' ? 1 : 2);
    },
  );
});

describe('a service account that the owner of the member makes right after the namespace', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  it('is no news for a moment, and a refusal after that', async () => {
    await world.stored(world.host, hostPod());
    const message =
      'pods "web" is forbidden: error looking up service account shop/app: serviceaccount "app" not found';
    world.member.fault = ({ method, path }) =>
      method === 'POST' && path.endsWith('/pods') ? { code: 403, reason: 'Forbidden', message } : undefined;
    await world.start();
    await world.follow(2_000);
    expect(world.mirrored()).toBeUndefined();
    await world.follow(4_000);
    expect(world.mirrored()?.reason).toBe('MemberServiceAccount');
  });
});
