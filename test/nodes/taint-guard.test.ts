import { pino } from 'pino';
import { expect, it, vi } from 'vitest';
import type { Node } from '../../src/kube/core-v1.ts';
import { foreignTaintsLost } from '../../src/nodes/node-changes.ts';
import { NodeKeeper } from '../../src/nodes/node-keeper.ts';
import { NodeStanding } from '../../src/nodes/node-standing.ts';
import { ReportPace } from '../../src/nodes/report-pace.ts';
import { renderNode } from '../../src/nodes/render-node.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { Violations } from '../fixtures/violations.ts';

// What decides about taints is replaced by something that gets them wrong.
vi.mock('../../src/nodes/node-changes.ts', async (original) => ({
  ...(await original<object>()),
  metadataPatch: ({ metadata: { resourceVersion } }: Node) => ({ metadata: { resourceVersion }, spec: { taints: [] } }),
}));

const NODE = '/api/v1/nodes/east';

it('I12: a patch that would take away a taint of others is not sent', async () => {
  const api = new MemoryApi();
  const server = await serveMemoryApi(api);
  const violations = new Violations();
  const keeper = new NodeKeeper({
    host: server.client('host'),
    manager: server.client('host'),
    name: 'east',
    standing: new NodeStanding({ name: 'east', member: 'east', providerID: 'spillway://east/east' }),
    desired: () =>
      renderNode({
        name: 'east',
        member: 'east',
        spec: { zones: [], labels: {}, taints: [], taintMode: 'NoSchedule', unschedulable: false },
        pool: undefined,
        offer: undefined,
        memberVersion: 'v1.36.3',
        address: '192.0.2.7',
        kubeletPort: 10_250,
        reachable: true,
      }),
    pace: new ReportPace(),
    invariants: violations,
    logger: pino({ level: 'silent' }),
  });
  const stop = new AbortController();
  const running = keeper.run(stop.signal);
  await vi.waitFor(() => expect(api.objects.has(NODE)).toBe(true), { timeout: 10_000 });
  const taints = [{ key: 'example.com/drained', effect: 'NoExecute' }];
  api.edit(NODE, { spec: { taints } });
  await vi.waitFor(() => expect(violations.seen).toContain('I12'), { timeout: 10_000 });
  stop.abort();
  await running;
  expect((api.objects.get(NODE) as unknown as Node).spec?.taints).toEqual(taints);
  await server.close();
});

it('knows whose taints are lost', () => {
  const node: Node = {
    metadata: { name: 'east', annotations: { 'spillway.dev/node-taints': 'mine:NoSchedule' } },
    spec: {
      taints: [
        { key: 'spillway.dev/member-unreachable', effect: 'NoSchedule' },
        { key: 'mine', effect: 'NoSchedule' },
        { key: 'others', effect: 'NoExecute' },
      ],
    },
  };
  expect(foreignTaintsLost(node, { spec: { taints: [] } })).toEqual(['others:NoExecute']);
  expect(foreignTaintsLost(node, { spec: { taints: [{ key: 'others', effect: 'NoExecute' }] } })).toEqual([]);
  expect(foreignTaintsLost(node, { metadata: {} })).toEqual([]);
});
