import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOST_LABEL } from '../../src/api/marks.ts';
import { recordOfCopy } from '../../src/dependents/copy.ts';
import { MemberCopies } from '../../src/dependents/member-copies.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { copyOfClaim, hostClaim } from '../fixtures/claims.ts';
import { HOST_ID } from '../fixtures/dependents.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';
import { Violations } from '../fixtures/violations.ts';

const SIGNAL = new AbortController().signal;

describe('the last look before a copy in the member is written', () => {
  let server: TestServer;
  let client: KubeClient;
  let violations: Violations;
  let arrived: string[];
  let copies: MemberCopies;
  let hasSynced: boolean;
  let stop: AbortController;
  let ended: Promise<void>;

  beforeEach(async () => {
    [arrived, violations, stop, hasSynced] = [[], new Violations(), new AbortController(), true];
    server = await startHttpServer((req, res) => {
      arrived.push(`${req.method} ${req.url}`);
      sendJson(res, 200, { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'a', namespace: 'shop' } });
    });
    client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: server.url } }) });
    copies = new MemberCopies({
      client,
      hostId: HOST_ID,
      namespaces: {
        get hasSynced() {
          return hasSynced;
        },
        get: () => undefined,
        on: () => () => undefined,
      },
      isUsable: () => true,
      invariants: violations,
      logger: pino({ level: 'silent' }),
    });
    ended = copies.run(stop.signal);
  });
  afterEach(async () => {
    stop.abort();
    await ended;
    await client.close();
    await server.close();
  });

  const secret = (host: string) =>
    recordOfCopy('Secret', {
      metadata: { namespace: 'shop', name: 'a', uid: 'u', labels: { [HOST_LABEL]: host } },
    });

  it('I7: writes nothing before it is known what is there', async () => {
    hasSynced = false;
    const object = { apiVersion: 'v1', ...secret(HOST_ID) };
    const writes = [
      copies.create('Secret', object, SIGNAL),
      copies.replace('Secret', object, SIGNAL),
      copies.resize(copyOfClaim(hostClaim()), '1Gi', SIGNAL),
      copies.remove(secret(HOST_ID), SIGNAL),
    ];
    for (const write of writes) await expect(write).rejects.toMatchObject({ invariant: 'I7' });
    expect([violations.seen, arrived]).toEqual([['I7', 'I7', 'I7', 'I7'], []]);
    hasSynced = true;
    await copies.create('Secret', object, SIGNAL);
    await copies.replace('Secret', object, SIGNAL);
    expect(arrived).toEqual(['POST /api/v1/namespaces/shop/secrets', 'PUT /api/v1/namespaces/shop/secrets/a']);
  });

  it('I15: deletes and changes nothing that is not ours', async () => {
    await expect(copies.remove(secret('others'), SIGNAL)).rejects.toMatchObject({ invariant: 'I15' });
    const claim = copyOfClaim(hostClaim(), { hostId: 'others' });
    await expect(copies.resize(claim, '1Gi', SIGNAL)).rejects.toMatchObject({ invariant: 'I15' });
    expect([violations.seen, arrived]).toEqual([['I15', 'I15'], []]);
    await copies.remove(secret(HOST_ID), SIGNAL);
    expect([violations.seen, arrived]).toEqual([['I15', 'I15'], ['DELETE /api/v1/namespaces/shop/secrets/a']]);
  });
});
