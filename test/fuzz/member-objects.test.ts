import fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { Event, Node, Pod } from '../../src/kube/core-v1.ts';
import { fitRequestOf } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import {
  misshapen,
  type Resource,
  EVENTS,
  LIMIT_RANGES,
  NAMESPACES,
  NODES,
  PODS,
  RESOURCE_QUOTAS,
} from '../../src/kube/resource.ts';
import { TransportError } from '../../src/kube/errors.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { checkIdentified } from '../../src/kube/watch-event.ts';
import { hostEventOf } from '../../src/pods/events/host-event.ts';
import { eventProjection } from '../../src/pods/events/member-event.ts';
import { nodeProjection, podProjection } from '../../src/members/pod-projection.ts';
import { hostStatus } from '../../src/pods/host-status.ts';
import { declaredFeatures } from '../../src/nodes/declared-features.ts';
import { boundPod } from '../fixtures/translation.ts';
import { memberNode } from '../fixtures/member-nodes.ts';
import { HOST_ID, hostPod, memberPod } from '../fixtures/pods.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { changed } from './inputs.ts';

/** What gets into a cache. */
function usable(resource: Resource, object: unknown): object is KubeObject {
  const where = { cluster: 'east', method: 'GET', path: '/' };
  const identified = throwsOnly([TransportError], () => checkIdentified(where, resource, object));
  return identified !== undefined && misshapen(resource, object) === undefined;
}

const running = memberPod({
  spec: {
    nodeName: 'n1',
    containers: [
      {
        name: 'app',
        image: 'i',
        resources: { requests: { cpu: '100m', memory: '1Gi' } },
        ports: [{ containerPort: 80, hostPort: 80 }],
      },
    ],
  },
});
const stranger = { ...running, metadata: { ...running.metadata, uid: 'other', labels: { app: 'web' } } };
const node = memberNode('n1', { taints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }], declaredFeatures: ['X'] });
const quota = {
  metadata: { name: 'q', namespace: 'shop', uid: 'q' },
  spec: { hard: { 'requests.cpu': '1', pods: '5' } },
  status: { hard: { pods: '5' }, used: { pods: '1' } },
};
const limits = {
  metadata: { name: 'l', namespace: 'shop', uid: 'l' },
  spec: { limits: [{ type: 'Container', default: { cpu: '1' }, defaultRequest: { cpu: '1' }, max: { cpu: '2' } }] },
};
const namespace = { metadata: { name: 'shop', uid: 'ns', labels: { team: 'a' } }, status: { phase: 'Active' } };
const event = {
  metadata: { name: 'e', namespace: 'shop', uid: 'e', creationTimestamp: '2026-01-01T00:00:00Z' },
  involvedObject: {
    kind: 'Pod',
    name: 'web-0',
    namespace: 'shop',
    uid: 'member-uid',
    fieldPath: 'spec.containers{app}',
  },
  type: 'Warning',
  reason: 'BackOff',
  message: 'Back-off',
  count: 3,
  series: { count: 2, lastObservedTime: '2026-01-01T00:00:00.000000Z' },
  source: { component: 'kubelet', host: 'n1' },
  firstTimestamp: '2026-01-01T00:00:00Z',
  lastTimestamp: '2026-01-01T00:01:00Z',
};

describe('objects of a member that came through its caches', () => {
  const cluster = fc.record({
    pod: changed(running, stranger),
    node: changed(node),
    quota: changed(quota),
    limits: changed(limits),
    namespace: changed(namespace),
  });
  fuzz('tell what it has room for', cluster, { share: 3_000 }, ({ pod, node, quota, limits, namespace }) => {
    const capacity = new MemberCapacity({ hostId: HOST_ID });
    const told: (() => void)[] = [];
    const tell = <T extends KubeObject>(
      resource: Resource,
      object: unknown,
      handler: { added: (one: T) => void; deleted: (one: T) => void },
      project = (one: KubeObject): KubeObject => one,
    ): void => {
      if (!usable(resource, object)) return;
      const kept = project(object) as T;
      handler.added(kept);
      told.push(() => handler.deleted(kept));
    };
    tell<Node>(NODES, node, capacity.nodeHandler, nodeProjection());
    tell<Pod>(PODS, pod, capacity.podHandler, podProjection(HOST_ID));
    tell(NAMESPACES, namespace, capacity.namespaceHandler);
    tell(RESOURCE_QUOTAS, quota, capacity.quotaHandler);
    tell(LIMIT_RANGES, limits, capacity.limitRangeHandler);
    const request = fitRequestOf(boundPod(), 'v');
    expect(capacity.slots(request, 100) > 0).toBe(capacity.fits(request).fits);
    for (const forget of told) forget();
    expect(capacity.fittingNodes(request)).toEqual([]);
  });

  const context = { member: 'east', network: 'Flat', inSync: true } as const;
  fuzz('become the status of the host pod', changed(running), { share: 2_500 }, (pod) => {
    if (!usable(PODS, pod)) return;
    const status = hostStatus(hostPod(), podProjection(HOST_ID)(pod), context, '2026-01-01T00:00:00Z');
    JSON.stringify(status);
    expect(status.phase).toEqual(expect.any(String));
    declaredFeatures([], '1.36');
  });

  fuzz('become Events of the host', changed(event), { share: 2_000 }, (one) => {
    if (!usable(EVENTS, one)) return;
    const told = hostEventOf(
      eventProjection(one as KubeObject & Event),
      { kind: 'Pod', metadata: { name: 'web-0', namespace: 'shop', uid: 'host-uid' } },
      'east',
      0,
    );
    expect(Buffer.byteLength(told.message)).toBeLessThanOrEqual(1_024);
    expect(told.message + told.reason).not.toMatch(/\p{Cc}/u);
    expect(Buffer.byteLength(JSON.stringify(told))).toBeLessThan(8_192);
    expect(Date.parse(told.firstTimestamp ?? '')).toBeLessThanOrEqual(Date.parse(told.lastTimestamp));
  });
});
