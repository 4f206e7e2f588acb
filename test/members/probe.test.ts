import { afterEach, expect, test, vi } from 'vitest';
import { until } from '../../hack/until.ts';
import { CredentialsError } from '../../src/kube/errors.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { RotatingAccess } from '../../src/members/rotating-access.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { memberConnection } from '../fixtures/member-connection.ts';

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** A member that answers the probe with 503, or not at all, whenever it is told to, and the tries that it has seen. */
async function connect(fails: (attempt: number) => boolean | 'silent', uid = 'pinned', periodSeconds = 0.1) {
  let tries = 0;
  const server = await startHttpServer((req, res) => {
    if (req.url?.endsWith('/kube-system') !== true) {
      sendJson(res, 404, { kind: 'Status', status: 'Failure', code: 404, reason: 'NotFound', message: 'none' });
      return;
    }
    const how = fails((tries += 1));
    if (how === 'silent') {
      req.socket.destroy();
    } else if (how) {
      const refused = { code: 503, reason: 'ServiceUnavailable', message: 'too busy' };
      sendJson(res, 503, { kind: 'Status', status: 'Failure', ...refused });
    } else {
      sendJson(res, 200, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid } });
    }
  });
  const probe = { periodSeconds, timeoutSeconds: 5, failureThreshold: 2, successThreshold: 1 };
  const usable = staticAccess({ endpoint: { server: server.url } });
  const access = RotatingAccess.of(usable);
  const connection = memberConnection(server.url, { access, probe: () => ({ ...probe, podsUnreadyAfterSeconds: 60 }) });
  const seen = new Set<boolean | undefined>();
  connection.onChange(() => seen.add(connection.reachability.reachable));
  const stop = new AbortController();
  const running = connection.run(stop.signal);
  ended.push(async () => {
    stop.abort();
    await running;
    await server.close();
  });
  return { connection, seen, tries: () => tries, access, usable };
}

test('a member that refuses two of three requests answers its probes all the same', async () => {
  const { connection, seen, tries } = await connect((attempt) => attempt % 3 !== 0);
  await until('it was asked often', () => tries() >= 12);
  expect(connection.reachable()).toBe(true);
  expect([...seen].filter((one) => one === false)).toEqual([]);
});

test('a clock that is set back puts no probe off', async () => {
  let behindMs = 0;
  const wall = Date.now;
  const setBack = vi.spyOn(Date, 'now').mockImplementation(() => wall() - behindMs);
  ended.push(() => Promise.resolve(setBack.mockRestore()));
  // While a probe is under way.
  const { tries } = await connect((attempt) => {
    if (attempt === 3) behindMs = 1_800_000;
    return false;
  });
  await until('it is asked on', () => tries() >= 6, { signal: AbortSignal.timeout(10_000) });
});

test('a member that refuses all of them does not', async () => {
  const { connection } = await connect((attempt) => attempt > 2);
  await until('it is reachable', () => connection.reachable());
  await until('it is unreachable', () => !connection.reachable());
  expect(connection.reachability.failure?.message).toContain('too busy');
});

test('a member that is out of reach is asked more often than else, and one that answers is not', async () => {
  let how: boolean | 'silent' = false;
  const { connection, tries } = await connect(() => how, 'pinned', 60);
  await until('it is reachable', () => connection.reachable());
  how = 'silent';
  connection.poke();
  await until('one probe has failed', () => connection.reachability.against === 1);
  connection.poke();
  await until('it is unreachable', () => !connection.reachable());
  const before = tries();
  const again = vi.spyOn(connection.caches, 'retryNow');
  await until('it is asked again by itself', () => tries() > before + 1, { signal: AbortSignal.timeout(10_000) });
  expect(again).not.toHaveBeenCalled();
  how = false;
  await until('it is reachable', () => connection.reachable(), { signal: AbortSignal.timeout(10_000) });
  expect(again).toHaveBeenCalledOnce();
  const after = tries();
  connection.poke();
  await until('it was asked once more', () => tries() === after + 1);
  expect(again).toHaveBeenCalledOnce();
});

test('a member is silent from its first bad probe on, and one good probe ends that', async () => {
  let how: false | 'silent' = 'silent';
  const { connection } = await connect(() => how);
  await until('it has been silent for a while', () => connection.silentMs > 200);
  how = false;
  await until('it is not silent', () => connection.silentMs === 0);
});

test('a member that answers with errors is not silent, though it is not reachable', async () => {
  let how: true | 'silent' = 'silent';
  const { connection, tries } = await connect(() => how);
  await until('it has been silent for a while', () => connection.silentMs > 200);
  how = true;
  await until('it is not silent', () => connection.silentMs === 0);
  const before = tries();
  await until('it was asked on', () => tries() > before + 3);
  expect([connection.reachable(), connection.silentMs]).toEqual([false, 0]);
});

test('a member that cannot be asked is silent, but none that does not answer', async () => {
  const { connection, access, usable } = await connect(() => 'silent');
  await until('it has not answered for a while', () => connection.unansweredMs > 200);
  access.withdraw(new CredentialsError('CredentialPluginFailed', 'the plugin does not work'));
  await until('it is not asked', () => connection.unreachableBecause() === 'CredentialPluginFailed');
  const before = connection.silentMs;
  await until('it is silent on', () => connection.silentMs > before + 200);
  expect(connection.unansweredMs).toBe(0);
  let atFirst: number | undefined;
  connection.onChange(() => {
    if (connection.unreachableBecause() === 'ConnectionReset') atFirst ??= connection.unansweredMs;
  });
  access.use(usable);
  await until('it is asked again', () => atFirst !== undefined);
  expect(atFirst).toBe(0);
  await until('it has not answered for a while', () => connection.unansweredMs > 200);
});

test('another cluster in the place of a member is as silent as none', async () => {
  const { connection } = await connect(() => false, 'another');
  await until('it has been silent for a while', () => connection.silentMs > 200);
  expect(connection.reachable()).toBe(true);
});

test('another cluster is known for what it is before it has said which version it is', async () => {
  let uid = 'pinned';
  const server = await startHttpServer((req, res) => {
    const metadata = { name: 'kube-system', uid };
    if (req.url?.endsWith('/kube-system') === true)
      sendJson(res, 200, { apiVersion: 'v1', kind: 'Namespace', metadata });
    else if (req.url !== '/version') sendJson(res, 404, { kind: 'Status', status: 'Failure', code: 404 });
  });
  const probe = { periodSeconds: 0.1, timeoutSeconds: 0.5, failureThreshold: 2, successThreshold: 1 };
  const connection = memberConnection(server.url, {
    pinned: () => 'pinned',
    probe: () => ({ ...probe, timeoutSeconds: uid === 'pinned' ? 0.5 : 600, podsUnreadyAfterSeconds: 60 }),
  });
  const stop = new AbortController();
  const running = connection.run(stop.signal);
  ended.push(async () => {
    stop.abort();
    await running;
    await server.close();
  });
  await until('it is known', () => connection.identityOk());
  uid = 'another';
  await until('it is known no more', () => !connection.identityOk(), { signal: AbortSignal.timeout(5_000) });
});

test.each(['a; rm -rf /', '$(id)', '\u001b[31m', 'x'.repeat(65)])(
  'a member whose identity is no UID (%j) does not answer: it would be part of a command that people repeat',
  async (uid) => {
    const { connection, tries } = await connect(() => false, uid);
    await until('it was asked', () => tries() >= 3);
    await until('it is unreachable', () => connection.reachability.reachable === false);
    expect(connection.observedIdentity).toBeUndefined();
  },
);
