import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitForNode } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { FaultProxy } from '../fixtures/fault-proxy.ts';
import { ownTaints } from '../fixtures/own-taints.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';
import { measured, seconds } from '../faults/lab.ts';

/** Longer than watches that are not heard of count as current. */
const OUTAGE_MS = 140_000;
/** From the end of the outage to that of our taints. */
const OPEN_MS = 5_000;

let topology: Topology;
let east: FaultProxy;

beforeAll(async () => {
  topology = await startTopology({
    members: [{ name: 'east', kwok: { nodes: 1, prefix: 'east' }, unregistered: true }],
  });
  // With the probe as it is unless somebody says otherwise.
  east = await addProxiedMember(topology.host, topology.member('east').cluster);
  await waitForNode(topology.host, 'east');
});
afterAll(async () => {
  await east?.close();
  await topology?.close();
});

test.for(['once', 'and once more'])(
  'a member takes pods again within 5 s, %s',
  { timeout: 300_000 },
  async (times, context) => {
    const cut = east.inject({ kind: 'reset', when: 'before' });
    east.resetConnections();
    await until('it is out of reach', async () => (await ownTaints(topology.host, 'east')).length > 0, {
      timeoutMs: 60_000,
    });
    await sleep(OUTAGE_MS);
    cut.remove();
    const whole = Date.now();
    await until('it takes pods', async () => (await ownTaints(topology.host, 'east')).length === 0, {
      timeoutMs: 60_000,
      intervalMs: 100,
    });
    const openMs = Date.now() - whole;
    const figures = `the line is whole, ${times}: it takes pods again after ${seconds(openMs)}`;
    console.info(figures);
    measured(context, ['F25'], figures);
    expect(openMs).toBeLessThan(OPEN_MS);
  },
);
