import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, it } from 'vitest';
import type { Condition, Pod } from '../../../src/kube/core-v1.ts';
import type { InformerHandler } from '../../../src/kube/informer.ts';
import { OutageDeletions } from '../../../src/pods/outages/outage-deletions.ts';
import { outageMetrics } from '../../../src/pods/outages/outage-metrics.ts';
import { MemoryApi } from '../../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../../fixtures/memory-api-server.ts';
import { hostPod } from '../../fixtures/pods.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();
const BY_TAINT: Condition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };

let server: MemoryApiServer | undefined;
afterEach(async () => await server?.close());

/** `heartbeat`: how many seconds ago the virtual node was heard of last; undefined: never. */
async function after(heartbeat: number | undefined, pods: readonly Pod[], nodeFails = false) {
  const api = new MemoryApi();
  server = await serveMemoryApi(api);
  if (heartbeat !== undefined) {
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const metadata = { name: 'east', namespace: 'kube-node-lease' };
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { renewTime: ago(heartbeat) } };
    await api.client().request({ method: 'POST', path, body });
  }
  const handlers: InformerHandler<Pod>[] = [];
  const on = (handler: InformerHandler<Pod>) => {
    handlers.push(handler);
    return () => true;
  };
  const told: string[] = [];
  const registry = new Registry();
  const deletions = new OutageDeletions({
    nodeName: 'east',
    member: 'east',
    nodeFails: () => nodeFails,
    host: server.client('host'),
    hostPods: { on },
    events: { record: ({ name }, _type, reason, message) => told.push(`${name} ${reason} ${message}`) },
    metrics: outageMetrics(registry),
    logger: pino({ level: 'silent' }),
    clock: () => NOW,
  });
  const outage = await deletions.lastOutage(AbortSignal.timeout(10_000));
  deletions.recordFor(outage);
  for (const pod of pods) {
    for (const handler of handlers) {
      handler.added?.(pod);
      handler.updated?.(pod, pod);
    }
  }
  const counted = await registry.getSingleMetric('spillway_pods_deleted_in_outage_total')?.get();
  return { told, counted: counted?.values.reduce((sum, { value }) => sum + value, 0) };
}

/** A pod that was to be deleted so many seconds ago, with a grace period of 30 s. */
function deletedPod(secondsAgo: number, conditions: Condition[] = [BY_TAINT]): Pod {
  const metadata = { deletionTimestamp: ago(secondsAgo - 30), deletionGracePeriodSeconds: 30 };
  return hostPod({ metadata, status: { phase: 'Running', conditions } });
}

describe('what became of pods while nobody served their virtual node', () => {
  it('is told of those that Kubernetes deleted for that, once each', async () => {
    const { told, counted } = await after(900, [deletedPod(500)]);
    expect(counted).toBe(1);
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(
      /^web-0 DeletedInOutage .*served node east from 2026-01-01T00:45:00Z to 2026-01-01T01:00:00Z/,
    );
  });

  it('names the setting by which it was so', async () => {
    const { told } = await after(900, [deletedPod(500)]);
    expect(told[0]).toMatch(/makes another one\. See outages\.toleration in the configuration of Spillway\.$/);
    const failing = await after(900, [deletedPod(500)], true);
    expect(failing.told[0]).toMatch(/makes another one\. spec\.probe\.nodesReady of MemberCluster "east" has it so\.$/);
  });

  it.each<[string, number | undefined, Pod]>([
    ['a pod that is not deleted', 900, hostPod({ status: { phase: 'Running', conditions: [BY_TAINT] } })],
    ['a deletion by somebody else', 900, deletedPod(500, [])],
    ['a deletion by eviction', 900, deletedPod(500, [{ ...BY_TAINT, reason: 'EvictionByEvictionAPI' }])],
    ['a deletion before that: somebody put a taint on the Node', 900, deletedPod(1000)],
    ['a deletion long after that', 900, deletedPod(-60)],
    ['a replica that took over at once', 12, deletedPod(5)],
    ['a virtual node that was never heard of', undefined, deletedPod(500)],
  ])('says nothing of %s', async (_what, heartbeat, pod) => {
    expect((await after(heartbeat, [pod])).told).toEqual([]);
  });
});
