import { afterEach, expect, it } from 'vitest';
import { HOST_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import { copyHasNode } from '../../src/manager/copy-has-node.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

const HOST = { hostId: 'us', podUid: 'u1' };
let server: MemoryApiServer | undefined;

afterEach(async () => await server?.close());

async function member(pods: { name: string; uid: string; nodeName?: string }[]) {
  const api = new MemoryApi();
  server = await serveMemoryApi(api);
  for (const { name, uid, nodeName } of pods) {
    const labels = { [HOST_LABEL]: 'us', [UID_LABEL]: uid };
    const spec = { containers: [], ...(nodeName === undefined ? {} : { nodeName }) };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop', labels }, spec };
    await api.client().request({ method: 'POST', path: '/api/v1/namespaces/shop/pods', body });
  }
  const client = server.client('east');
  const state = { reachable: true, identityOk: true };
  const ask = async (signal = AbortSignal.timeout(10_000)): Promise<boolean | undefined> =>
    await copyHasNode({ client, reachable: () => state.reachable, identityOk: () => state.identityOk }, HOST, signal);
  return { api, state, ask };
}

it('is told by the member itself, whatever namespace the copy is in', async () => {
  const { api, ask } = await member([{ name: 'p', uid: 'u1', nodeName: 'n1' }]);
  expect(await ask()).toBe(true);
  const [read] = api.requests('GET', '/api/v1/pods');
  expect(read?.query).toMatchObject({ labelSelector: 'spillway.dev/host=us,spillway.dev/uid=u1' });
});

it('is false for a copy that waits for a node, and without one', async () => {
  expect(await (await member([{ name: 'p', uid: 'u1' }])).ask()).toBe(false);
  await server?.close();
  expect(await (await member([{ name: 'other', uid: 'u2', nodeName: 'n1' }])).ask()).toBe(false);
});

it('is not known of a member that does not answer, or in whose place another one does', async () => {
  const { api, state, ask } = await member([]);
  api.fault = () => ({ code: 403, reason: 'Forbidden' });
  expect(await ask()).toBeUndefined();
  api.fault = undefined;
  expect(await ask()).toBe(false);
  state.reachable = false;
  expect(await ask()).toBeUndefined();
  Object.assign(state, { reachable: true, identityOk: false });
  expect(await ask()).toBeUndefined();
});
