import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { ALLOW_HOST_LABEL, MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { MEMBER_SCHEDULED_CONDITION } from '../../src/pods/host-status.ts';
import {
  condition,
  describeWrite,
  eventsOf,
  expectMirrored,
  type Fields,
  getPod,
  IDLE,
  kubectl,
  newNamespace,
  pod,
  podSpec,
  readPod,
  serviceAccountIn,
  shell,
  untilGone,
  untilPod,
  untilRunning,
  writesOf,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/** How soon users see what is wrong, in ms: on a busy machine a kubelet takes its time to say it. */
const SHOWN_MS = 15_000;
/** How long the refused pods are watched for hot loops, in ms. */
const WATCHED_MS = 30_000;
/** The longest pause between two tries is a minute. */
const NEXT_TRY_MS = 80_000;

interface Case {
  /** Namespace on both sides, and name of the pod. */
  name: string;
  container?: Fields;
  spec?: Fields;
  /** What the host pod says: reason, and a part of the member's own words. */
  reason: string;
  words: RegExp;
  /** Takes the cause away, in the member. */
  relieve: () => Promise<unknown>;
}

describe.runIf(kubelets.ok)('pods that the member does not take', () => {
  let topology: Topology;
  let host: Cluster;
  let member: Cluster;
  let silent: Server;
  const sockets = new Set<Socket>();
  let created = 0;
  let began = 0;

  /** A namespace of the member that its owner made, with rules of their own, and lends. */
  const lend = async (name: string, labels: Record<string, string> = {}): Promise<void> => {
    const metadata = { name, labels: { [ALLOW_HOST_LABEL]: 'any', ...labels } };
    await member.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata }]);
    await serviceAccountIn(member, name);
  };
  const remove = (...what: string[]): Promise<string> => kubectl(member, ['delete', ...what]);

  const policy = (namespace: string): object[] => [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'team-label' },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
        validations: [
          {
            expression: "has(object.metadata.labels) && 'team' in object.metadata.labels",
            message: 'every pod here needs the label team',
          },
        ],
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'team-label' },
      spec: { policyName: 'team-label', validationActions: ['Deny'] },
    },
  ];

  /** A webhook that takes the call and never answers. Without a time-out of its own it has the 10 s of Kubernetes. */
  const webhook = (name: string, namespace: string, timeout: { timeoutSeconds?: number }): object => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig: { url: `https://127.0.0.1:${(silent.address() as AddressInfo).port}/` },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        ...timeout,
        failurePolicy: 'Fail',
      },
    ],
  });

  /** Refused by the member's API server: no copy exists there. */
  const refused: Case[] = [
    {
      name: 'quota',
      reason: 'MemberQuotaExceeded',
      words: /exceeded quota: no-pods, requested: pods=1, used: pods=0, limited: pods=0/,
      relieve: () => remove('quota', 'no-pods', '-n', 'quota'),
    },
    {
      name: 'restricted',
      container: { securityContext: { privileged: true } },
      reason: 'MemberPodSecurity',
      words: /violates PodSecurity "restricted:latest": privileged/,
      relieve: () => kubectl(member, ['label', 'namespace', 'restricted', 'pod-security.kubernetes.io/enforce-']),
    },
    {
      name: 'policy',
      reason: 'MemberRefused',
      words: /ValidatingAdmissionPolicy 'team-label'.*denied request: every pod here needs the label team/,
      relieve: () => remove('validatingadmissionpolicybinding', 'team-label'),
    },
    {
      name: 'webhook',
      reason: 'MemberUnavailable',
      words: /failed calling webhook "silent\.example\.com".*(deadline exceeded|timeout)/i,
      relieve: () => remove('validatingwebhookconfiguration', 'silent'),
    },
  ];

  /** Neither taken nor refused for as long as Kubernetes waits for a webhook: longer than users should have to. */
  const open: Case = {
    name: 'patient-webhook',
    reason: 'MemberUnavailable',
    words: /^Cluster "east" has not answered the creation of the pod for 4 s/m,
    relieve: () => remove('validatingwebhookconfiguration', 'patient'),
  };
  const inTheEnd = /failed calling webhook "patient\.example\.com".*(deadline exceeded|timeout)/i;

  /** Taken by the API server, but they do not start there. */
  const stuck: Case[] = [
    {
      name: 'never-pulled',
      container: { image: 'example.invalid/absent:1', imagePullPolicy: 'Never' },
      reason: 'ErrImageNeverPull',
      words: /Container image "example\.invalid\/absent:1" is not present with pull policy of Never/,
      relieve: () =>
        kubectl(host, ['set', 'image', 'pod/never-pulled', '-n', 'never-pulled', `main=${IMAGES.busybox}`]),
    },
    {
      name: 'bad-image',
      container: { image: '127.0.0.1:9/absent:1', imagePullPolicy: 'IfNotPresent' },
      reason: 'ErrImagePull',
      words: /127\.0\.0\.1:9\/absent:1/,
      relieve: () => kubectl(host, ['set', 'image', 'pod/bad-image', '-n', 'bad-image', `main=${IMAGES.busybox}`]),
    },
    {
      name: 'unschedulable',
      container: { ports: [{ containerPort: 8080, hostPort: 18_080 }] },
      reason: 'MemberUnschedulable',
      words: /0\/1 nodes are available: 1 node\(s\) didn't have free ports for the requested pod ports/,
      relieve: () => remove('pod', 'owner', '-n', 'default', '--wait=false'),
    },
  ];
  const all = [...refused, ...stuck];

  beforeAll(async () => {
    topology = await startTopology({ members: [{ name: 'east', kubelet: 'east-1' }] });
    host = topology.host;
    member = topology.member('east').cluster;
    silent = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));

    await Promise.all([
      lend('quota'),
      lend('restricted', { 'pod-security.kubernetes.io/enforce': 'restricted' }),
      lend('policy'),
      lend('webhook'),
      // Ports of nodes are beyond the level of namespaces that Spillway makes.
      lend('unschedulable'),
      lend(open.name),
      ...[...all, open].map(({ name }) => newNamespace(host, name)),
    ]);
    await member.apply([
      {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'no-pods', namespace: 'quota' },
        spec: { hard: { pods: '0' } },
      },
      ...policy('policy'),
      // In this order: once the API server knows the second one, by the trial below, it knows the first one too.
      webhook('patient', open.name, {}),
      webhook('silent', 'webhook', { timeoutSeconds: 1 }),
      pod('owner', 'default', {
        terminationGracePeriodSeconds: 0,
        containers: [shell(IDLE, { ports: [{ containerPort: 8080, hostPort: 18_080 }] })],
      }),
    ]);
    await untilRunning(member, 'default', 'owner');
    // The API server takes a moment to know its own new rules.
    for (const { name, container, words } of refused) {
      await until(`the member refuses pods in ${name}`, async () => {
        const trial = pod('trial', name, { containers: [shell(IDLE, container)] });
        const { stderr } = await member.kubectl(['create', '--dry-run=server', '-f', '-'], {
          input: JSON.stringify(trial),
        });
        return words.test(stderr);
      });
    }
    created = Date.now();
    await host.apply(
      [...all, open].map(({ name, container, spec }) =>
        pod(name, name, podSpec([shell(IDLE, container)], spec), { labels: { case: 'refused' } }),
      ),
    );
    began = Date.now();
  });

  afterAll(async () => {
    await topology?.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });

  const left = (): { timeoutMs: number; intervalMs: number } => ({
    timeoutMs: Math.max(1_000, SHOWN_MS - (Date.now() - began)),
    intervalMs: 50,
  });

  /** A warning with the member's words, which names the cluster: in its message, or as where it comes from. */
  async function untilEvent({ name, words }: Case, options: { timeoutMs: number }): Promise<void> {
    let seen: unknown;
    await until(
      `an Event of ${name}`,
      async () => {
        const events = await eventsOf(host, name, name);
        seen = events;
        return events.some(
          ({ type, message, source }) =>
            type === 'Warning' && words.test(message) && (message.includes('"east"') || source.startsWith('east/')),
        );
      },
      options,
    ).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}; Events: ${JSON.stringify(seen)}`);
    });
  }

  // All pods were created at the same moment: these look at them while it is fresh.
  test('each says within seconds what is wrong, in the words of the member', async () => {
    const shown = async ({ name, reason, words }: Case): Promise<void> => {
      const seen = await untilPod(host, name, name, `shows ${reason}`, (one) => words.test(troubleOf(one)), left());
      expect(seen.status?.phase).toBe('Pending');
    };
    const allShown = async (): Promise<void> => {
      await Promise.all(all.map(shown));
      expect(Date.now() - began).toBeLessThan(SHOWN_MS + 1_000);
      await Promise.all(all.map((one) => untilEvent(one, left())));
    };
    await Promise.all([allShown(), openShown()]);
  });

  /** Only before the webhook's time is up does it say so: whoever sees it did not wait for that. */
  async function openShown(): Promise<void> {
    const { name, words, reason } = open;
    const isSaid = ({ status }: Pod): boolean => words.test(status?.message ?? '');
    const { status } = await untilPod(host, name, name, 'says that there is no answer', isSaid, { intervalMs: 50 });
    expect(status).toMatchObject({ phase: 'Pending', reason });
    expect(status?.message).toContain('transient');
    const mirrored = status?.conditions?.find(({ type }) => type === MIRRORED_CONDITION);
    expect(mirrored).toMatchObject({ status: 'False', reason, message: status?.message });
    await untilEvent(open, { timeoutMs: 20_000 });
  }

  test('no answer for ten seconds: then it says what became of that', async () => {
    const { name, reason } = open;
    const isSaid = ({ status }: Pod): boolean => inTheEnd.test(status?.message ?? '');
    const { status } = await untilPod(host, name, name, 'says what timed out', isSaid);
    expect(status).toMatchObject({ phase: 'Pending', reason });
    expect(await readPod(member, name, name)).toBeUndefined();
  });

  test.each(refused)('$name: refused by the API server', async ({ name, reason, words }) => {
    const { status } = await getPod(host, name, name);
    expect(status?.phase).toBe('Pending');
    expect(status?.reason).toBe(reason);
    expect(status?.message).toMatch(words);
    expect(status?.message).toContain('luster "east"');
    expect(status?.message).toMatch(/tried again by itself/);
    expect(status?.conditions?.find(({ type }) => type === MIRRORED_CONDITION)).toMatchObject({
      status: 'False',
      reason,
      message: status?.message,
    });
    expect(await readPod(member, name, name)).toBeUndefined();
    expect(await kubectl(host, ['get', 'pod', name, '-n', name])).toContain(reason);
    expect(await kubectl(host, ['describe', 'pod', name, '-n', name])).toMatch(words);
  });

  test('unschedulable there: its own condition, and the host stays bound', async () => {
    const seen = await getPod(host, 'unschedulable', 'unschedulable');
    expect(seen.status).toMatchObject({ phase: 'Pending', reason: 'MemberUnschedulable' });
    expect(condition(seen, MEMBER_SCHEDULED_CONDITION)).toMatchObject({ status: 'False', reason: 'Unschedulable' });
    expect(condition(seen, 'PodScheduled')?.status).toBe('True');
    expect(seen.status?.message).toContain('cluster "east"');
  });

  test.each(stuck.slice(0, 2))('$name: the kubelet of the member says why', async ({ name }) => {
    const seen = await getPod(host, name, name);
    expect(seen.status?.phase).toBe('Pending');
    expect(seen.status?.containerStatuses?.[0]?.state?.waiting?.reason).toMatch(
      /^(ErrImageNeverPull|ErrImagePull|ImagePullBackOff)$/,
    );
    await expectMirrored(host, member, name, name);
  });

  test('nothing loops: tries get rarer, and the host is told once', async () => {
    await sleep(Math.max(0, WATCHED_MS - (Date.now() - began)));
    const below = writesOf(member, created);
    const above = writesOf(host, created);
    for (const { name } of refused) {
      const tries = below.filter(({ verb, objectRef }) => verb === 'create' && objectRef?.namespace === name);
      expect(tries.length, name).toBeGreaterThanOrEqual(2);
      expect(tries.length, tries.map(describeWrite).join('\n')).toBeLessThanOrEqual(10);
    }
    // Each try of these takes ten seconds.
    const slow = below.filter(({ verb, objectRef }) => verb === 'create' && objectRef?.namespace === open.name);
    expect(slow.length, slow.map(describeWrite).join('\n')).toBeLessThanOrEqual(4);
    for (const { name } of stuck) {
      const writes = below.filter(({ objectRef }) => objectRef?.namespace === name && objectRef.resource === 'pods');
      expect(writes.map(describeWrite), name).toEqual([expect.stringMatching(/^create pods /)]);
    }
    for (const { name } of [...all, open]) {
      const writes = above.filter(({ objectRef }) => objectRef?.namespace === name);
      const patches = writes.filter(({ objectRef }) => objectRef?.resource === 'pods');
      const events = writes.filter(({ objectRef }) => objectRef?.resource === 'events');
      // An image that cannot be pulled goes back and forth between two reasons; its kubelet sets that pace.
      expect(patches.length, patches.map(describeWrite).join('\n')).toBeLessThanOrEqual(name === 'bad-image' ? 8 : 3);
      // The kubelet of the member repeats itself, and each of its Events is counted on in the one that is there.
      const most = stuck.some((one) => one.name === name) ? 12 : 4;
      expect(events.length, events.map(describeWrite).join('\n')).toBeLessThanOrEqual(most);
    }
    for (const { name } of all) expect((await getPod(host, name, name)).status?.phase).toBe('Pending');
  });

  test('each starts once its cause is gone, and nothing of it is left on the pod', async () => {
    await Promise.all([...all, open].map(({ relieve }) => relieve()));
    await untilGone(member, 'default', 'owner');
    const started = async ({ name }: Case): Promise<void> => {
      const running = await untilRunning(host, name, name, { timeoutMs: NEXT_TRY_MS });
      expect(running.status?.reason, name).toBeUndefined();
      expect(running.status?.message, name).toBeUndefined();
      expect(condition(running, MIRRORED_CONDITION)?.status, name).toBe('True');
      expect(condition(running, MEMBER_SCHEDULED_CONDITION), name).toBeUndefined();
    };
    await Promise.all([...all, open].map(started));
  });

  test('a privileged pod where nobody set a level is told of, until somebody says that it is meant', async () => {
    const expression = '{.status.conditions[?(@.type=="PodSecuritySet")]}';
    const said = async (words: RegExp): Promise<void> => {
      await until(`PodSecuritySet says ${String(words)}`, async () =>
        words.test(await kubectl(host, ['get', 'membercluster', 'east', '-o', `jsonpath=${expression}`])),
      );
    };
    await said(/1 pod of the host has power over its node \(privileged\).*: restricted \(1\).*"status":"False"/);
    await kubectl(member, ['label', 'namespace', 'restricted', 'pod-security.kubernetes.io/enforce=privileged']);
    await said(/"reason":"LevelsSet","status":"True"/);
  });
});

/** Everything a pod says about what is wrong with it. */
function troubleOf({ status }: Pod): string {
  const waiting = (status?.containerStatuses ?? []).map(({ state }) => state?.waiting?.message);
  return [status?.message, ...(status?.conditions ?? []).map(({ message }) => message), ...waiting].join('\n');
}
