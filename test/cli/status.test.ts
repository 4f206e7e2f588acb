import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { hostPod } from '../fixtures/pods.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const MARK = { hash: 'h', replicaSet: 'web-h', uid: 'set', at: '2026-03-01T11:00:00Z', ready: 1 };
const EVENTS = '/api/v1/events';
let folder: string;
let api: MemoryApi;
let server: MemoryApiServer;
let terminal: FakeTerminal;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'status-'));
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  writeKubeconfig(join(folder, 'config'), { host: server });
  terminal = new FakeTerminal();
  const credentials = { secretRef: { namespace: 'spillway-system', name: 'east' } };
  api.put('/apis/spillway.dev/v1alpha1/memberclusters/east', { metadata: {}, spec: { credentials } });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const status = async (): Promise<number> =>
  await runProgram(['status', '--kubeconfig', join(folder, 'config')], terminal);

function podInEast(annotations: Record<string, string>): void {
  const pod = hostPod({ metadata: { uid: 'u' }, spec: { nodeName: 'east' }, status: { phase: 'Running' } });
  const metadata = { ...pod.metadata, namespace: 'shop', name: 'web-0', labels: {}, ownerReferences: [], annotations };
  api.put('/api/v1/namespaces/shop/pods/web-0', { ...pod, metadata });
}

it('looks for what keeps released pods, and says so', async () => {
  podInEast({ 'spillway.dev/released': JSON.stringify(MARK) });
  const told = (name: string, reason: string, message: string): void => {
    const involvedObject = { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'u' };
    const times = { firstTimestamp: '2026-03-01T11:18:00Z', lastTimestamp: '2026-03-01T11:59:00Z' };
    const metadata = { namespace: 'shop', name };
    api.put(`/api/v1/namespaces/shop/events/${name}`, { metadata, involvedObject, reason, message, ...times });
  };
  told('a', 'ReleasedPodStays', 'another pod is Ready in its place, but it cannot be ended: a budget');
  told('b', 'Unhealthy', 'its probe fails');
  expect(await status()).toBe(0);
  expect(terminal.stdout).toContain(
    'pod shop/web-0 stays in east, for 42m now: another pod is Ready in its place, but it cannot be ended: a budget\n',
  );
  expect(api.requests('GET', EVENTS).map(({ query }) => query['fieldSelector'])).toEqual([
    'involvedObject.kind=Pod,reason=ReleasedPodStays',
  ]);
});

it('counts pods that are to leave a drained node and stay, with the first reason', async () => {
  podInEast({});
  const name = 'web-0';
  const told = (at: string, last: string, message: string): void => {
    const involvedObject = { kind: 'Pod', namespace: 'shop', name, uid: 'u' };
    const event = { involvedObject, reason: 'DrainedPodHeld', message, lastTimestamp: last };
    api.put(`/api/v1/namespaces/shop/events/${at}`, { metadata: { namespace: 'shop', name: at }, ...event });
  };
  told('old', '2026-03-01T11:20:00Z', 'of former times');
  told('new', '2026-03-01T11:59:00Z', 'it stays there for now: a budget');
  const drained = (...taints: object[]): void => {
    const metadata = { name: 'east', labels: { 'spillway.dev/member': 'east' } };
    api.put('/api/v1/nodes/east', { metadata, spec: { providerID: 'spillway://east/east', taints } });
  };
  drained({ key: 'spillway.dev/drain', effect: 'NoSchedule' });
  expect(await status()).toBe(0);
  expect(terminal.stdout).toContain('in members: 1 running, 0 pending, 1 of these held back\n');
  expect(terminal.stdout).toMatch(/1 +DrainedPodHeld +shop\/web-0 +it stays there for now: a budget\n/);
  expect(terminal.stdout).toContain('drained: taint spillway.dev/drain on node east; ');
  // Without the taint its Events are of former times.
  drained();
  terminal.stdout = '';
  expect(await status()).toBe(0);
  expect(terminal.stdout).toContain('0 of these held back\n');
});

it('says which pods of a member that does not answer are held', async () => {
  podInEast({});
  const conditions = [
    {
      type: 'Ready',
      status: 'False',
      reason: 'Timeout',
      message: 'nothing',
      lastTransitionTime: '2026-03-01T11:00:00Z',
    },
  ];
  api.edit('/apis/spillway.dev/v1alpha1/memberclusters/east', { status: { conditions } });
  api.put('/api/v1/namespaces/shop/events/a', {
    metadata: { namespace: 'shop', name: 'a' },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'u' },
    reason: 'PodOfLostMemberHeld',
    message: 'it uses claims',
    lastTimestamp: '2026-03-01T11:59:00Z',
  });
  expect(await status()).toBe(0);
  expect(terminal.stdout).toMatch(/1 +PodOfLostMemberHeld +shop\/web-0 +it uses claims\n/);
});

it('says what right is missing for that, and what it knows without', async () => {
  podInEast({ 'spillway.dev/released': JSON.stringify(MARK) });
  const message = 'events is forbidden: User "ann" cannot list resource "events"';
  api.fault = ({ path }) => (path === EVENTS ? { code: 403, reason: 'Forbidden', message } : undefined);
  expect(await status()).toBe(0);
  expect(terminal.stdout).toContain('1 pod released in east, until others are Ready in their place\n');
  expect(terminal.notes.join('\n')).toContain('list events');
});

it('asks for no Events where no pod is released', async () => {
  podInEast({});
  expect(await status()).toBe(0);
  expect(api.requests('GET', EVENTS)).toEqual([]);
});
