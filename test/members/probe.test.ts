import { afterEach, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { memberConnection } from '../fixtures/member-connection.ts';

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** A member that answers the probe with 503 whenever it is told to, and the tries that it has seen. */
async function connect(fails: (attempt: number) => boolean) {
  let tries = 0;
  const server = await startHttpServer((req, res) => {
    if (req.url?.endsWith('/kube-system') !== true) {
      sendJson(res, 404, { kind: 'Status', status: 'Failure', code: 404, reason: 'NotFound', message: 'none' });
      return;
    }
    if (fails((tries += 1))) {
      const refused = { code: 503, reason: 'ServiceUnavailable', message: 'too busy' };
      sendJson(res, 503, { kind: 'Status', status: 'Failure', ...refused });
    } else {
      sendJson(res, 200, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'pinned' } });
    }
  });
  const probe = { periodSeconds: 0.1, timeoutSeconds: 5, failureThreshold: 2, successThreshold: 1 };
  const connection = memberConnection(server.url, { probe: () => ({ ...probe, podsUnreadyAfterSeconds: 60 }) });
  const seen = new Set<boolean | undefined>();
  connection.onChange(() => seen.add(connection.reachability.reachable));
  const stop = new AbortController();
  const running = connection.run(stop.signal);
  ended.push(async () => {
    stop.abort();
    await running;
    await server.close();
  });
  return { connection, seen, tries: () => tries };
}

test('a member that refuses two of three requests answers its probes all the same', async () => {
  const { connection, seen, tries } = await connect((attempt) => attempt % 3 !== 0);
  await until('it was asked often', () => tries() >= 12);
  expect(connection.reachable()).toBe(true);
  expect([...seen].filter((one) => one === false)).toEqual([]);
});

test('a member that refuses all of them does not', async () => {
  const { connection } = await connect((attempt) => attempt > 2);
  await until('it is reachable', () => connection.reachable());
  await until('it is unreachable', () => !connection.reachable());
  expect(connection.reachability.failure?.message).toContain('too busy');
});
