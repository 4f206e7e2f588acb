import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { ActingMember } from '../../src/manager/acting-member.ts';
import { memberServices } from '../../src/manager/services.ts';
import type { VirtualNodes } from '../../src/manager/virtual-nodes.ts';
import type { MemberNamespaces } from '../../src/members/namespaces.ts';
import { serviceMetrics } from '../../src/services/service-metrics.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const PODS = 1_000;

it('a change of a pod takes as long whatever else is in its namespace', () => {
  const client = new MemoryApi().client();
  const pods = Array.from({ length: PODS }, (_, i): Pod => ({
    metadata: { name: `p${i}`, namespace: 'shop', uid: `u${i}` },
    spec: { containers: [] },
  }));
  let looked = 0;
  const nodes = {
    *hostPodsIn(): Generator<Pod> {
      for (const pod of pods) {
        looked += 1;
        yield pod;
      }
    },
  };
  const acting = {
    services: {
      host: client,
      hostId: 'us',
      services: { byIndex: () => [] },
      serviceMetrics: serviceMetrics(new Registry()),
    },
    connection: {
      name: 'east',
      client,
      pods: { byIndex: () => [] },
      nodes: { get: () => undefined, on: () => () => undefined },
    },
    standing: { sharesCluster: () => false, memberNamed: () => undefined },
    member: () => ({
      metadata: { name: 'east' },
      spec: { services: { mode: 'Mirror', namespaces: [] }, network: 'Flat' },
    }),
    mayWrite: () => true,
    logger: pino({ level: 'silent' }),
  };
  const services = memberServices(
    acting as unknown as ActingMember,
    nodes as unknown as VirtualNodes,
    {} as unknown as MemberNamespaces,
  );
  for (const pod of pods) services.hostPodChanged(pod);
  expect(looked).toBe(PODS);
});
