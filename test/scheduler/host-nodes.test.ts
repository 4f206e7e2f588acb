import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import { until } from '../../hack/until.ts';
import { HostNodes } from '../../src/scheduler/host-nodes.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

let server: MemoryApiServer | undefined;
let stop = new AbortController();
let running: Promise<void> | undefined;
afterEach(async () => {
  stop.abort();
  stop = new AbortController();
  await running;
  await server?.close();
});

async function serve() {
  const api = new MemoryApi();
  server = await serveMemoryApi(api);
  const call = (method: string, path: string, body?: object) =>
    api.handle({ method, path, query: {}, body, contentType: 'application/json' });
  const nodes = new HostNodes({ host: server.client('host'), logger: pino({ level: 'silent' }) });
  return {
    nodes,
    node: (name: string, providerID?: string, member?: string) =>
      call('POST', '/api/v1/nodes', {
        kind: 'Node',
        metadata: { name, ...(member === undefined ? {} : { labels: { 'spillway.dev/member': member } }) },
        spec: providerID === undefined ? {} : { providerID },
      }),
    memberCluster: (name: string, more: object = {}) =>
      call('POST', MEMBERS, {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'MemberCluster',
        metadata: { name },
        spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...more },
      }),
    remove: (path: string) => call('DELETE', path),
    follow: async () => {
      running = nodes.run(stop.signal);
      await nodes.whenSynced(stop.signal);
    },
  };
}
const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';

it('takes a Node for a virtual one by what it is, not by what a MemberCluster wants or a label says', async () => {
  const { nodes, node, memberCluster, follow } = await serve();
  for (const name of ['worker-1', 'worker-2', 'east', 'soon']) memberCluster(name);
  node('worker-1', 'aws:///i-1');
  node('worker-2');
  node('east', 'spillway://east/east', 'east');
  node('unlabelled', 'spillway://west/unlabelled');
  node('deceptive', 'aws:///i-2', 'east');
  await follow();
  const names = ['worker-1', 'worker-2', 'east', 'soon', 'unlabelled', 'deceptive'];
  expect(names.map((name) => nodes.memberOf(name))).toEqual([undefined, undefined, 'east', 'soon', 'west', undefined]);
});

it('a MemberCluster named like a node of the host takes nothing of it, while it is there and afterwards', async () => {
  const { nodes, node, memberCluster, remove, follow } = await serve();
  node('worker-1', 'aws:///i-1');
  memberCluster('worker-1');
  memberCluster('later');
  await follow();
  expect(nodes.memberOf('worker-1')).toBeUndefined();
  // It is not offered room behind it, and not written to.
  expect(nodes.virtualNodesOf('worker-1')).toEqual([]);
  expect(nodes.anyVirtualNode()).toBeUndefined();
  expect(nodes.memberOf('later')).toBe('later');
  remove(`${MEMBERS}/later`);
  await until('the MemberCluster is gone', () => nodes.members.get('later') === undefined, { intervalMs: 5 });
  expect(nodes.memberOf('later')).toBeUndefined();
  node('later', 'aws:///i-2');
  await until('the node is there', () => nodes.nodes.get('later') !== undefined, { intervalMs: 5 });
  expect(nodes.memberOf('later')).toBeUndefined();
});

it('knows virtual nodes that a member does not want any more, and takes no node for one whose name it could never have had', async () => {
  const { nodes, node, memberCluster, remove, follow } = await serve();
  memberCluster('east', { virtualNodes: [{ name: 'a' }, { name: 'b' }] });
  memberCluster('east-x');
  node('east', 'spillway://east/east', 'east');
  node('east-a', 'spillway://east/east-a', 'east');
  node('east-c', 'spillway://east/east-c');
  node('east-x', 'spillway://east-x/east-x', 'east-x');
  node('worker-1', undefined, 'east');
  await follow();
  expect(nodes.virtualNodesOf('east')).toEqual(['east-a', 'east-b']);
  expect(nodes.everyVirtualNodeOf('east').toSorted()).toEqual(['east', 'east-a', 'east-b', 'east-c']);
  expect(nodes.everyVirtualNodeOf('east-x')).toEqual(['east-x']);
  remove('/api/v1/nodes/east');
  await until('the Node is gone', () => nodes.nodes.get('east') === undefined, { intervalMs: 5 });
  expect(nodes.everyVirtualNodeOf('east').toSorted()).toEqual(['east-a', 'east-b', 'east-c']);
});
