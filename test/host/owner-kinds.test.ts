import { expect, it } from 'vitest';
import type { KubeRequest } from '../../src/kube/request.ts';
import { OwnerKinds } from '../../src/host/owner-kinds.ts';

const SIGNAL = new AbortController().signal;
const ROLLOUT = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' };

function setup() {
  const world = { mayGet: false, serves: true, answers: true };
  const asked: string[] = [];
  let now = 1_000;
  const host = {
    request: async <T>({ path, body }: KubeRequest): Promise<T> => {
      await Promise.resolve();
      asked.push(path);
      if (!world.answers) throw new Error('the host is away');
      if (path === '/apis') {
        const versions = [{ version: 'v1alpha1' }];
        return { groups: world.serves ? [{ name: 'argoproj.io', versions }] : [] } as T;
      }
      if (path.startsWith('/apis/argoproj.io')) {
        const verbs = ['get', 'list', 'watch'];
        return { resources: [{ name: 'rollouts', kind: 'Rollout', namespaced: true, verbs }] } as T;
      }
      expect(body).toMatchObject({
        spec: { resourceAttributes: { verb: 'get', group: 'argoproj.io', resource: 'rollouts' } },
      });
      return { status: { allowed: world.mayGet } } as T;
    },
  };
  const kinds = new OwnerKinds(host, () => now);
  const why = async (kind = ROLLOUT) => await kinds.whyUnread(kind, SIGNAL);
  const isAbsent = async (kind = ROLLOUT) => await kinds.isAbsent(kind, SIGNAL);
  return { world, asked, why, isAbsent, kinds, pass: (ms: number) => (now += ms) };
}

it('says that a right is missing, until it is there, and asks for that no more than every ten seconds', async () => {
  const { world, asked, why, pass } = setup();
  expect(await why()).toMatch(/may not read rollouts\.argoproj\.io: make a ClusterRole/);
  world.mayGet = true;
  const before = asked.length;
  expect(await why()).toMatch(/may not read/);
  expect(asked).toHaveLength(before);
  pass(10_001);
  expect(await why()).toBeUndefined();
});

it('says that the host has no such kind, and looks again', async () => {
  const { world, why, pass } = setup();
  Object.assign(world, { serves: false, mayGet: true });
  expect(await why()).toBe('the host has no such kind');
  world.serves = true;
  pass(10_001);
  expect(await why()).toBeUndefined();
});

it('finds a kind without asking again, until it is told that it may not be there any more', async () => {
  const { world, asked, kinds, pass } = setup();
  const resource = { group: 'argoproj.io', version: 'v1alpha1', kind: 'Rollout', plural: 'rollouts', namespaced: true };
  expect(await kinds.find(ROLLOUT, SIGNAL)).toEqual({ resource });
  pass(3_600_000);
  world.serves = false;
  const before = asked.length;
  expect(await kinds.find(ROLLOUT, SIGNAL)).toEqual({ resource });
  expect(asked).toHaveLength(before);
  kinds.forget('argoproj.io/v1alpha1');
  expect(await kinds.find(ROLLOUT, SIGNAL)).toEqual({ why: 'the host has no such kind' });
});

it('says what the host answers, and that it is tried again', async () => {
  const { world, why } = setup();
  world.answers = false;
  expect(await why()).toBe('it is tried again: the host is away');
});

it('knows which kinds the host does not have, whatever rights are missing, and never of those that it could not ask about', async () => {
  const { world, asked, isAbsent, pass } = setup();
  world.answers = false;
  expect(await isAbsent()).toBe(false);
  world.answers = true;
  expect(await isAbsent()).toBe(false);
  const typingError = { ...ROLLOUT, kind: 'Rolout' };
  expect(await isAbsent(typingError)).toBe(true);
  const before = asked.length;
  for (let times = 0; times < 3; times += 1) expect(await isAbsent(typingError)).toBe(true);
  expect(asked).toHaveLength(before);
  const other = { apiVersion: 'example.com/v1', kind: 'Robot' };
  expect(await isAbsent(other)).toBe(true);
  pass(10_001);
  expect(await isAbsent(other)).toBe(true);
  expect(asked.slice(before)).toEqual(['/apis']);
});

it('has nothing to say of kinds of Kubernetes', async () => {
  const { asked, why, isAbsent } = setup();
  expect(await isAbsent({ apiVersion: 'apps/v1', kind: 'Deploymnet' })).toBe(false);
  expect(await why({ apiVersion: 'apps/v1', kind: 'Deployment' })).toBeUndefined();
  expect(await why({ apiVersion: 'v1', kind: 'ConfigMap' })).toBeUndefined();
  expect(asked).toEqual([]);
});
