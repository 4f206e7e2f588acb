import { afterEach, beforeEach, expect, it } from 'vitest';
import { MEMBER_CLAIM_ANNOTATION, readMemberVolume } from '../../src/api/member-volume.ts';
import { hostVolumeFor, memberClaimFor } from '../../src/dependents/member-volume.ts';
import { hostClaim, storageClass } from '../fixtures/claims.ts';
import { eventually, HOST_ID, ScopeWorld } from '../fixtures/member-scope.ts';

let world: ScopeWorld;
beforeEach(async () => {
  world = await ScopeWorld.start();
});
afterEach(async () => {
  await world.close();
});

const PREFIXED = { namespaces: { mapping: 'Prefixed', prefix: 'x-' } };

it.each([
  ['goes on', false],
  ['starts anew', true],
])('pods stay where they run when the namespace mapping is edited and the program %s', async (_, restarts) => {
  const first = world.scope('east');
  world.makePod('web-0', 'east');
  world.makePod('web-1', 'east');
  await eventually(() => expect([world.copy('web-0'), world.copy('web-1')]).not.toContain(undefined));
  await eventually(() => expect(world.hostPod('web-0')?.status?.conditions).toBeDefined());
  if (restarts) {
    await first.stop();
    world.scope('east', { spec: PREFIXED });
  } else {
    first.edit(PREFIXED);
  }
  world.makePod('new', 'east');
  await eventually(() => expect(world.copy('new', 'x-shop')).toBeDefined());
  world.member.edit('/api/v1/namespaces/shop/pods/web-0', { status: { phase: 'Running' } });
  await eventually(() => expect(world.hostPod('web-0')?.status?.phase).toBe('Running'));
  world.host.edit('/api/v1/namespaces/shop/pods/web-0', {
    metadata: { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 },
  });
  await eventually(() => expect([world.copy('web-0'), world.hostPod('web-0')]).toEqual([undefined, undefined]));
  expect(world.copy('web-1')).toBeDefined();
  expect(world.member.requests('DELETE').map(({ path }) => path)).toEqual(['/api/v1/namespaces/shop/pods/web-0']);
  expect([world.copy('web-0', 'x-shop'), world.copy('web-1', 'x-shop')]).toEqual([undefined, undefined]);
});

it('pods that go to another namespace than the data of their claim mount nothing else of its name', async () => {
  const claim = hostClaim({ volumeName: 'pvc-host-claim' });
  const place = { namespace: 'shop', claim: 'db', member: 'east', identity: '' };
  for (const name of ['shop', 'x-shop']) {
    const labels = { 'spillway.dev/allow-host': HOST_ID };
    world.make('member', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  }
  const made = memberClaimFor(claim, 'ssd', { hostId: HOST_ID, namespace: 'shop' });
  const CLAIMS = 'persistentvolumeclaims';
  world.make('member', `/api/v1/namespaces/shop/${CLAIMS}`, made);
  const stranger = { ...made, metadata: { name: 'db', namespace: 'x-shop' } };
  world.make('member', `/api/v1/namespaces/x-shop/${CLAIMS}`, stranger);
  const uidOf = (key: string): string => world.member.objects.get(`/api/v1/namespaces/${key}`)?.metadata.uid ?? '';
  const object = hostVolumeFor(claim, storageClass(), { ...place, identity: uidOf('kube-system') });
  const annotations = { [MEMBER_CLAIM_ANNOTATION]: uidOf(`shop/${CLAIMS}/db`) };
  const volume = readMemberVolume({ ...object, metadata: { ...object.metadata, annotations } });
  const east = world.scope('east', {
    hostClaim: (key) => (key === 'shop/db' ? { claim, storageClass: storageClass(), volume } : undefined),
  });
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'db' } }];
  world.makePod('db-0', 'east', { spec: { volumes } });
  await eventually(() => expect(world.copy('db-0')).toBeDefined());
  east.edit(PREFIXED);
  world.makePod('db-1', 'east', { spec: { volumes } });
  await eventually(() => expect(world.hostPod('db-1')?.status).toMatchObject({ reason: 'ClaimElsewhere' }));
  // The one that runs is kept up to date where it is.
  world.host.edit('/api/v1/namespaces/shop/pods/db-0', { metadata: { labels: { role: 'leader' } } });
  await eventually(() => expect(world.copy('db-0')?.metadata.labels).toMatchObject({ role: 'leader' }));
  expect(world.copy('db-1', 'x-shop')).toBeUndefined();
  east.edit({});
  await eventually(() => expect(world.copy('db-1')).toBeDefined());
});
