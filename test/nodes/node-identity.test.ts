import { X509Certificate } from 'node:crypto';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createAuthority } from '../../hack/pki.ts';
import type { Node } from '../../src/kube/core-v1.ts';
import type { Credentials } from '../../src/kube/access.ts';
import type { KubeClient, KubeRequest } from '../../src/kube/client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { NodeIdentityMetrics } from '../../src/nodes/node-identity-metrics.ts';
import { NodeIdentity, type NodeIdentityOptions } from '../../src/nodes/node-identity.ts';
import { NodeStanding } from '../../src/nodes/node-standing.ts';
import { SigningHost } from '../fixtures/signing-host.ts';

const OWNER = { name: 'east', member: 'east', providerID: 'spillway://east/east' };
const DAY = 86_400_000;
function refuse(code: number, path: string): ApiError {
  const reason = code === 404 ? 'NotFound' : '';
  const status = { kind: 'Status', reason, message: `refused ${path}` } as const;
  return new ApiError({ cluster: 'host', method: 'GET', path, code, status });
}

let signing: SigningHost;
/** The Node as the host has it. */
let node: Node | undefined;
/** What each kind of user is answered instead of a Node. */
let refusals: { nodes?: number; manager?: number };
let managerMay: boolean;
let mayRequest: boolean;
let asked: string[];
let lines: Record<string, unknown>[];
let registry: Registry;
let stop: AbortController;
let running: Promise<unknown>[];

beforeEach(async () => {
  signing = new SigningHost(await createAuthority('host-ca'));
  signing.grants = true;
  node = undefined;
  refusals = {};
  managerMay = false;
  mayRequest = true;
  asked = [];
  lines = [];
  registry = new Registry();
  stop = new AbortController();
  running = [];
});
afterEach(async () => {
  stop.abort();
  await Promise.all(running);
});

/** A host as these credentials see it: `manager` by token, a node by certificate. */
function connect(credentials: Credentials): KubeClient {
  const request = async (r: KubeRequest): Promise<unknown> => {
    const headers = await credentials.headers();
    const { cert } = credentials.tls();
    const user = cert === undefined ? headers['authorization'] : subjectOf(cert);
    const isNode = cert !== undefined;
    asked.push(`${user} ${r.method ?? 'GET'} ${r.path.split('/').at(-1)}`);
    if (r.path.includes('/selfsubjectaccessreviews')) return { status: { allowed: managerMay } };
    if (r.path.includes('/certificatesigningrequests')) {
      if (!mayRequest) throw refuse(403, r.path);
      return await signing.request({ ...r });
    }
    const code = (isNode ? refusals.nodes : refusals.manager) ?? (node === undefined ? 404 : undefined);
    // As clients do it: are there other credentials?
    if (code === 401) await credentials.headers(true);
    if (code !== undefined) throw refuse(code, r.path);
    return node;
  };
  return { cluster: 'host', request, close: () => Promise.resolve() } as unknown as KubeClient;
}
const subjectOf = (cert: string): string => /CN=(.*)$/m.exec(new X509Certificate(cert).subject)?.[1] ?? '';

function start(options: Partial<NodeIdentityOptions> = {}): NodeIdentity {
  const access = staticAccess({ endpoint: { server: 'https://host.invalid' }, token: 'manager' });
  const identity = new NodeIdentity({
    owner: OWNER,
    standing: new NodeStanding(OWNER),
    mode: 'Auto',
    manager: connect(access.credentials),
    access,
    connect,
    metrics: new NodeIdentityMetrics(registry),
    logger: pino(
      { level: 'debug' },
      { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    ),
    firstPollMs: 1,
    patienceMs: 30,
    ...options,
  });
  running.push(identity.run(stop.signal));
  return identity;
}

const ready = async (identity: NodeIdentity): Promise<void> => {
  await identity.ready(AbortSignal.any([stop.signal, AbortSignal.timeout(5_000)]));
  expect(identity.problem).toBeUndefined();
};
/** Who a request of the node's client comes from. */
const speaker = async (identity: NodeIdentity): Promise<string> => {
  asked.length = 0;
  await identity.client.request({ path: '/api/v1/nodes/east' }).catch(() => undefined);
  return asked.find((text) => text.endsWith('GET east'))?.replace(' GET east', '') ?? 'nobody';
};
const until = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 5_000, interval: 2 });
const expiry = async (): Promise<number | undefined> =>
  (await registry.getSingleMetric('spillway_node_certificate_expiry_timestamp_seconds')?.get())?.values[0]?.value;

describe('a virtual node speaks', () => {
  test('for itself, by a certificate that was asked for once', async () => {
    const identity = start();
    await expect(identity.client.request({ path: '/x' })).rejects.toThrow('has no client certificate for the host');
    await ready(identity);
    expect(await speaker(identity)).toBe('system:node:east');
    expect([...signing.requests.values()].map(({ spec }) => spec)).toMatchObject([
      {
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
        expirationSeconds: 604_800,
      },
    ]);
    expect(await expiry()).toBeCloseTo((Date.now() + DAY) / 1000, -2);
    expect(JSON.stringify(lines)).not.toContain('PRIVATE KEY');
    await identity.close();
    expect(await expiry()).toBeUndefined();
  });

  test('with a new certificate from 70 % of its life on, and never without one', async () => {
    signing.lifeMs = 1_500;
    const identity = start();
    await ready(identity);
    signing.lifeMs = DAY;
    await until(async () => {
      expect(await speaker(identity)).toBe('system:node:east');
      expect(signing.requests.size).toBe(2);
      expect(await expiry()).toBeCloseTo((Date.now() + DAY) / 1000, -2);
    });
  });

  test('with a new certificate when the host does not accept it any more, but not over and over', async () => {
    let now = 0;
    const identity = start({ monotonic: () => now });
    await ready(identity);
    refusals.nodes = 401;
    await speaker(identity);
    refusals = {};
    now += 120_000;
    expect(signing.requests.size).toBe(1);
    refusals.nodes = 401;
    await speaker(identity);
    refusals = {};
    await until(() => expect(signing.requests.size).toBe(2));
  });

  test('as the manager where the host does not sign, if the manager may do what nodes do', async () => {
    managerMay = true;
    mayRequest = false;
    const identity = start();
    await ready(identity);
    expect(await speaker(identity)).toBe('Bearer manager');
    expect(await expiry()).toBe(0);
    expect(lines.find(({ level, node: of }) => level === 40 && of === 'east')).toBeDefined();
    mayRequest = true;
    await until(async () => expect(await speaker(identity)).toBe('system:node:east'));
  });

  test('as the manager while nobody answers the request, and for itself as soon as somebody does', async () => {
    managerMay = true;
    signing.grants = false;
    const identity = start();
    await ready(identity);
    expect(await speaker(identity)).toBe('Bearer manager');
    signing.grants = true;
    await until(async () => expect(await speaker(identity)).toBe('system:node:east'));
    expect(signing.requests.size).toBe(1);
  });

  test.each([
    [403, 'does not let nodes work'],
    [401, 'does not accept certificates of this signer'],
  ])('as the manager where a certificate is of no use (%d)', async (code, words) => {
    managerMay = true;
    refusals.nodes = code;
    const identity = start();
    await ready(identity);
    expect(await speaker(identity)).toBe('Bearer manager');
    await until(() => expect(JSON.stringify(lines)).toContain(words));
  });

  test('not at all where neither is possible, and says why and what to do', async () => {
    mayRequest = false;
    const identity = start();
    expect(identity.asking).toBe(true);
    await until(() => expect(identity.problem).toContain('refused /apis/certificates.k8s.io'));
    await until(() => expect(identity.asking).toBe(false));
    expect(identity.problem).toMatch(/^Virtual node "east" has no client certificate.*manifests\/rbac-service-account/);
    expect(await speaker(identity)).toBe('nobody');
    mayRequest = true;
    await ready(identity);
  });

  test('never as the manager where only certificates are wanted', async () => {
    managerMay = true;
    mayRequest = false;
    const identity = start({ mode: 'NodeCertificate' });
    await until(() => expect(identity.problem).toContain('refused'));
    expect(await speaker(identity)).toBe('nobody');
    expect(asked.some((text) => text.includes('selfsubject'))).toBe(false);
  });

  test('as the manager at once where that is wanted, and asks for nothing', async () => {
    const identity = start({ mode: 'ServiceAccount' });
    await ready(identity);
    expect(identity.asking).toBe(false);
    expect(await speaker(identity)).toBe('Bearer manager');
    expect(signing.requests.size).toBe(0);
  });

  test('never in the name of a Node that is not ours', async () => {
    node = {
      metadata: { name: 'east', labels: { 'kubernetes.io/hostname': 'east' } },
      spec: { providerID: 'cloud://1' },
    };
    const identity = start();
    await until(() => expect(identity.problem).toContain('a Node named "east" exists and was not made for'));
    expect(signing.requests.size).toBe(0);
    node = { metadata: { name: 'east', labels: { 'spillway.dev/member': 'east' } } };
    await ready(identity);
    expect(await speaker(identity)).toBe('system:node:east');
  });

  test('as nobody once its certificate has ended and there is no other', async () => {
    let now = Date.now();
    const identity = start({ clock: () => now });
    await ready(identity);
    // Of a day from when it was signed, which is a while after the start on a busy machine.
    now = Date.now() + DAY + 1;
    expect(await speaker(identity)).toBe('nobody');
    expect(await expiry()).toBe(0);
  });
});
