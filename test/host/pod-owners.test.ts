import { describe, expect, it } from 'vitest';
import { ApiError, TransportError } from '../../src/kube/errors.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { KubeRequest } from '../../src/kube/request.ts';
import { OwnerKinds } from '../../src/host/owner-kinds.ts';
import { PodOwners } from '../../src/host/pod-owners.ts';
import { boundPod } from '../fixtures/translation.ts';
import { webPod } from '../overrides/rendered-pod.ts';

const SIGNAL = new AbortController().signal;
const refusal = (code: number, reason: string) =>
  new ApiError({ cluster: 'host', method: 'GET', path: '/', code, status: { kind: 'Status', reason, code } });
const WHERE = { cluster: 'host', method: 'GET', path: '/' };
const owner = (kind: string, name: string, uid: string, apiVersion = 'apps/v1') => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
});

const ROLLOUTS = { name: 'rollouts', kind: 'Rollout', namespaced: true, verbs: ['get', 'list', 'watch'] };
const APPS = { name: 'apps', kind: 'App', namespaced: false, verbs: ['get', 'list', 'watch'] };
const SERVED: Record<string, object> = {
  '/apis': { groups: [{ name: 'argoproj.io', versions: [{ version: 'v1alpha1' }] }] },
  '/apis/argoproj.io/v1alpha1': { resources: [ROLLOUTS, APPS] },
};

/** Of an owner: what the host says, or what it does not say yet. */
type Answer = KubeObject['metadata'] | Error | Promise<never>;

function setup(objects: Record<string, Answer>, wantsCustom = false, served = SERVED) {
  const requests: KubeRequest[] = [];
  let now = 1000;
  const host = {
    request: async <T>(request: KubeRequest): Promise<T> => {
      requests.push(request);
      await Promise.resolve();
      const listed = served[request.path];
      if (listed !== undefined) return listed as T;
      const found = await objects[request.path.split('/').slice(-2).join('/')];
      if (found === undefined) throw refusal(404, 'NotFound');
      if (found instanceof Error) throw found;
      return { metadata: found } as T;
    },
  };
  const monotonic = (): number => now;
  const kinds = new OwnerKinds(host, monotonic);
  const owners = new PodOwners({ host, kinds, wantsCustom: () => wantsCustom, monotonic });
  return { owners, kinds, requests, pass: (ms: number) => (now += ms) };
}
const REPLICA_SET = {
  name: 'web-5d4f8',
  uid: 'rs-uid',
  labels: { app: 'web' },
  ownerReferences: [owner('Deployment', 'web', 'd-uid')],
};
const DEPLOYMENT = { name: 'web', uid: 'd-uid', labels: { team: 'a' } };
const WORLD = { 'replicasets/web-5d4f8': REPLICA_SET, 'deployments/web': DEPLOYMENT };
const inWords = (identities: readonly { kind: string; name: string; labels: object | undefined }[] | undefined) =>
  identities?.map(({ kind, name, labels }) => `${kind} ${name} ${JSON.stringify(labels)}`);

describe('PodOwners', () => {
  it('reads the chain once for a crowd of pods, and only metadata', async () => {
    const { owners, requests } = setup(WORLD);
    const pods = Array.from({ length: 20 }, () => webPod());
    const chains = await Promise.all(pods.map(async (pod) => await owners.read(pod, SIGNAL)));
    expect(inWords(chains[19])).toEqual([
      'Pod web-5d4f8-x2x2x {"app":"web","pod-template-hash":"5d4f8"}',
      'ReplicaSet web-5d4f8 {"app":"web"}',
      'Deployment web {"team":"a"}',
    ]);
    expect(requests.map(({ path }) => path)).toEqual([
      '/apis/apps/v1/namespaces/shop/replicasets/web-5d4f8',
      '/apis/apps/v1/namespaces/shop/deployments/web',
    ]);
    expect(requests.every(({ accept }) => accept?.includes('as=PartialObjectMetadata'))).toBe(true);
  });

  it('knows without reading what was read, for a minute', async () => {
    const { owners, requests, pass } = setup(WORLD);
    expect(owners.known(webPod())).toBeUndefined();
    const chain = await owners.read(webPod(), SIGNAL);
    pass(59_000);
    expect(owners.known(webPod())).toEqual(chain);
    pass(2000);
    expect(owners.known(webPod())).toBeUndefined();
    await owners.read(webPod(), SIGNAL);
    expect(requests).toHaveLength(4);
  });

  it('reads for those who cannot wait while it runs, and tries again what failed', async () => {
    const world: Record<string, KubeObject['metadata'] | Error> = { ...WORLD, 'deployments/web': refusal(503, 'Busy') };
    const { owners } = setup(world);
    owners.want(webPod());
    const end = new AbortController();
    const running = owners.run(end.signal);
    owners.want(webPod());
    await new Promise(setImmediate);
    expect(owners.known(webPod())).toBeUndefined();
    world['deployments/web'] = DEPLOYMENT;
    owners.want(webPod());
    end.abort();
    // What was begun is ended, so that nothing is left behind.
    await running;
    expect(owners.known(webPod())).toHaveLength(3);
    owners.want(boundPod());
  });

  it('needs to read nothing of a bare pod', async () => {
    const { owners, requests } = setup({});
    expect(owners.known(boundPod())).toHaveLength(1);
    expect(await owners.read(boundPod(), SIGNAL)).toHaveLength(1);
    expect(requests).toEqual([]);
  });

  it('follows a Job to its CronJob', async () => {
    const { owners } = setup({
      'jobs/night-1': { name: 'night-1', uid: 'j', ownerReferences: [owner('CronJob', 'night', 'c', 'batch/v1')] },
      'cronjobs/night': { name: 'night', uid: 'c', labels: { team: 'b' } },
    });
    const pod = boundPod({}, { ownerReferences: [owner('Job', 'night-1', 'j', 'batch/v1')] });
    expect(inWords(await owners.read(pod, SIGNAL))?.slice(1)).toEqual(['Job night-1 {}', 'CronJob night {"team":"b"}']);
  });

  it.each([
    ['is gone', refusal(404, 'NotFound')],
    ['was replaced by another', { ...REPLICA_SET, uid: 'other' }],
  ])('takes an owner that %s for one without labels', async (_what, answer) => {
    const { owners } = setup({ ...WORLD, 'replicasets/web-5d4f8': answer });
    expect(inWords(await owners.read(webPod(), SIGNAL))?.slice(1)).toEqual(['ReplicaSet web-5d4f8 {}']);
    expect(owners.known(webPod())).toHaveLength(2);
  });

  it('does not know labels of what it may not read, but names', async () => {
    const { owners } = setup({
      'replicasets/web-5d4f8': refusal(403, 'Forbidden'),
      'deployments/web': refusal(403, 'Forbidden'),
    });
    expect(inWords(await owners.read(webPod(), SIGNAL))?.slice(1)).toEqual([
      'ReplicaSet web-5d4f8 undefined',
      'Deployment web undefined',
    ]);
  });

  describe('of kinds that are not Kubernetes’ own', () => {
    const ROLLOUT = { name: 'web', uid: 'r', labels: { tier: 'front' } };
    const rollout = owner('Rollout', 'web', 'r', 'argoproj.io/v1alpha1');
    const ofRollout = boundPod({}, { ownerReferences: [rollout] });

    it('reads nothing, and asks for no kinds, where no policy chooses by them', async () => {
      const { owners, requests } = setup({ 'rollouts/web': ROLLOUT });
      expect(inWords(owners.known(ofRollout))?.slice(1)).toEqual(['Rollout web undefined']);
      expect(inWords(await owners.read(ofRollout, SIGNAL))?.slice(1)).toEqual(['Rollout web undefined']);
      expect(requests).toEqual([]);
    });

    it('reads the whole chain, to what is in no namespace, by its metadata, once for all', async () => {
      const { owners, requests } = setup(
        {
          'replicasets/web-5d4f8': { ...REPLICA_SET, ownerReferences: [rollout] },
          'rollouts/web': { ...ROLLOUT, ownerReferences: [owner('App', 'shop', 'a', 'argoproj.io/v1alpha1')] },
          'apps/shop': { name: 'shop', uid: 'a', labels: { team: 'c' } },
        },
        true,
      );
      expect(owners.known(webPod())).toBeUndefined();
      await Promise.all([1, 2, 3].map(async () => await owners.read(webPod(), SIGNAL)));
      expect(inWords(owners.known(webPod()))?.slice(1)).toEqual([
        'ReplicaSet web-5d4f8 {"app":"web"}',
        'Rollout web {"tier":"front"}',
        'App shop {"team":"c"}',
      ]);
      expect(requests.map(({ path }) => path).slice(1)).toEqual([
        '/apis',
        '/apis/argoproj.io/v1alpha1',
        '/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web',
        '/apis/argoproj.io/v1alpha1/apps/shop',
      ]);
    });

    it('does not know their labels while it may not read them, says what to grant, and looks again soon', async () => {
      const objects: Record<string, KubeObject['metadata'] | Error> = { 'rollouts/web': refusal(403, 'Forbidden') };
      const { owners, pass } = setup(objects, true);
      const [, unread] = await owners.read(ofRollout, SIGNAL);
      expect(unread?.labels).toBeUndefined();
      expect(unread?.unread).toMatch(/may not read rollouts\.argoproj\.io: make a ClusterRole with the label/);
      objects['rollouts/web'] = ROLLOUT;
      expect(owners.known(ofRollout)).toHaveLength(2);
      pass(10_001);
      expect(owners.known(ofRollout)).toBeUndefined();
      expect(inWords(await owners.read(ofRollout, SIGNAL))?.slice(1)).toEqual(['Rollout web {"tier":"front"}']);
    });

    it('costs no more than a look at what the host serves, however many kinds somebody makes up', async () => {
      const { owners, requests } = setup({}, true);
      for (let index = 0; index < 100; index += 1) {
        const madeUp = owner('Robot', 'r', `made-up-${index}`, `x${index}.example.com/v1`);
        const [, unread] = await owners.read(boundPod({}, { ownerReferences: [madeUp] }), SIGNAL);
        expect(unread).toMatchObject({ labels: undefined, unread: 'the host has no such kind' });
      }
      expect(requests.map(({ path }) => path)).toEqual(['/apis']);
    });

    it('are not taken for ones without labels while the host does not answer', async () => {
      const { owners } = setup({ 'rollouts/web': refusal(503, 'ServiceUnavailable') }, true);
      await expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow();
      expect(owners.known(ofRollout)).toBeUndefined();
    });

    const ofOther = boundPod({}, { ownerReferences: [{ ...rollout, name: 'api', uid: 'r2' }] });
    const hangs = () => new TransportError({ ...WHERE, kind: 'timeout', detail: 'nothing within 3000 ms' });
    const WORDS = 'Rollout (argoproj.io/v1alpha1): cluster host: nothing within 3000 ms (transient)';

    it('are given little time and one try, which those of Kubernetes are not', async () => {
      const { owners, requests } = setup({ ...WORLD, 'rollouts/web': ROLLOUT }, true);
      await owners.read(ofRollout, SIGNAL);
      expect(requests.at(-1)).toMatchObject({ deadlineMs: 3_000, retry: false });
      await owners.read(webPod(), SIGNAL);
      expect(requests.at(-1)).not.toHaveProperty('deadlineMs');
    });

    it('of one that hangs none is asked for during ten seconds, and then one by one while the others hear at once', async () => {
      const objects: Record<string, Answer> = {
        'rollouts/web': hangs(),
        'rollouts/api': ROLLOUT,
        'apps/shop': DEPLOYMENT,
      };
      const { owners, requests, pass } = setup(objects, true);
      await expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow(WORDS);
      const before = requests.length;
      await expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow(WORDS);
      await expect(owners.read(ofOther, SIGNAL)).rejects.toThrow(WORDS);
      expect(requests).toHaveLength(before);
      const ofApp = boundPod({}, { ownerReferences: [owner('App', 'shop', 'd-uid', 'argoproj.io/v1alpha1')] });
      expect(await owners.read(ofApp, SIGNAL)).toHaveLength(2);
      pass(10_001);
      let reject: (error: Error) => void = () => undefined;
      objects['rollouts/web'] = new Promise<never>((_, fail) => (reject = fail));
      const asking = expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow(WORDS);
      await expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow(WORDS);
      await expect(owners.read(ofOther, SIGNAL)).rejects.toThrow(WORDS);
      reject(hangs());
      await asking;
      expect(requests).toHaveLength(before + 2);
      pass(10_001);
      objects['rollouts/web'] = ROLLOUT;
      expect(await owners.read(ofRollout, SIGNAL)).toHaveLength(2);
      expect(await owners.read(ofOther, SIGNAL)).toHaveLength(2);
    });

    it('do not fail for one object of theirs that the host cannot read', async () => {
      const other = { ...ROLLOUT, name: 'api', uid: 'r2' };
      const { owners, requests } = setup(
        { 'rollouts/web': refusal(500, 'InternalError'), 'rollouts/api': other },
        true,
      );
      await expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow();
      const before = requests.length;
      await expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow();
      expect(requests).toHaveLength(before);
      expect(await owners.read(ofOther, SIGNAL)).toHaveLength(2);
    });

    it('are asked for at once after somebody stopped waiting', async () => {
      const objects: Record<string, Answer> = { 'rollouts/web': hangs() };
      const { owners } = setup(objects, true);
      await expect(owners.read(ofRollout, AbortSignal.abort())).rejects.toThrow();
      objects['rollouts/web'] = ROLLOUT;
      expect(await owners.read(ofRollout, SIGNAL)).toHaveLength(2);
    });

    it('are not there any more when their version is not served any more', async () => {
      const objects: Record<string, Answer> = { 'rollouts/web': ROLLOUT };
      const served = { ...SERVED };
      const { owners, pass } = setup(objects, true, served);
      expect(await owners.read(ofRollout, SIGNAL)).toHaveLength(2);
      pass(60_001);
      served['/apis'] = { groups: [] };
      // What an API server says of a path that it does not know has no reason.
      objects['rollouts/web'] = refusal(404, '');
      await expect(owners.read(ofRollout, SIGNAL)).rejects.toThrow('404');
      pass(10_001);
      const [, unread] = await owners.read(ofRollout, SIGNAL);
      expect(unread).toMatchObject({ labels: undefined, unread: 'the host has no such kind' });
    });
  });

  it('passes on passing errors, and tries again', async () => {
    const objects: Record<string, KubeObject['metadata'] | Error> = {
      ...WORLD,
      'deployments/web': refusal(503, 'ServiceUnavailable'),
    };
    const { owners } = setup(objects);
    await expect(owners.read(webPod(), SIGNAL)).rejects.toThrow();
    expect(owners.known(webPod())).toBeUndefined();
    objects['deployments/web'] = DEPLOYMENT;
    expect(await owners.read(webPod(), SIGNAL)).toHaveLength(3);
  });
});
