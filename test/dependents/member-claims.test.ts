import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { pino } from 'pino';
import { SELECTED_NODE_ANNOTATION } from '../../src/api/storage.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../src/kube/volumes.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { HostClaims } from '../../src/dependents/host-claims.ts';
import { MemberClaims } from '../../src/dependents/member-claims.ts';
import { memberClaimFor } from '../../src/dependents/member-volume.ts';
import { HOME, hostClaim, storageClass } from '../fixtures/claims.ts';
import { FakeMember, HOST_ID, refuse } from '../fixtures/dependents.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

const CLAIMS = '/api/v1/namespaces/shop/persistentvolumeclaims';
const VOLUMES = '/api/v1/persistentvolumes';
const BELOW = 'PersistentVolumeClaim/t-shop/db';

const eventually = async (question: () => void): Promise<void> => await vi.waitFor(question, { timeout: 10_000 });

let api: MemoryApi;
let server: MemoryApiServer;
let member: FakeMember;
let claims: MemberClaims;
let events: string[];
let ready: string[];
let frozen: boolean;
/** The pod of the host as it is there. */
let hostPod: Pod | undefined;
/** Another cluster answers in the member's place. */
let another: boolean;
/** How namespaces are mapped. */
let prefix: string;
let stop: () => Promise<void>;

beforeEach(async () => {
  [api, member, events, ready, frozen, another] = [new MemoryApi(), new FakeMember(), [], [], false, false];
  prefix = 't-';
  hostPod = POD;
  server = await serveMemoryApi(api);
  post('/apis/storage.k8s.io/v1/storageclasses', storageClass());
  start();
});
afterEach(async () => {
  await stop();
  await server.close();
});

function start(): void {
  const end = new AbortController();
  const logger = pino({ level: 'silent' });
  const host = server.client('host');
  const hostClaims = new HostClaims({ host, logger });
  claims = new MemberClaims({
    hostId: HOST_ID,
    host,
    hostClaims,
    copies: member,
    confirmIdentity: () => Promise.resolve(!another),
    home: () => HOME,
    hostPod: () => hostPod,
    memberNamespaceOf: (namespace) => `${prefix}${namespace}`,
    ensureNamespace: (namespace) => Promise.resolve({ namespace: `${prefix}${namespace}` }),
    onReady: (podKey) => void ready.push(podKey),
    mayWrite: () => !frozen,
    openCreationMs: 1_000,
    events: { record: ({ kind, name }, type, reason) => void events.push(`${type} ${reason} ${kind} ${name}`) },
    logger,
  });
  const running = [hostClaims.run(end.signal), claims.run(end.signal), member.run(end.signal)];
  stop = async () => {
    end.abort();
    await Promise.all(running);
  };
}

function post(path: string, body: object): void {
  api.handle({ method: 'POST', path, query: {}, body: without(body), contentType: 'application/json' });
}
function without(body: object): object {
  const { metadata } = body as { metadata: object };
  return { ...body, metadata: { ...metadata, uid: undefined, resourceVersion: undefined } };
}

const POD = {
  metadata: { namespace: 'shop', name: 'web', uid: 'web' },
  spec: { nodeName: 'east', containers: [], volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'db' } }] },
} as unknown as Pod;

/** The host's claim, chosen by the scheduler for a node of the member. */
const choose = (spec: PersistentVolumeClaim['spec'] = {}): void =>
  post(CLAIMS, hostClaim(spec, { annotations: { [SELECTED_NODE_ANNOTATION]: 'east' } }));
const claim = (): PersistentVolumeClaim | undefined =>
  api.objects.get(`${CLAIMS}/db`) as PersistentVolumeClaim | undefined;
const volume = (): PersistentVolume | undefined =>
  [...api.objects].find(([key]) => key.startsWith(VOLUMES))?.[1] as PersistentVolume | undefined;
const nameOfVolume = (): string => volume()?.metadata.name ?? '';

/** What the host's controller does. */
async function bind(): Promise<void> {
  await eventually(() => expect(volume()).toBeDefined());
  api.edit(`${CLAIMS}/db`, { spec: { volumeName: nameOfVolume() }, status: { phase: 'Bound' } });
  api.edit(`${VOLUMES}/${nameOfVolume()}`, { status: { phase: 'Bound' } });
}

async function whenReady(): Promise<void> {
  await eventually(() => expect(claims.require(POD, 't-shop')).toEqual({ ready: true }));
}

it('binds a claim where the scheduler chose, and makes it in the member for the pod', async () => {
  choose();
  await bind();
  expect(volume()?.spec).toMatchObject({
    claimRef: { namespace: 'shop', name: 'db', uid: claim()?.metadata.uid },
    csi: { driver: 'member.spillway.dev', volumeAttributes: { member: 'east', namespace: 't-shop', claim: 'db' } },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'spillway.dev/member', operator: 'In', values: ['east'] }] }],
      },
    },
  });
  expect(member.writes).toEqual([]);
  expect(claims.require(POD, 't-shop')).toMatchObject({ ready: false, pending: true });
  await whenReady();
  expect(ready).toContain('shop/web');
  expect(member.writes).toEqual([`create ${BELOW}`]);
  expect(member.objects.get(BELOW)).toMatchObject({ spec: { storageClassName: 'ssd' } });
});

it('writes nothing at a start when all is as it should be', async () => {
  choose();
  await bind();
  await whenReady();
  await eventually(() => expect(claim()?.metadata.annotations).toHaveProperty(['spillway.dev/member']));
  await stop();
  const { version } = api;
  start();
  await whenReady();
  expect(api.version).toBe(version);
  expect(member.writes).toHaveLength(1);
});

it('takes a pod of the same name for another one, which may use other claims', async () => {
  const former = { ...POD, metadata: { ...POD.metadata, uid: 'former' }, spec: { ...POD.spec, volumes: [] } } as Pod;
  claims.track({
    ...former,
    spec: { ...former.spec, volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'other' } }] },
  });
  // Its successor was there before anybody saw that no copy of it was left.
  claims.track(POD);
  choose();
  await bind();
  await whenReady();
});

it.each<[string, Pod | undefined]>([
  ['is gone', undefined],
  ['is being deleted', { ...POD, metadata: { ...POD.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }],
  ['has ended', { ...POD, status: { phase: 'Failed' } }],
])('binds no claim for a pod that %s, whose copy may still be in the member, but for one that runs', async (_, one) => {
  hostPod = one;
  claims.track(POD);
  // Another one of that name: where it is to be is for the scheduler to say.
  post(CLAIMS, hostClaim());
  await eventually(() => expect(claims.require(POD, 't-shop')).toMatchObject({ ready: false, pending: true }));
  await moment(300);
  expect(volume()).toBeUndefined();
  hostPod = POD;
  claims.resync();
  await bind();
  await whenReady();
});

it('does nothing while nothing may be written', async () => {
  frozen = true;
  choose();
  await eventually(() => expect(api.requests('GET', '/persistentvolumeclaims').length).toBeGreaterThan(0));
  expect(claims.require(POD, 't-shop')).toMatchObject({ pending: true });
  expect(volume()).toBeUndefined();
  frozen = false;
  await eventually(() => expect(volume()).toBeDefined());
});

it('lets the scheduler choose anew for what cannot be in the member', async () => {
  choose({ storageClassName: 'gold' });
  await eventually(() => expect(claim()?.metadata.annotations).toEqual({}));
  expect(events).toContain('Warning ClaimClassNotMapped PersistentVolumeClaim db');
  expect(claims.places.refusalOf(POD, 't-shop')).toMatchObject({ reason: 'ClaimClassNotMapped' });
  expect(claims.require(POD, 't-shop')).toMatchObject({ ready: false, pending: false, reason: 'ClaimClassNotMapped' });
});

it("leaves a stranger's claim alone", async () => {
  member.put('PersistentVolumeClaim', { metadata: { namespace: 't-shop', name: 'db' } });
  choose();
  await bind();
  await eventually(() => expect(claims.require(POD, 't-shop')).toMatchObject({ reason: 'ClaimNameTaken' }));
  expect(new Set(member.writes)).toEqual(new Set([`create ${BELOW}`]));
  expect(member.objects.get(BELOW)).not.toHaveProperty('spec');
});

it('tells why the member does not take a claim, and tries again', async () => {
  const failures = [1, 2, 3].map(() => refuse(403, 'Forbidden', 'exceeded quota: disks'));
  member.failures.push(...failures);
  choose();
  await bind();
  await eventually(() => {
    expect(claims.require(POD, 't-shop')).toMatchObject({
      reason: 'ClaimNotCreated',
      message: expect.stringContaining('exceeded quota') as string,
    });
  });
  await whenReady();
});

it('tells when a new size is not taken', async () => {
  choose();
  await bind();
  await whenReady();
  member.failures.push(refuse(403, 'Forbidden', 'the class does not allow that'));
  api.edit(`${CLAIMS}/db`, { spec: { resources: { requests: { storage: '2Gi' } } } });
  await eventually(() => expect(events).toContain('Warning ClaimNotResized PersistentVolumeClaim db'));
  await eventually(() => expect(member.writes.at(-1)).toBe(`resize to 2Gi ${BELOW}`));
  expect(claims.require(POD, 't-shop')).toEqual({ ready: true });
});

it('keeps data when pods go, and deletes them when the claim is gone and the policy says so', async () => {
  choose();
  await bind();
  await whenReady();
  claims.release('shop/web');
  api.delete(`${CLAIMS}/db`);
  // Until the host's controller has said so, too.
  await stop();
  start();
  await eventually(() => expect(api.requests('GET', '/storageclasses').length).toBeGreaterThan(1));
  expect(member.writes).toHaveLength(1);
  api.edit(`${VOLUMES}/${nameOfVolume()}`, { status: { phase: 'Released' } });
  await eventually(() => expect(volume()).toBeUndefined());
  expect(member.writes).toEqual([`create ${BELOW}`, `remove ${BELOW}`]);
});

it('makes nothing for pods where its claim is not, and tells those that come after the mapping was edited', async () => {
  choose();
  await bind();
  claims.release('shop/web');
  prefix = 'x-';
  claims.resync();
  const elsewhere = {
    reason: 'ClaimElsewhere',
    message: expect.stringContaining('"t-shop"') as string,
    pending: false,
  };
  await eventually(() => expect(claims.require(POD, 'x-shop')).toMatchObject(elsewhere));
  expect(claims.places.refusalOf(POD, 'x-shop')).toMatchObject({ reason: 'ClaimElsewhere' });
  // A stranger's claim of that name is not taken for it.
  member.put('PersistentVolumeClaim', { metadata: { namespace: 'x-shop', name: 'db' } });
  await moment(1_200);
  expect(member.writes).toEqual([]);
  prefix = 't-';
  ready.length = 0;
  claims.resync();
  await eventually(() => expect(ready).toContain('shop/web'));
  await whenReady();
  // Its pods go on where they are.
  prefix = 'x-';
  claims.resync();
  expect(claims.require(POD, 't-shop')).toEqual({ ready: true });
  expect(claims.require(POD, 'x-shop')).toMatchObject(elsewhere);
  api.edit(`${CLAIMS}/db`, { spec: { resources: { requests: { storage: '2Gi' } } } });
  await eventually(() => expect(member.writes).toEqual([`create ${BELOW}`, `resize to 2Gi ${BELOW}`]));
});

/** A new process: nothing is cached, and so much is not known. */
async function restart(unknown?: string, hidden: readonly string[] = []): Promise<void> {
  await stop();
  const { objects } = member;
  member = new FakeMember();
  for (const [key, object] of objects) member.objects.set(key, object);
  if (unknown !== undefined) member.unknown.set('PersistentVolumeClaim/t-shop', unknown);
  for (const place of hidden) member.hides.add(place);
  start();
}
const told = (): object => {
  const answer = claims.require(POD, 't-shop');
  expect(answer).not.toMatchObject({ reason: 'ClaimLost' });
  return answer;
};

it('calls no data lost while it is not known what the member has', async () => {
  choose();
  await bind();
  await whenReady();
  await restart('claims may not be listed');
  await eventually(() => {
    const message = expect.stringContaining('claims may not be listed') as string;
    expect(told()).toMatchObject({ reason: 'ClaimPending', message });
  });
  expect(told()).toMatchObject({ message: expect.not.stringMatching(/delete/i) as string });
  member.learn('PersistentVolumeClaim', 't-shop');
  await eventually(() => expect(told()).toEqual({ ready: true }));
});

it('calls data lost when the member itself says so, not for what is missing in a cache', async () => {
  choose();
  await bind();
  await whenReady();
  const { metadata, ...rest } = member.objects.get(BELOW) ?? { metadata: { name: '' } };
  member.objects.set(BELOW, { ...rest, metadata: { ...metadata, labels: {} } });
  await restart();
  await eventually(() => {
    const message = expect.stringContaining(`label spillway.dev/host=${HOST_ID}`) as string;
    expect(told()).toMatchObject({ reason: 'ClaimPending', message });
  });
  member.objects.delete(BELOW);
  await eventually(() => expect(claims.require(POD, 't-shop')).toMatchObject({ reason: 'ClaimLost', pending: false }));
  // Neither is another cluster asked for it.
  another = true;
  await restart();
  await eventually(() => {
    const message = expect.stringContaining('another cluster') as string;
    expect(told()).toMatchObject({ reason: 'ClaimPending', message });
  });
});

it('leaves what took the place of lost data alone, until somebody says that it has them', async () => {
  choose();
  await bind();
  await whenReady();
  const copy = member.objects.get(BELOW);
  if (copy === undefined) throw new Error('it was not made');
  member.put('PersistentVolumeClaim', { ...copy, metadata: { ...copy.metadata, uid: 'restored' } });
  await eventually(() => {
    const message = expect.stringContaining('another one has its name') as string;
    expect(claims.require(POD, 't-shop')).toMatchObject({ reason: 'ClaimLost', message });
  });
  api.edit(`${VOLUMES}/${nameOfVolume()}`, { metadata: { annotations: { 'spillway.dev/member-claim-uid': null } } });
  await whenReady();
});

/** The host's claim is gone, as its controller says. */
function loseClaim(): void {
  claims.release('shop/web');
  api.delete(`${CLAIMS}/db`);
  api.edit(`${VOLUMES}/${nameOfVolume()}`, { status: { phase: 'Released' } });
}
const moment = async (ms: number): Promise<unknown> => await new Promise((resolve) => setTimeout(resolve, ms));

it('keeps the volume of a claim that is gone while its creation in the member may be carried out yet', async () => {
  for (let count = 0; count < 20; count++) member.failures.push(refuse(504, 'Timeout'));
  choose();
  await bind();
  claims.track(POD);
  await eventually(() => expect(member.writes).toContain(`create ${BELOW}`));
  const uid = claim()?.metadata.uid ?? '';
  loseClaim();
  await moment(300);
  expect(volume()).toBeDefined();
  const made = memberClaimFor(hostClaim({}, { uid }), 'ssd', { hostId: HOST_ID, namespace: 't-shop' });
  member.failures.length = 0;
  member.put('PersistentVolumeClaim', made);
  await eventually(() => expect(volume()).toBeUndefined());
  expect(member.objects.get(BELOW)).toBeUndefined();
});

it('keeps the volume of a claim that is gone while the member has the data, though no cache shows them', async () => {
  choose();
  await bind();
  await whenReady();
  const { metadata, ...rest } = member.objects.get(BELOW) ?? { metadata: { name: '' } };
  member.objects.set(BELOW, { ...rest, metadata: { ...metadata, labels: {} } });
  await restart();
  await eventually(() => expect(claims.require(POD, 't-shop')).toMatchObject({ reason: 'ClaimPending' }));
  const name = nameOfVolume();
  loseClaim();
  await eventually(() => expect(events).toContain(`Warning ClaimNotDeleted PersistentVolume ${name}`));
  expect(volume()).toBeDefined();
  // Nor is another cluster's word taken for it.
  another = true;
  member.objects.delete(BELOW);
  await moment(1_500);
  expect(volume()).toBeDefined();
  another = false;
  await eventually(() => expect(volume()).toBeUndefined());
});

it('lets the data of a claim that is gone go also where they are in no cache, as of a namespace that is not lent any more', async () => {
  choose();
  await bind();
  await whenReady();
  await eventually(() => expect(volume()?.metadata.annotations).toHaveProperty(['spillway.dev/member-claim-uid']));
  const copy = member.objects.get(BELOW);
  await restart(undefined, ['PersistentVolumeClaim/t-shop']);
  // Something keeps it there for a while.
  const { metadata, ...rest } = copy ?? { metadata: { name: '' } };
  member.objects.set(BELOW, { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  await eventually(() => expect(claims.require(POD, 't-shop')).toMatchObject({ reason: 'ClaimPending' }));
  const name = nameOfVolume();
  loseClaim();
  await eventually(() => expect(claims.reclaimer.problemOf(name)?.why).toContain('is being deleted there'));
  expect(member.writes).toEqual([]);
  member.objects.set(BELOW, { ...rest, metadata });
  await eventually(() => expect(volume()).toBeUndefined());
  expect(member.writes).toEqual([`remove ${BELOW}`]);
  expect(claims.reclaimer.problemOf(name)).toBeUndefined();
});

it('says what is missing on a claim in the member that has lost the mark of the claim it was made for', async () => {
  choose();
  await bind();
  await whenReady();
  await eventually(() => expect(volume()?.metadata.annotations).toHaveProperty(['spillway.dev/member-claim-uid']));
  const uid = claim()?.metadata.uid ?? '';
  const { metadata, ...rest } = member.objects.get(BELOW) ?? { metadata: { name: '' } };
  member.objects.set(BELOW, { ...rest, metadata: { ...metadata, annotations: {} } });
  await restart();
  const missing = `without annotation spillway.dev/host-uid=${uid}`;
  await eventually(() => {
    const message = expect.stringContaining(missing) as string;
    expect(told()).toMatchObject({ reason: 'ClaimPending', message });
  });
  const name = nameOfVolume();
  loseClaim();
  await eventually(() => expect(claims.reclaimer.problemOf(name)?.why).toContain(missing));
  expect([volume() !== undefined, member.writes]).toEqual([true, []]);
});

it('tells why the data of a claim that is gone stay, where claims cannot be listed', async () => {
  choose();
  await bind();
  await whenReady();
  await restart('claims may not be listed');
  await eventually(() => expect(claims.require(POD, 't-shop')).toMatchObject({ reason: 'ClaimPending' }));
  const name = nameOfVolume();
  loseClaim();
  await eventually(() => expect(events).toContain(`Warning ClaimNotDeleted PersistentVolume ${name}`));
  member.learn('PersistentVolumeClaim', 't-shop');
  await eventually(() => expect(volume()).toBeUndefined());
  expect(member.objects.get(BELOW)).toBeUndefined();
});

it('waits for claims that do not exist, and refuses those made for another pod', async () => {
  await eventually(() =>
    expect(claims.require(POD, 't-shop')).toMatchObject({ reason: 'ClaimNotFound', pending: false }),
  );
  const volumes = [{ name: 'd', ephemeral: {} }];
  const brief = { ...POD, metadata: { ...POD.metadata, name: 'x' }, spec: { ...POD.spec, volumes } } as Pod;
  expect(claims.require(brief, 't-shop')).toMatchObject({ reason: 'ClaimNotFound', pending: true });
  post(CLAIMS, hostClaim({}, { name: 'x-d' }));
  await eventually(() =>
    expect(claims.require(brief, 't-shop')).toMatchObject({ reason: 'ClaimNotOwned', pending: false }),
  );
});
