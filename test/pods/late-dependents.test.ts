import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Informer } from '../../src/kube/informer.ts';
import { PodController } from '../../src/pods/pod-controller.ts';
import { podMetrics } from '../../src/pods/pod-metrics.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { HOST_ID, hostPod } from '../fixtures/pods.ts';
import { CONTEXT } from '../fixtures/translation.ts';
import { Violations } from '../fixtures/violations.ts';

type Handlers = Parameters<Informer<Pod>['on']>[0];

/** A controller of a frozen member, so that it only listens: what it says of the pod's needs, and its handlers of host pods. */
function listening(): { tracked: Pod[]; host: Handlers; end: () => Promise<void> } {
  const tracked: Pod[] = [];
  const heard: Handlers[] = [];
  const cache = (on: Informer<Pod>['on']): Informer<Pod> =>
    ({
      hasSynced: true,
      whenSynced: () => Promise.resolve(),
      on,
      get: () => undefined,
      values: () => [].values(),
      byIndex: () => [],
    }) as unknown as Informer<Pod>;
  const controller = new PodController({
    host: new MemoryApi().client('host'),
    hostPods: cache((handlers) => {
      heard.push(handlers);
      return () => undefined;
    }),
    member: {
      name: 'east',
      client: new MemoryApi().client('east'),
      pods: cache(() => () => undefined),
      reachable: () => true,
      unreachableSince: () => undefined,
      confirmIdentity: () => Promise.resolve(true),
    },
    hostId: HOST_ID,
    nodeName: 'east',
    network: () => 'Flat',
    daemonSets: () => 'Ignore',
    podsUnreadyAfterMs: () => 60_000,
    permits: new Map(),
    frozen: () => 'the test only listens',
    namespaces: {
      memberNamespaceOf: () => CONTEXT.memberNamespace,
      ensure: () => Promise.resolve({ namespace: CONTEXT.memberNamespace }),
    },
    dependents: {
      track: (pod) => void tracked.push(pod),
      require: () => ({ ready: true }),
      release: () => undefined,
    },
    translateContext: () => CONTEXT,
    events: { record: () => undefined },
    metrics: podMetrics(new Registry()),
    invariants: new Violations(),
    logger: pino({ level: 'silent' }),
  });
  const stop = new AbortController();
  const running = controller.run(stop.signal);
  const [host] = heard;
  if (host === undefined) throw new Error('the controller does not listen to host pods');
  return {
    tracked,
    host,
    end: async () => {
      stop.abort();
      await running;
    },
  };
}

function withMirrored(pod: Pod, status: 'True' | 'Unknown', message: string): Pod {
  const others = pod.status?.conditions ?? [];
  return { ...pod, status: { ...pod.status, conditions: [...others, { type: MIRRORED_CONDITION, status, message }] } };
}

it('what a copy needs is noted once it is known to be there, whoever asked for it: status changes count no generation', async () => {
  const { tracked, host, end } = listening();
  const pod = hostPod({ metadata: { generation: 1 } });
  const intended = withMirrored(pod, 'Unknown', 'member=east namespace=shop name=web-0');
  const there = withMirrored(pod, 'True', 'member=east namespace=shop name=web-0 uid=copy-1');
  host.added?.(intended);
  expect(tracked).toEqual([intended]);
  host.updated?.(there, intended);
  expect(tracked).toEqual([intended, there]);
  // Nothing else of a status is about what the copy needs.
  host.updated?.({ ...there, status: { ...there.status, phase: 'Running' } }, there);
  expect(tracked).toHaveLength(2);
  await end();
});
