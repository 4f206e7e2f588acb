import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/kube/errors.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { KubeRequest } from '../../src/kube/request.ts';
import { PodOwners } from '../../src/host/pod-owners.ts';
import { boundPod } from '../fixtures/translation.ts';
import { webPod } from '../overrides/rendered-pod.ts';

const SIGNAL = new AbortController().signal;
const refusal = (code: number, reason: string) =>
  new ApiError({ cluster: 'host', method: 'GET', path: '/', code, status: { kind: 'Status', reason, code } });
const owner = (kind: string, name: string, uid: string, apiVersion = 'apps/v1') => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
});

function setup(objects: Record<string, KubeObject['metadata'] | Error>) {
  const requests: KubeRequest[] = [];
  let now = 1000;
  const host = {
    request: async <T>(request: KubeRequest): Promise<T> => {
      requests.push(request);
      await Promise.resolve();
      const found = objects[request.path.split('/').slice(-2).join('/')] ?? refusal(404, 'NotFound');
      if (found instanceof Error) throw found;
      return { metadata: found } as T;
    },
  };
  const owners = new PodOwners(host, () => now);
  return { owners, requests, pass: (ms: number) => (now += ms) };
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

  it('does not try to read kinds it has no rights to', async () => {
    const { owners, requests } = setup({});
    const pod = boundPod({}, { ownerReferences: [owner('Rollout', 'web', 'r', 'argoproj.io/v1alpha1')] });
    expect(inWords(await owners.read(pod, SIGNAL))?.slice(1)).toEqual(['Rollout web undefined']);
    expect(requests).toEqual([]);
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
