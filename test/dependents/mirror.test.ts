import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { MEMBER_LABEL } from '../../src/api/marks.ts';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { copyOf } from '../../src/dependents/copy.ts';
import type { CopyOverridesPort } from '../../src/dependents/copy-overrides.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import {
  FakeHost,
  FakeMember,
  HOST_ID,
  type MirrorSetup,
  needing,
  refuse,
  startMirror,
} from '../fixtures/dependents.ts';
import { EAST, policy } from '../overrides/rendered-pod.ts';

let running: MirrorSetup | undefined;
const start = (options: Parameters<typeof startMirror>[0] = {}): MirrorSetup => (running = startMirror(options));
afterEach(async () => {
  await running?.stop();
  running = undefined;
});

const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 5_000, interval: 2 });
const dataOf = (member: FakeMember, key: string): unknown =>
  (member.objects.get(key) as { data?: unknown } | undefined)?.data;
const web = needing('web', 'ConfigMap/a', 'Secret/b');

async function withCopies(options: Parameters<typeof start>[0] = {}): Promise<MirrorSetup> {
  const setup = start(options);
  setup.host.set('ConfigMap', 'shop', 'a', { data: { k: '1' } });
  setup.host.set('Secret', 'shop', 'b', { data: { p: 'czNjcjN0' }, type: 'Opaque' });
  setup.mirror.require(web);
  await until(() => expect(setup.mirror.require(web)).toEqual({ ready: true }));
  return setup;
}

/** Everything that was queued before has been handled when this one is gone. */
async function whenCollected(member: FakeMember): Promise<void> {
  const place = { hostId: HOST_ID, member: '', memberNamespace: 't-shop' };
  const orphan = copyOf('Secret', { metadata: { name: 'orphan', namespace: 'shop', uid: 'x' } }, place);
  member.put('Secret', withoutWriter(orphan));
  await until(() => expect(member.objects.has('Secret/t-shop/orphan')).toBe(false));
}

describe('before the pod', () => {
  test('a pod without references is ready at once', () => {
    expect(start().mirror.require(needing('plain'))).toEqual({ ready: true });
  });

  test('copies are made, then the pod is told', async () => {
    const { host, member, mirror, ready, events } = start();
    host.set('ConfigMap', 'shop', 'a', { data: { k: '1' }, binaryData: { b: 'AAE=' } });
    host.set('Secret', 'shop', 'b', { data: { p: 'czNjcjN0' }, type: 'kubernetes.io/basic-auth' });
    expect(mirror.require(web)).toMatchObject({ ready: false, pending: true, reason: 'DependentsPending' });
    await until(() => expect(ready).toContain('shop/web'));
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
    expect(member.objects.get('ConfigMap/t-shop/a')).toMatchObject({ data: { k: '1' }, binaryData: { b: 'AAE=' } });
    expect(member.objects.get('Secret/t-shop/b')).toMatchObject({
      data: { p: 'czNjcjN0' },
      type: 'kubernetes.io/basic-auth',
    });
    expect(member.writes.sort()).toEqual(['create ConfigMap/t-shop/a', 'create Secret/t-shop/b']);
    expect(events).toEqual([]);
  });

  test('a second pod, of any virtual node, shares the copy', async () => {
    const { mirror, member } = await withCopies();
    expect(mirror.require(needing('web-2', 'ConfigMap/a'))).toEqual({ ready: true });
    expect(member.writes).toHaveLength(2);
  });

  test('a cache that lags causes no second write', async () => {
    const member = new FakeMember();
    member.lagMs = 30;
    const { mirror } = await withCopies({ member });
    for (let i = 0; i < 5; i++) mirror.require(web);
    expect(member.writes).toHaveLength(2);
  });

  test('a copy that the member said it made and never shows is made again, whoever looks in between', async () => {
    const member = new FakeMember();
    member.forgets = 1;
    const { host, mirror } = start({ member, madeMs: 60, overdueMs: 20 });
    host.set('ConfigMap', 'shop', 'a', { data: { k: '1' } });
    const pod = needing('web', 'ConfigMap/a');
    expect(mirror.require(pod)).toMatchObject({ ready: false, pending: true });
    await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
    expect(member.writes).toEqual(['create ConfigMap/t-shop/a', 'create ConfigMap/t-shop/a']);
  });

  test('a copy that was removed and that a backup of the member brings back is followed again', async () => {
    const { host, mirror, member } = await withCopies({ madeMs: 60 });
    const saved = member.objects.get('ConfigMap/t-shop/a');
    if (saved === undefined) throw new Error('no copy');
    host.delete('ConfigMap', 'shop', 'a');
    await until(() => expect(member.objects.has('ConfigMap/t-shop/a')).toBe(false));
    member.put('ConfigMap', saved);
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2' }));
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
  });

  test.each(['ConfigMap', 'Secret'] as const)(
    'a missing mandatory %s holds the pod, until it appears',
    async (kind) => {
      const { host, mirror, ready } = start();
      const pod = needing('web', `${kind}/late`);
      await until(() =>
        expect(mirror.require(pod)).toMatchObject({ ready: false, pending: false, reason: `Mandatory${kind}NotFound` }),
      );
      const { message } = mirror.require(pod) as { message: string };
      expect(message).toBe(
        `${kind} "late", which the pod needs, does not exist in namespace "shop". The pod starts by itself when it is created.`,
      );
      ready.length = 0;
      host.set(kind, 'shop', 'late', { data: { k: 'djE=' } });
      await until(() => expect(ready).toContain('shop/web'));
      await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
    },
  );

  test('a missing optional one is told once and holds nothing', async () => {
    const { mirror, events } = start();
    const pod = needing('web', 'ConfigMap/x?', 'Secret/y?');
    await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
    mirror.require(pod);
    expect(events.sort()).toEqual(['Warning OptionalConfigMapNotFound web', 'Warning OptionalSecretNotFound web']);
    mirror.require({ ...pod, metadata: { ...pod.metadata, uid: 'another' } });
    expect(events).toHaveLength(4);
  });

  test('an optional one that exists is waited for', async () => {
    const { host, mirror, member } = start();
    host.set('ConfigMap', 'shop', 'x');
    const pod = needing('web', 'ConfigMap/x?');
    expect(mirror.require(pod)).toMatchObject({ ready: false, pending: true });
    await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
    expect(member.objects.has('ConfigMap/t-shop/x')).toBe(true);
  });

  describe('of which a policy names some', () => {
    const onHost = { ...needing('web', 'ConfigMap/a', 'Secret/b'), spec: { nodeName: 'east-vn', containers: [] } };
    const withPull = (...objects: string[]): Pod => {
      const { spec } = needing('web', ...objects);
      return { ...onHost, spec: { ...spec, imagePullSecrets: [{ name: 'pull' }] } };
    };
    const hostPod: Pod = {
      ...onHost,
      spec: { ...needing('web', 'ConfigMap/a', 'Secret/b').spec, nodeName: 'east-vn' },
    };

    test('each is read by who may: what the host pod refers to by its node, the rest by the manager', () => {
      const { host, mirror } = start();
      mirror.require(hostPod, withPull('ConfigMap/a', 'Secret/extra'));
      expect([...host.readers].sort()).toEqual(['ConfigMap/shop/a east-vn', 'Secret/shop/extra ', 'Secret/shop/pull ']);
      mirror.track(hostPod);
      expect(host.readers).toContain('Secret/shop/b east-vn');
      const edited = { ...hostPod, spec: { ...needing('web', 'Secret/extra').spec, nodeName: 'east-vn' } };
      mirror.require(edited, withPull('Secret/extra'));
      expect(host.readers.filter((one) => one.startsWith('Secret/shop/extra'))).toEqual(['Secret/shop/extra east-vn']);
    });

    test('a pull secret that may not be read holds nothing: the member may have it; that is told once', async () => {
      const { host, member, mirror, events } = start();
      host.problems.set('Secret/shop/pull', 'forbidden');
      host.set('ConfigMap', 'shop', 'a');
      await until(() => expect(mirror.require(hostPod, withPull('ConfigMap/a'))).toEqual({ ready: true }));
      mirror.require(hostPod, withPull('ConfigMap/a'));
      expect(events).toEqual(['Warning FailedToReadOptionalSecret web']);
      expect([...member.objects.keys()]).toEqual(['ConfigMap/t-shop/a']);
      // As soon as it may, the copy comes: a kubelet tries again by itself.
      host.problems.delete('Secret/shop/pull');
      host.set('Secret', 'shop', 'pull', { type: 'kubernetes.io/dockerconfigjson' });
      await until(() => expect([...member.objects.keys()]).toContain('Secret/t-shop/pull'));
    });

    test('one that is needed otherwise holds the pod, with advice', () => {
      const { host, mirror } = start();
      host.problems.set('Secret/shop/pull', 'forbidden');
      const both = withPull('Secret/pull?');
      expect(mirror.require(hostPod, both)).toEqual({
        ready: false,
        pending: false,
        reason: 'FailedToReadOptionalSecret',
        message:
          'Secret "pull", which an override policy adds to the pod, cannot be read in namespace "shop": forbidden. It is tried ' +
          'again by itself. If the manager may not read it, bind it a Role that names it: see docs/concepts/overrides.md.',
      });
      // That of the host pod itself holds it too.
      expect(mirror.require({ ...both, spec: { ...both.spec, nodeName: 'east-vn' } })).toMatchObject({ ready: false });
    });
  });

  test('one that the host does not let us read is told with its words', async () => {
    const { host, mirror } = start();
    host.problems.set('Secret/shop/b', 'cluster host: secrets "b" is forbidden (403 Forbidden)');
    host.set('ConfigMap', 'shop', 'a');
    await until(() =>
      expect(mirror.require(web)).toMatchObject({ reason: 'FailedToReadMandatorySecret', pending: false }),
    );
    expect(mirror.require(web)).toMatchObject({ message: expect.stringContaining('is forbidden') as string });
  });

  test('a token of a service account is not given away', async () => {
    const { host, mirror, member } = start();
    host.set('Secret', 'shop', 'b', { type: 'kubernetes.io/service-account-token', data: { token: 'dG9rZW4=' } });
    host.set('ConfigMap', 'shop', 'a');
    await until(() => expect(mirror.require(web)).toMatchObject({ reason: 'ServiceAccountTokenNotAvailable' }));
    expect(member.objects.has('Secret/t-shop/b')).toBe(false);
  });

  test('a copy that takes long is told, as late as users would begin to wonder', async () => {
    let open = (): void => undefined;
    const gate = new Promise<{ namespace: string }>((resolve) => {
      open = () => resolve({ namespace: 't-shop' });
    });
    const { host, mirror } = start({
      overdueMs: 30,
      namespaces: { memberNamespaceOf: () => 't-shop', ensure: () => gate },
    });
    host.set('ConfigMap', 'shop', 'a');
    host.set('Secret', 'shop', 'b');
    expect(mirror.require(web)).toMatchObject({ pending: true, reason: 'DependentsPending' });
    await until(() => expect(mirror.require(web)).toMatchObject({ pending: false, reason: 'DependentsPending' }));
    open();
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
  });

  test('nothing is made before it is known what is there; then the pod starts', async () => {
    const member = new FakeMember();
    member.unknown.set('Secret/t-shop', undefined);
    const { host, mirror, ready } = start({ member, overdueMs: 60_000 });
    host.set('ConfigMap', 'shop', 'a');
    host.set('Secret', 'shop', 'b');
    mirror.require(web);
    // The other place is known: what belongs there is made.
    await until(() => expect(member.writes).toEqual(['create ConfigMap/t-shop/a']));
    await until(() => expect(mirror.require(needing('other', 'ConfigMap/a'))).toEqual({ ready: true }));
    expect(mirror.require(web)).toMatchObject({ pending: true, reason: 'DependentsPending' });
    ready.length = 0;
    member.learn('Secret', 't-shop');
    await until(() => expect(ready).toContain('shop/web'));
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
    expect(member.writes).toEqual(['create ConfigMap/t-shop/a', 'create Secret/t-shop/b']);
  });

  test('what keeps the copies of a namespace from being listed is told', async () => {
    const member = new FakeMember();
    member.unknown.set('Secret/t-shop', 'cluster east: secrets is forbidden (403 Forbidden)');
    const { host, mirror } = start({ member });
    host.set('ConfigMap', 'shop', 'a');
    host.set('Secret', 'shop', 'b');
    await until(() =>
      expect(mirror.require(web)).toMatchObject({
        pending: false,
        reason: 'SecretNotCopied',
        message: expect.stringContaining('secrets is forbidden') as string,
      }),
    );
    member.learn('Secret', 't-shop');
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
  });

  test('a pod that is only noted gets nothing made', async () => {
    const { host, mirror, member } = start();
    host.set('ConfigMap', 'shop', 'a');
    mirror.track(needing('web', 'ConfigMap/a'));
    mirror.require(needing('other', 'ConfigMap/z?'));
    await until(() => expect(mirror.require(needing('other', 'ConfigMap/z?'))).toEqual({ ready: true }));
    expect(member.writes).toEqual([]);
  });
});

describe('while pods run', () => {
  test('changes follow, and only changes of content', async () => {
    const { host, member } = await withCopies();
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2' }));
    const writes = member.writes.length;
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    host.set('Secret', 'shop', 'b', { data: { p: 'bmV1', q: '' }, type: 'Opaque' });
    await until(() => expect(dataOf(member, 'Secret/t-shop/b')).toEqual({ p: 'bmV1', q: '' }));
    expect(member.writes.slice(writes)).toEqual(['replace Secret/t-shop/b']);
  });

  test('an immutable one is made anew when the host made it anew', async () => {
    const { host, member, mirror } = start();
    host.set('ConfigMap', 'shop', 'a', { data: { k: '1' }, immutable: true });
    const pod = needing('web', 'ConfigMap/a');
    mirror.require(pod);
    await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' }, immutable: true });
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2' }));
    expect(member.writes).toEqual([
      'create ConfigMap/t-shop/a',
      'remove ConfigMap/t-shop/a',
      'create ConfigMap/t-shop/a',
    ]);
  });

  test('a deletion follows, if a live read confirms it', async () => {
    const { host, member, mirror } = await withCopies();
    host.stillThere.add('ConfigMap/shop/a');
    host.delete('ConfigMap', 'shop', 'a');
    host.delete('Secret', 'shop', 'b');
    await until(() => expect(member.objects.has('Secret/t-shop/b')).toBe(false));
    expect(member.objects.has('ConfigMap/t-shop/a')).toBe(true);
    await until(() =>
      expect(mirror.require(needing('new', 'Secret/b'))).toMatchObject({ reason: 'MandatorySecretNotFound' }),
    );
  });

  test('a copy that somebody deleted in the member comes back', async () => {
    const { member } = await withCopies();
    member.delete('ConfigMap', 't-shop', 'a');
    await until(() => expect(member.objects.has('ConfigMap/t-shop/a')).toBe(true));
  });

  test('what the member does to a copy is not fought', async () => {
    const { host, member, mirror } = await withCopies();
    const copy = member.objects.get('ConfigMap/t-shop/a');
    if (copy === undefined) throw new Error('no copy');
    member.put('ConfigMap', { ...copy, data: { k: 'edited' } } as typeof copy);
    expect(mirror.require(web)).toEqual({ ready: true });
    // By the time a later change has gone through, this one has been looked at.
    host.set('Secret', 'shop', 'b', { data: {}, type: 'Opaque' });
    await until(() => expect(member.writes).toContain('replace Secret/t-shop/b'));
    expect(member.writes).not.toContain('replace ConfigMap/t-shop/a');
  });

  test('names for envFrom come from the host objects', async () => {
    const { mirror } = await withCopies();
    expect(mirror.environmentKeys('ConfigMap', 'shop', 'a')).toEqual(['k']);
    expect(mirror.environmentKeys('Secret', 'shop', 'b')).toEqual(['p']);
    expect(mirror.environmentKeys('Secret', 'shop', 'unknown')).toEqual([]);
  });
});

describe('where the namespace mapping is edited', () => {
  const [a, b] = ['ConfigMap/t-shop/a', 'Secret/t-shop/b'];

  test('copies stay where their pods are and follow the host there; new pods have theirs in the new place', async () => {
    let prefix = 't-';
    const places = new Map<string, string>();
    const { host, member, mirror } = await withCopies({
      namespaces: {
        memberNamespaceOf: (namespace) => prefix + namespace,
        ensure: (namespace, _, place) => Promise.resolve({ namespace: place ?? prefix + namespace }),
      },
      placeOf: ({ metadata }) => places.get(metadata.name),
    });
    mirror.setComplete();
    places.set('web', 't-shop');
    prefix = 'new-';
    mirror.track(web);
    const next = needing('next', 'ConfigMap/a');
    mirror.require(next);
    await until(() => expect(mirror.require(next)).toEqual({ ready: true }));
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    await until(() => expect(dataOf(member, 'ConfigMap/new-shop/a')).toEqual({ k: '2' }));
    await until(() => expect(dataOf(member, a)).toEqual({ k: '2' }));
    host.set('Secret', 'shop', 'b', { data: { p: 'bmV3' }, type: 'Opaque' });
    await until(() => expect(dataOf(member, b)).toEqual({ p: 'bmV3' }));
    // Only what is referred to is where it is referred to.
    expect([...member.objects.keys()].sort()).toEqual(['ConfigMap/new-shop/a', a, b]);
    mirror.release('shop/web');
    await until(() => expect([...member.objects.keys()]).toEqual(['ConfigMap/new-shop/a']));
    expect(dataOf(member, 'ConfigMap/new-shop/a')).toEqual({ k: '2' });
  });

  test('a copy that somebody removed is made again where its pod is', async () => {
    let prefix = 't-';
    const { member, mirror } = await withCopies({
      namespaces: {
        memberNamespaceOf: (namespace) => prefix + namespace,
        ensure: (namespace, _, place) => Promise.resolve({ namespace: place ?? prefix + namespace }),
      },
      placeOf: () => 't-shop',
    });
    prefix = 'new-';
    mirror.track(web);
    member.delete('ConfigMap', 't-shop', 'a');
    await until(() => expect(dataOf(member, a)).toEqual({ k: '1' }));
    expect([...member.objects.keys()].sort()).toEqual([a, b]);
  });
});

describe('the last user', () => {
  test('takes the copy along, and nothing of the host is followed any more', async () => {
    const { host, member, mirror } = await withCopies();
    mirror.setComplete();
    mirror.require(needing('web-2', 'ConfigMap/a'));
    mirror.release('shop/web');
    await until(() => expect(member.objects.has('Secret/t-shop/b')).toBe(false));
    expect(member.objects.has('ConfigMap/t-shop/a')).toBe(true);
    mirror.release('shop/web-2');
    await until(() => expect(member.objects.size).toBe(0));
    await until(() => expect(host.followers.size).toBe(0));
  });

  test('leaves it for a successor that comes soon', async () => {
    const { host, member, mirror } = await withCopies({ keepMs: 100 });
    host.set('ConfigMap', 'shop', 'other');
    const other = needing('other', 'ConfigMap/other');
    await until(() => expect(mirror.require(other)).toEqual({ ready: true }));
    mirror.setComplete();
    mirror.release('shop/web');
    mirror.require({ ...web, metadata: { ...web.metadata, uid: 'successor' } });
    mirror.release('shop/other');
    await until(() => expect(member.objects.has('ConfigMap/t-shop/other')).toBe(false));
    expect(member.writes.filter((write) => write.startsWith('remove'))).toEqual(['remove ConfigMap/t-shop/other']);
  });

  test('leaves what one of our pods in the member still needs, although its host pod is not known', async () => {
    const pods: Pod[] = [];
    const memberPods = { hasSynced: false, values: () => pods };
    const { host, member, mirror } = await withCopies({ memberPods, monotonic: () => performance.now() * 1_000 });
    const inMember = needing('web', 'Secret/b');
    pods.push({
      ...inMember,
      metadata: { ...inMember.metadata, namespace: 't-shop', labels: { 'spillway.dev/host': HOST_ID } },
    });
    const foreign = needing('foreign', 'ConfigMap/a');
    pods.push({ ...foreign, metadata: { ...foreign.metadata, namespace: 't-shop' } });
    mirror.setComplete();
    mirror.release('shop/web');
    await until(() => expect(host.followers.size).toBe(0));
    expect(member.objects.size).toBe(2);
    memberPods.hasSynced = true;
    await until(() => expect([...member.objects.keys()]).toEqual(['Secret/t-shop/b']));
    pods.length = 0;
    await until(() => expect(member.objects.size).toBe(0));
  });

  test('leaves what a pod there needs by now, although the wall clock was set back', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const pods: Pod[] = [];
    const memberPods = { hasSynced: true, values: () => pods };
    const { host, member, mirror } = await withCopies({ memberPods, monotonic: () => performance.now() * 1_000 });
    mirror.setComplete();
    mirror.track(needing('web', 'Secret/b'));
    await until(() => expect([...member.objects.keys()]).toEqual(['Secret/t-shop/b']));
    vi.setSystemTime(Date.now() - 1_800_000);
    const { metadata, ...inMember } = needing('web', 'Secret/b');
    const labels = { 'spillway.dev/host': HOST_ID };
    pods.push({ ...inMember, metadata: { ...metadata, namespace: 't-shop', labels } });
    mirror.release('shop/web');
    await until(() => expect(host.followers.size).toBe(0));
    await whenCollected(member);
    expect([...member.objects.keys()]).toEqual(['Secret/t-shop/b']);
    pods.length = 0;
    await until(() => expect(member.objects.size).toBe(0));
  });

  test('a pod that needs something else now lets go of the rest', async () => {
    const { member, mirror } = await withCopies();
    mirror.setComplete();
    mirror.track(needing('web', 'ConfigMap/a'));
    await until(() => expect([...member.objects.keys()]).toEqual(['ConfigMap/t-shop/a']));
  });

  test('a copy under deletion is not taken for ready', async () => {
    const member = new FakeMember();
    const { mirror } = await withCopies({ member });
    mirror.setComplete();
    member.lagMs = 50;
    mirror.release('shop/web');
    await until(() => expect(member.objects.size).toBe(0));
    expect(mirror.require(web)).toMatchObject({ ready: false });
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
    expect(member.objects.size).toBe(2);
  });
});

describe('strangers', () => {
  const stranger = { metadata: { name: 'a', namespace: 't-shop', labels: { owner: 'them' } }, data: { k: 'theirs' } };
  test('an object that is not ours is neither changed nor removed; the pod waits and is told whose cluster it is', async () => {
    const member = new FakeMember();
    member.put('ConfigMap', stranger);
    const { host, mirror } = start({ member });
    host.set('ConfigMap', 'shop', 'a', { data: { k: 'ours' } });
    const pod = needing('web', 'ConfigMap/a');
    await until(() => expect(mirror.require(pod)).toMatchObject({ reason: 'ConfigMapNameTaken', pending: false }));
    expect(mirror.require(pod)).toMatchObject({
      message: expect.stringContaining('Cluster "east" already has a ConfigMap "a" in namespace "t-shop"') as string,
    });
    mirror.setComplete();
    mirror.release('shop/web');
    await until(() => expect(host.followers.size).toBe(0));
    expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: 'theirs' });
    // Asked for by GET from then on, not by one refused write after the other.
    expect(member.writes).toEqual(['create ConfigMap/t-shop/a']);
  });

  test('the pod starts when the stranger is gone', async () => {
    const member = new FakeMember();
    member.put('ConfigMap', stranger);
    const { host, mirror } = start({ member });
    host.set('ConfigMap', 'shop', 'a', { data: { k: 'ours' } });
    const pod = needing('web', 'ConfigMap/a');
    await until(() => expect(mirror.require(pod)).toMatchObject({ reason: 'ConfigMapNameTaken' }));
    member.delete('ConfigMap', 't-shop', 'a');
    await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
  });

  test("another host's copy, and our own for another namespace, are strangers too", async () => {
    const member = new FakeMember();
    const object = { metadata: { name: 'a', namespace: 'shop', uid: 'u' } };
    member.put(
      'ConfigMap',
      copyOf('ConfigMap', object, { hostId: 'other', member: 'east', memberNamespace: 't-shop' }),
    );
    const elsewhere = { metadata: { name: 'b', namespace: 'elsewhere', uid: 'u' } };
    member.put('Secret', copyOf('Secret', elsewhere, { hostId: HOST_ID, member: 'east', memberNamespace: 't-shop' }));
    const { host, mirror } = start({ member });
    host.set('ConfigMap', 'shop', 'a');
    host.set('Secret', 'shop', 'b');
    const taken = (object: string): unknown => mirror.require(needing(object, object));
    await until(() => expect(taken('ConfigMap/a')).toMatchObject({ reason: 'ConfigMapNameTaken' }));
    await until(() => expect(taken('Secret/b')).toMatchObject({ reason: 'SecretNameTaken' }));
    expect(member.writes.every((write) => write.startsWith('create'))).toBe(true);
  });
});

/** As versions wrote it that did not say which MemberCluster did. */
function withoutWriter(copy: KubeObject): KubeObject {
  const { [MEMBER_LABEL]: _, ...labels } = copy.metadata.labels ?? {};
  return { ...copy, metadata: { ...copy.metadata, labels } };
}

describe('two MemberClusters that stand for one cluster', () => {
  let other: MirrorSetup | undefined;
  afterEach(async () => {
    await other?.stop();
    other = undefined;
  });

  const inMember = (pod: Pod): Pod => ({
    ...pod,
    metadata: {
      ...pod.metadata,
      namespace: 't-shop',
      labels: { 'spillway.dev/host': HOST_ID },
      annotations: { 'spillway.dev/host-namespace': 'shop', 'spillway.dev/host-name': pod.metadata.name },
    },
  });
  const plaintext = [{ path: '/data/member', operator: 'add', value: '${member.name}' }];
  /** One policy, which makes another copy for each. */
  const NAMES = [policy('ClusterOverridePolicy', 'names', { overrideRules: [{ overriders: { plaintext } }] })];
  const portOf = (name: string, policies: () => readonly OverridePolicy[]): CopyOverridesPort => {
    const cluster = { ...EAST, name };
    return { unknown: () => undefined, policies, member: () => cluster };
  };
  const keysOf = ({ objects }: FakeMember): string[] => [...objects.keys()].toSorted();
  const writerOf = (member: FakeMember, key: string): unknown =>
    member.objects.get(key)?.metadata.labels?.[MEMBER_LABEL];

  /** East and west over one cluster; east knows all of its pods and has none. */
  function both(policies: () => readonly OverridePolicy[] = () => []): {
    host: FakeHost;
    member: FakeMember;
    pods: Pod[];
    east: MirrorSetup;
    west: MirrorSetup;
    there: Set<string>;
  } {
    const [host, member, pods, there] = [new FakeHost(), new FakeMember(), [] as Pod[], new Set(['east', 'west'])];
    const memberPods = { hasSynced: true, values: () => pods };
    // What takes long is looked at again, which is not to help here.
    const common = { host, member, memberPods, overdueMs: 1e9, monotonic: () => performance.now() * 1_000 };
    const sharesCluster = (name: string): boolean => there.has(name);
    const [east, west] = ['east', 'west'].map((name) =>
      startMirror({ ...common, sharesCluster, name, overrides: portOf(name, policies) }),
    ) as [MirrorSetup, MirrorSetup];
    running = east;
    other = west;
    host.set('ConfigMap', 'shop', 'a', { data: { k: '1' } });
    east.mirror.setComplete();
    return { host, member, pods, east, west, there };
  }

  test('neither removes what the other has made for a pod that is yet to come', async () => {
    const { host, member, west } = both();
    const waits = needing('waits', 'ConfigMap/a', 'ConfigMap/late');
    await until(() => expect(west.mirror.require(waits)).toMatchObject({ reason: 'MandatoryConfigMapNotFound' }));
    await until(() => expect(keysOf(member)).toEqual(['ConfigMap/t-shop/a']));
    await whenCollected(member);
    expect(member.writes).toEqual(['create ConfigMap/t-shop/a', 'remove Secret/t-shop/orphan']);
    host.set('ConfigMap', 'shop', 'late');
    await until(() => expect(west.mirror.require(waits)).toEqual({ ready: true }));
    // Whose it is removes it when nobody needs it any more.
    west.mirror.setComplete();
    west.mirror.release('shop/waits');
    await until(() => expect(keysOf(member)).toEqual([]));
  });

  test('what is left of one that is gone is the business of the other', async () => {
    const { member, west, there, east } = both();
    await until(() => expect(west.mirror.require(needing('x', 'ConfigMap/a'))).toEqual({ ready: true }));
    await west.stop();
    await whenCollected(member);
    expect(keysOf(member)).toEqual(['ConfigMap/t-shop/a']);
    there.delete('west');
    // As a minute later.
    east.mirror.setComplete();
    await until(() => expect(keysOf(member)).toEqual([]));
  });

  test('one that both need says who wrote it last, is written only when its content changes, and stays for either', async () => {
    const { host, member, pods, east, west } = both();
    const [here, there] = [needing('here', 'ConfigMap/a'), needing('there', 'ConfigMap/a')];
    await until(() => expect(west.mirror.require(there)).toEqual({ ready: true }));
    await until(() => expect(east.mirror.require(here)).toEqual({ ready: true }));
    await whenCollected(member);
    expect(member.writes).toEqual(['create ConfigMap/t-shop/a', 'remove Secret/t-shop/orphan']);
    expect(writerOf(member, 'ConfigMap/t-shop/a')).toBe('west');
    // The one that wrote it needs it no longer, the other one's pod runs.
    pods.push(inMember(here));
    west.mirror.setComplete();
    west.mirror.release('shop/there');
    await until(() => expect([...host.followers.values()].map(({ size }) => size)).toEqual([1]));
    await whenCollected(member);
    expect(keysOf(member)).toEqual(['ConfigMap/t-shop/a']);
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2' }));
    expect(writerOf(member, 'ConfigMap/t-shop/a')).toBe('east');
    pods.length = 0;
    east.mirror.release('shop/here');
    await until(() => expect(keysOf(member)).toEqual([]));
  });

  test('what policies make different for each is not written in turns: the second waits, and is told why', async () => {
    const { host, member, pods, east, west } = both(() => NAMES);
    const [here, there] = [needing('here', 'ConfigMap/a'), needing('there', 'ConfigMap/a')];
    await until(() => expect(west.mirror.require(there)).toEqual({ ready: true }));
    await until(() =>
      expect(east.mirror.require(here)).toMatchObject({ reason: 'ConfigMapNameTaken', pending: false }),
    );
    const { message } = east.mirror.require(here) as { message: string };
    expect(message).toMatch(/^Cluster "east" already has ConfigMap "a" in namespace "t-shop" .* another MemberCluster/);
    pods.push(inMember(there));
    await whenCollected(member);
    expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '1', member: 'west' });
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2', member: 'west' }));
    await whenCollected(member);
    expect(member.writes.filter((write) => !write.endsWith('/orphan'))).toEqual([
      'create ConfigMap/t-shop/a',
      'replace ConfigMap/t-shop/a',
    ]);
    pods.length = 0;
    west.mirror.setComplete();
    west.mirror.release('shop/there');
    await until(() => expect(east.mirror.require(here)).toEqual({ ready: true }));
    expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2', member: 'east' });
  });

  test('who alone has pods with it has it its way, also when another one wrote it', async () => {
    let policies: readonly OverridePolicy[] = [];
    const { member, pods, east, west } = both(() => policies);
    const [here, there] = [needing('here', 'ConfigMap/a'), needing('there', 'ConfigMap/a')];
    await until(() => expect(west.mirror.require(there)).toEqual({ ready: true }));
    await until(() => expect(east.mirror.require(here)).toEqual({ ready: true }));
    pods.push(inMember(here), inMember(there));
    policies = NAMES;
    east.mirror.overridesChanged();
    await until(() => expect(east.mirror.require(here)).toMatchObject({ reason: 'ConfigMapNameTaken' }));
    await whenCollected(member);
    expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '1' });
    // Nothing tells of its end.
    pods.pop();
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '1', member: 'east' }));
  });

  test('a copy that does not say who wrote it stays with the pods that use it, unwritten until its content changes', async () => {
    const { host, member, pods, west } = both();
    const place = { hostId: HOST_ID, member: '', memberNamespace: 't-shop' };
    const former = host.objects.get('ConfigMap/shop/a');
    if (former === undefined) throw new Error('nothing to copy');
    const runs = needing('runs', 'ConfigMap/a');
    pods.push(inMember(runs));
    member.put('ConfigMap', withoutWriter(copyOf('ConfigMap', former, place)));
    west.mirror.track(runs);
    await until(() => expect(west.mirror.require(runs)).toEqual({ ready: true }));
    await whenCollected(member);
    expect(member.writes).toEqual(['remove Secret/t-shop/orphan']);
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    await until(() => expect(writerOf(member, 'ConfigMap/t-shop/a')).toBe('west'));
  });
});

describe('a restart', () => {
  /** A member as a former life left it, of a version that did not say who wrote what: two copies in use, one orphan. */
  function left(): { host: FakeHost; member: FakeMember } {
    const host = new FakeHost();
    const member = new FakeMember();
    host.set('ConfigMap', 'shop', 'a', { data: { k: '1' } });
    host.set('Secret', 'shop', 'b', { data: { p: 'czNjcjN0' }, type: 'Opaque' });
    const place = { hostId: HOST_ID, member: 'east', memberNamespace: 't-shop' };
    for (const [key, object] of host.objects) {
      const kind = key.startsWith('Secret') ? 'Secret' : 'ConfigMap';
      member.put(kind, withoutWriter(copyOf(kind, object, place)));
    }
    const orphan = copyOf('ConfigMap', { metadata: { name: 'orphan', namespace: 'shop', uid: 'x' } }, place);
    member.put('ConfigMap', withoutWriter(orphan));
    return { host, member };
  }

  test('writes nothing for copies that are as they should be', async () => {
    const { host, member } = left();
    host.set('ConfigMap', 'shop', 'new');
    const { mirror } = start({ host, member });
    mirror.track(web);
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
    // Everything that was queued before has been handled when this is done.
    const later = needing('later', 'ConfigMap/new');
    await until(() => expect(mirror.require(later)).toEqual({ ready: true }));
    expect(member.writes).toEqual(['create ConfigMap/t-shop/new']);
  });

  test('collects garbage only when all pods are known', async () => {
    const { member, mirror } = start(left());
    mirror.track(web);
    await until(() => expect(mirror.require(web)).toEqual({ ready: true }));
    mirror.release('shop/web');
    mirror.track(web);
    const missing = needing('missing', 'ConfigMap/none');
    await until(() => expect(mirror.require(missing)).toMatchObject({ reason: 'MandatoryConfigMapNotFound' }));
    expect(member.objects.size).toBe(3);
    mirror.setComplete();
    await until(() => expect([...member.objects.keys()].sort()).toEqual(['ConfigMap/t-shop/a', 'Secret/t-shop/b']));
    expect(member.writes).toEqual(['remove ConfigMap/t-shop/orphan']);
  });

  test('collects nothing where the list is not complete yet', async () => {
    const { host, member } = left();
    const place = { hostId: HOST_ID, member: 'east', memberNamespace: 't-shop' };
    member.put('Secret', copyOf('Secret', { metadata: { name: 'orphan', namespace: 'shop', uid: 'y' } }, place));
    member.unknown.set('ConfigMap/t-shop', undefined);
    member.tellsUnknown = true;
    const { mirror } = start({ host, member });
    mirror.setComplete();
    mirror.track(needing('web', 'Secret/b'));
    await until(() => expect(member.writes).toEqual(['remove Secret/t-shop/orphan']));
    member.learn('ConfigMap', 't-shop');
    await until(() => expect(member.writes).toContain('remove ConfigMap/t-shop/orphan'));
  });

  test('notices what changed meanwhile', async () => {
    const { host, member } = left();
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    const { mirror } = start({ host, member });
    mirror.track(web);
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2' }));
    expect(member.writes).toEqual(['replace ConfigMap/t-shop/a']);
  });

  test('makes a missing copy for a pod that runs there', async () => {
    const { host, member } = left();
    member.objects.delete('ConfigMap/t-shop/a');
    const { mirror } = start({ host, member });
    mirror.track({ ...web, status: { conditions: [{ type: 'spillway.dev/Mirrored', status: 'True' }] } });
    await until(() => expect(member.objects.has('ConfigMap/t-shop/a')).toBe(true));
  });
});

describe('trouble', () => {
  test('a refusal of the member is told in its words and retried', async () => {
    const member = new FakeMember();
    member.failures.push(refuse(403, 'Forbidden', 'exceeded quota: count/configmaps=0'));
    const { host, mirror, ready } = start({ member });
    host.set('ConfigMap', 'shop', 'a');
    const pod = needing('web', 'ConfigMap/a');
    mirror.require(pod);
    await until(() => expect(ready).toContain('shop/web'));
    expect(mirror.require(pod)).toMatchObject({
      reason: 'ConfigMapNotCopied',
      message: expect.stringMatching(/cluster "east".*exceeded quota.*tried again/) as string,
    });
    await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
  });

  test.each([
    [413, 'RequestEntityTooLarge', 'Request entity too large: limit is 3145728'],
    [422, 'Invalid', 'Secret "b" is invalid: data: Too long: may not be more than 1048576 bytes'],
    [500, '', 'etcdserver: request is too large'],
  ])(
    'what is too large there (%d) does not pass by itself, is tried more and more rarely, and is told',
    async (...no) => {
      const member = new FakeMember();
      for (let i = 0; i < 4; i++) member.failures.push(refuse(...no));
      const { host, mirror, ready } = start({ member });
      host.set('Secret', 'shop', 'b', { data: { p: 'czNjcjN0' } });
      const pod = needing('web', 'Secret/b');
      mirror.require(pod);
      await until(() => expect(ready).toContain('shop/web'));
      const held = mirror.require(pod) as { reason: string; message: string };
      expect(held.reason).toBe('SecretNotCopied');
      expect(held.message).toContain(no[2]);
      expect(held.message).toContain('This does not pass by itself: change the Secret, or the override policy');
      expect(held.message).not.toContain('transient');
      const began = performance.now();
      await until(() => expect(member.failures.length).toBeLessThanOrEqual(2));
      // After 0.25 s at the earliest, and twice as long each time.
      expect(performance.now() - began).toBeGreaterThan(150);
      expect(member.objects.size).toBe(0);
      // It is made smaller: at once.
      member.failures.length = 0;
      host.set('Secret', 'shop', 'b', { data: { p: '' } });
      await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
    },
  );

  test('a change that the member does not take is told once, on the object, and the pods go on', async () => {
    const { host, member, mirror, events, messages } = await withCopies();
    const tooLong = refuse(422, 'Invalid', 'data: Too long: may not be more than 1048576 bytes');
    member.failures.push(tooLong, tooLong);
    host.set('Secret', 'shop', 'b', { data: { p: 'bmV1' }, type: 'Opaque' });
    await until(() => expect(member.failures).toEqual([]));
    expect(events).toEqual(['Warning SecretNotCopied b']);
    expect(messages).toEqual([
      'The copy of Secret "b" in namespace "t-shop" of cluster "east" stays as it was, and pods there go on with it: ' +
        'cluster east: data: Too long: may not be more than 1048576 bytes (422 Invalid). This does not pass by itself: ' +
        'change the Secret, or the override policy that changes its copy. It is tried again when it changes, and now and then.',
    ]);
    await until(() => expect(dataOf(member, 'Secret/t-shop/b')).toEqual({ p: 'bmV1' }));
    expect(mirror.require(web)).toEqual({ ready: true });
    expect(events).toHaveLength(1);
  });

  test('a namespace that may not be used is told', async () => {
    const hold = { reason: 'NamespaceNotAllowed', message: 'namespace shop there is not ours' };
    const { host, mirror, member } = start({
      namespaces: { memberNamespaceOf: () => 'shop', ensure: () => Promise.resolve({ hold }) },
    });
    host.set('ConfigMap', 'shop', 'a');
    const pod = needing('web', 'ConfigMap/a');
    await until(() =>
      expect(mirror.require(pod)).toMatchObject({
        reason: 'ConfigMapNotCopied',
        message: expect.stringContaining(hold.message) as string,
      }),
    );
    expect(member.writes).toEqual([]);
  });

  test('nothing is written while nothing may be', async () => {
    const mayWrite = vi.fn(() => false);
    const { host, mirror, member } = start({ mayWrite });
    host.set('ConfigMap', 'shop', 'a');
    const pod = needing('web', 'ConfigMap/a');
    mirror.require(pod);
    await until(() => expect(mayWrite.mock.calls.length).toBeGreaterThan(1));
    expect(member.writes).toEqual([]);
    mayWrite.mockReturnValue(true);
    await until(() => expect(mirror.require(pod)).toEqual({ ready: true }));
  });

  test('a conflict is settled by looking again', async () => {
    const { host, member } = await withCopies();
    member.failures.push(refuse(409, 'Conflict'), refuse(404, 'NotFound'));
    host.set('ConfigMap', 'shop', 'a', { data: { k: '2' } });
    await until(() => expect(dataOf(member, 'ConfigMap/t-shop/a')).toEqual({ k: '2' }));
  });

  test('no value of a Secret is in logs, answers or events, whatever the member says', async () => {
    const member = new FakeMember();
    const said = 'admission webhook denied: data.p "czNjcjN0" (s3cr3t) is weak';
    member.failures.push(refuse(400, 'BadRequest', said), refuse(500, 'InternalError', said));
    const setup = start({ member });
    setup.host.set('Secret', 'shop', 'b', { data: { p: 'czNjcjN0' }, type: 'Opaque' });
    const pod = needing('web', 'Secret/b');
    setup.mirror.require(pod);
    await until(() => expect(setup.ready).toContain('shop/web'));
    const answer = JSON.stringify(setup.mirror.require(pod));
    expect(answer).toContain('webhook denied: data.p \\"(hidden)\\" ((hidden)) is weak');
    await until(() => expect(setup.mirror.require(pod)).toEqual({ ready: true }));
    for (const text of [answer, setup.log, ...setup.events]) expect(text).not.toMatch(/czNjcjN0|s3cr3t/);
    expect(setup.log).toContain('(hidden)');
  });

  test.each([
    ['longer than any message', 'k'.repeat(1_200)],
    ['of many lines', 'kkkk\n'.repeat(4)],
  ])('nor is one that is %s', async (_, value) => {
    const data = { p: Buffer.from(value).toString('base64') };
    const member = new FakeMember();
    member.failures.push(refuse(400, 'BadRequest', `${value} is weak`), refuse(400, 'BadRequest', `${data.p} is weak`));
    const setup = start({ member });
    setup.host.set('Secret', 'shop', 'b', { data, type: 'Opaque' });
    const pod = needing('web', 'Secret/b');
    await until(() => expect(setup.mirror.require(pod)).toEqual({ ready: true }));
    expect(setup.log).toContain('(hidden) is weak');
    expect(setup.log).not.toMatch(new RegExp(`kkkk|${data.p.slice(0, 16)}`));
  });
});
