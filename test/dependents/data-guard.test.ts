import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pino } from 'pino';
import type { Invariants } from '../../src/api/invariants.ts';
import type { PersistentVolume } from '../../src/kube/volumes.ts';
import { type DeletionEvidence, whyDataStay } from '../../src/dependents/data-guard.ts';
import { MemberCopies } from '../../src/dependents/member-copies.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { copyOfClaim, HOME, hostClaim, volumeFor } from '../fixtures/claims.ts';
import { HOST_ID } from '../fixtures/dependents.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';
import { Violations } from '../fixtures/violations.ts';

const CLAIM = hostClaim();
const GONE: DeletionEvidence = {
  volume: volumeFor(CLAIM, { phase: 'Released', claimUid: 'member-claim' }),
  claim: undefined,
  identity: HOME.identity,
};
const withVolume = (volume: Partial<PersistentVolume>): DeletionEvidence => ({
  ...GONE,
  volume: { ...GONE.volume, ...volume },
});

describe('what deletes data', () => {
  let server: TestServer;
  let client: KubeClient;
  let violations: Violations;
  let deletions: string[];
  let stop: AbortController;
  let running: Promise<void>[];

  beforeEach(async () => {
    [deletions, violations, stop, running] = [[], new Violations(), new AbortController(), []];
    server = await startHttpServer((req, res) => {
      deletions.push(`${req.method} ${req.url}`);
      sendJson(res, 200, { kind: 'Status', apiVersion: 'v1', status: 'Success' });
    });
    client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: server.url } }) });
  });
  afterEach(async () => {
    stop.abort();
    await Promise.all(running);
    await client.close();
    await server.close();
  });

  const copies = (invariants: Invariants): MemberCopies => {
    const made = new MemberCopies({
      client,
      hostId: HOST_ID,
      namespaces: { hasSynced: true, get: () => undefined, on: () => () => undefined },
      isUsable: () => true,
      invariants,
      logger: pino({ level: 'silent' }),
    });
    running.push(made.run(stop.signal));
    return made;
  };
  const signal = new AbortController().signal;

  it('I20: a claim is not deleted without evidence, nor with some that says otherwise', async () => {
    for (const evidence of [undefined, { ...GONE, claim: CLAIM }]) {
      await expect(copies(violations).remove(copyOfClaim(CLAIM), signal, evidence)).rejects.toThrow('I20');
    }
    expect(violations.seen).toEqual(['I20', 'I20']);
    expect(deletions).toEqual([]);
  });

  it('a claim goes when its host claim is gone and the policy says so', async () => {
    await copies(violations).remove(copyOfClaim(CLAIM), signal, GONE);
    expect(violations.seen).toEqual([]);
    expect(deletions).toEqual(['DELETE /api/v1/namespaces/t-shop/persistentvolumeclaims/db']);
  });
});

it.each<[string, DeletionEvidence | undefined]>([
  ['nothing says that the host claim is gone', undefined],
  ['the host claim exists', { ...GONE, claim: CLAIM }],
  ['the volume of the host is not released', withVolume({ status: { phase: 'Bound' } })],
  ['the volume of the host is not released', withVolume({ status: {} })],
  [
    'the reclaim policy says that the data are kept',
    withVolume({ spec: { ...GONE.volume.spec, persistentVolumeReclaimPolicy: 'Retain' } }),
  ],
  ['the volume of the host is not ours', withVolume({ spec: { claimRef: { uid: 'host-claim' } } })],
  ['the volume of the host stands for other data', { ...GONE, identity: 'another cluster' }],
  ['the volume of the host stands for other data', { ...GONE, volume: volumeFor(hostClaim({}, { name: 'other' })) }],
  [
    'the volume of the host stands for another claim',
    { ...GONE, volume: volumeFor(CLAIM, { phase: 'Released', claimUid: 'former' }) },
  ],
])('data stay: %s', (why, evidence) => {
  expect(whyDataStay(copyOfClaim(CLAIM), HOST_ID, evidence)).toBe(why);
});

it('data of others stay', () => {
  expect(whyDataStay(copyOfClaim(CLAIM, { hostId: 'another' }), HOST_ID, GONE)).toBe('the claim is not ours');
  expect(whyDataStay(copyOfClaim(CLAIM, { hostUid: 'former' }), HOST_ID, GONE)).toBe(
    'the claim is of another host claim',
  );
});

it('a claim of the same name that came later is no reason to keep the data of the former one', () => {
  const later = hostClaim({}, { uid: 'later' });
  expect(whyDataStay(copyOfClaim(CLAIM), HOST_ID, { ...GONE, claim: later })).toBeUndefined();
});
