import { expect, it } from 'vitest';
import { hostGuard } from '../../src/host/host-guard.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { NodeRemovals } from '../../src/manager/node-removals.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { Violations } from '../fixtures/violations.ts';

it('I17: no Node is deleted, by name or all of them, but an empty one that retired; all else passes', async () => {
  const arrived: string[] = [];
  const server = await startHttpServer((req, res) => {
    arrived.push(`${req.method} ${req.url}`);
    sendJson(res, 200, { kind: 'Status' });
  });
  const violations = new Violations();
  const access = staticAccess({ endpoint: { server: server.url } });
  const removals = new NodeRemovals();
  const guard = hostGuard(
    violations,
    () => undefined,
    (name) => removals.may(name),
  );
  const client = new KubeClient({ cluster: 'host', ...access, guard });
  for (const path of ['/api/v1/nodes/east', '/api/v1/nodes']) {
    await expect(client.request({ method: 'DELETE', path })).rejects.toMatchObject({ invariant: 'I17' });
  }
  const pod = '/api/v1/namespaces/nodes/pods/east';
  await client.request({ method: 'DELETE', path: pod });
  await client.request({ method: 'PATCH', path: '/api/v1/nodes/east', body: {} });
  expect(arrived).toEqual([`DELETE ${pod}`, 'PATCH /api/v1/nodes/east']);
  expect(violations.seen).toEqual(['I17', 'I17']);
  // One that retired, only by what it was when that was seen, only itself, and only as long as it is empty.
  const empty = { is: true };
  const end = removals.allow('east', () => empty.is);
  const remove = async (path: string, preconditions: object = { uid: 'u', resourceVersion: '7' }) =>
    await client.request({ method: 'DELETE', path, body: { preconditions } });
  await remove('/api/v1/nodes/east');
  const refused = { invariant: 'I17' };
  await expect(remove('/api/v1/nodes/west')).rejects.toMatchObject(refused);
  await expect(remove('/api/v1/nodes')).rejects.toMatchObject(refused);
  await expect(remove('/api/v1/nodes/east', { uid: 'u' })).rejects.toMatchObject(refused);
  await expect(remove('/api/v1/nodes/east', { resourceVersion: '7' })).rejects.toMatchObject(refused);
  empty.is = false;
  await expect(remove('/api/v1/nodes/east')).rejects.toMatchObject(refused);
  empty.is = true;
  end();
  await expect(remove('/api/v1/nodes/east')).rejects.toMatchObject(refused);
  expect(arrived.slice(2)).toEqual(['DELETE /api/v1/nodes/east']);
  await client.close();
  await server.close();
});

it('I3: nothing but reads goes to another cluster in the place of the host', () => {
  const violations = new Violations();
  let problem: string | undefined = 'another cluster answers';
  const guard = hostGuard(
    violations,
    () => problem,
    () => true,
  );
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'CONNECT']) {
    expect(() => guard({ method, path: '/api/v1/namespaces/a/pods/b' })).toThrow(/another cluster answers/);
  }
  problem = undefined;
  expect(() => guard({ method: 'DELETE', path: '/api/v1/namespaces/a/pods/b' })).not.toThrow();
  // It was counted when it was found out.
  expect(violations.seen).toEqual([]);
});
