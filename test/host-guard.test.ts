import { expect, it } from 'vitest';
import { hostGuard } from '../src/host-guard.ts';
import { KubeClient } from '../src/kube/client.ts';
import { staticAccess } from '../src/kube/static-access.ts';
import { sendJson, startHttpServer } from './fixtures/http-server.ts';
import { Violations } from './fixtures/violations.ts';

it('I17: no Node is ever deleted, by name or all of them; all else passes', async () => {
  const arrived: string[] = [];
  const server = await startHttpServer((req, res) => {
    arrived.push(`${req.method} ${req.url}`);
    sendJson(res, 200, { kind: 'Status' });
  });
  const violations = new Violations();
  const access = staticAccess({ endpoint: { server: server.url } });
  const client = new KubeClient({ cluster: 'host', ...access, guard: hostGuard(violations, () => undefined) });
  for (const path of ['/api/v1/nodes/east', '/api/v1/nodes']) {
    await expect(client.request({ method: 'DELETE', path })).rejects.toMatchObject({ invariant: 'I17' });
  }
  const pod = '/api/v1/namespaces/nodes/pods/east';
  await client.request({ method: 'DELETE', path: pod });
  await client.request({ method: 'PATCH', path: '/api/v1/nodes/east', body: {} });
  expect(arrived).toEqual([`DELETE ${pod}`, 'PATCH /api/v1/nodes/east']);
  expect(violations.seen).toEqual(['I17', 'I17']);
  await client.close();
  await server.close();
});

it('I3: nothing but reads goes to another cluster in the place of the host', () => {
  const violations = new Violations();
  let problem: string | undefined = 'another cluster answers';
  const guard = hostGuard(violations, () => problem);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT']) {
    expect(() => guard({ method, path: '/api/v1/namespaces/a/pods/b' })).toThrow(/another cluster answers/);
  }
  problem = undefined;
  expect(() => guard({ method: 'DELETE', path: '/api/v1/namespaces/a/pods/b' })).not.toThrow();
  // It was counted when it was found out.
  expect(violations.seen).toEqual([]);
});
