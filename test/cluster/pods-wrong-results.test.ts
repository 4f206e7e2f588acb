import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { addMember, installSpillway, startSpillway, waitForNode, waitReady } from '../../hack/spillway.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { ALLOW_HOST_LABEL, MIRRORED_CONDITION, VIRTUAL_NODE_TAINT } from '../../src/api/marks.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import {
  condition,
  describeWrite,
  eventsOf,
  exitCodeOf,
  expectMirrored,
  type Fields,
  getPod,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podsOf,
  podSpec,
  read,
  readPod,
  runPod,
  serviceAccountIn,
  shell,
  untilGone,
  untilPod,
  untilRunning,
  withoutManagedFields,
  writesOf,
} from '../fixtures/live-pods.ts';
import type { Fault, FaultProxy } from '../fixtures/fault-proxy.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/** The longest that anything may take on a busy machine that takes a moment on an idle one, in ms: less than 30 s. */
const PROMPT_MS = 20_000;

/**
 * What earlier programs of this kind were measured to get wrong, each with a test that shows it right. What belongs to
 * other parts (a mutating webhook, a descheduler, a scheduler, Endpoints) is not in here.
 */
describe.runIf(kubelets.ok)('known wrong results of virtual nodes', () => {
  let topology: Topology;
  let host: Cluster;
  /** A real kubelet, virtual node `real`. */
  let real: Cluster;
  /** kwok; virtual nodes `played-burst` and `played-size`, reached through a proxy. */
  let played: Cluster;
  let proxy: FaultProxy;

  beforeAll(async () => {
    topology = await startTopology({
      members: [
        { name: 'real', kubelet: 'real-1' },
        {
          name: 'played',
          kwok: { nodes: 2, prefix: 'burst', labels: { pool: 'burst' } },
          // Nodes without a kubelet are made by hand below; nobody shall declare them dead meanwhile.
          cluster: { controllerManagerFlags: { 'node-monitor-grace-period': '30m' } },
          unregistered: true,
        },
      ],
    });
    host = topology.host;
    real = topology.member('real').cluster;
    played = topology.member('played').cluster;
    proxy = await addProxiedMember(host, played, {
      spec: {
        probe: { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 },
        virtualNodes: [
          { name: 'burst', nodeSelector: { pool: 'burst' } },
          { name: 'size', nodeSelector: { pool: 'size' } },
        ],
      },
    });
    await waitForNode(host, 'played-burst');
  });

  afterAll(async () => {
    await topology?.close();
    await proxy?.close();
  });

  const idle = (name: string, namespace: string, node: string, more: Fields = {}, metadata: Fields = {}): Fields =>
    pod(name, namespace, podSpec([shell(IDLE)], { ...onNode(node), ...more }), metadata);
  const numbered = (count: number, prefix: string): string[] =>
    Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

  async function allocatable(node: string, resource: string, of: Cluster = host): Promise<string | undefined> {
    const amount = (await read<Node>(of, `/api/v1/nodes/${node}`))?.status?.allocatable?.[resource];
    return amount === undefined ? undefined : String(amount);
  }

  async function untilAllocatable(node: string, resource: string, value: string, of: Cluster = host): Promise<void> {
    let seen: string | undefined;
    await until(
      `node ${node} of ${of.name} offers ${value} ${resource}`,
      async () => (seen = await allocatable(node, resource, of)) === value,
    ).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}; it offers ${seen}`);
    });
  }

  async function restartProgram(meanwhile: () => Promise<void>): Promise<void> {
    const { process } = topology.spillway;
    await process.stop('SIGTERM', 12_000);
    await meanwhile();
    process.restart();
    await waitReady(topology.spillway);
  }

  test('1: variables with the addresses of pod and host are filled in, and the pod starts', async () => {
    const ns = await newNamespace(host, 'addresses');
    const variable = (name: string, fieldPath: string): Fields => ({ name, valueFrom: { fieldRef: { fieldPath } } });
    const env = [variable('POD', 'status.podIP'), variable('PODS', 'status.podIPs'), variable('HOST', 'status.hostIP')];
    const script = `echo "$POD $PODS $HOST"; ${IDLE}`;
    const above = await runPod(host, pod('asks', ns, podSpec([shell(script, { env })], onNode('real'))));
    const { podIP, hostIP } = above.status ?? {};
    expect(await kubectl(host, ['logs', 'asks', '-n', ns])).toBe(`${podIP} ${podIP} ${hostIP}\n`);
  });

  /** Nothing of the member `played` can be reached any more, and that is known. */
  async function untilLost(): Promise<void> {
    await until('the member counts as lost', async () => {
      const node = await read<Node>(host, '/api/v1/nodes/played-burst');
      return node?.spec?.taints?.some(({ key }) => key === 'spillway.dev/member-unreachable') === true;
    });
  }

  test('2: what was asked for in an outage is done after it, and once, however often it failed', async () => {
    const ns = await newNamespace(host, 'outage');
    const pods = `/api/v1/namespaces/${ns}/pods`;
    await host.apply(['stays', 'leaving'].map((name) => idle(name, ns, 'played-burst')));
    for (const name of ['stays', 'leaving']) await untilRunning(host, ns, name);
    const { uid } = (await getPod(played, ns, 'stays')).metadata;
    const since = Date.now();
    const fault: Fault = { kind: 'status', code: 503, reason: 'ServiceUnavailable' };
    const creates = proxy.inject(fault, ({ method, path }) => method === 'POST' && path === pods);
    const deletes = proxy.inject(fault, ({ method, path }) => method === 'DELETE' && path === `${pods}/leaving`);
    try {
      await host.apply([idle('coming', ns, 'played-burst')]);
      await kubectl(host, ['delete', 'pod', 'leaving', '-n', ns, '--wait=false']);
      let turn = 0;
      await until('each has failed more often than twenty times', async () => {
        // Tries get rarer and rarer, unless somebody changes the pod.
        const labels = { turn: String(turn++) };
        for (const name of ['coming', 'leaving'])
          await host.api.call('PATCH', `${pods}/${name}`, { metadata: { labels } });
        return creates.hits > 20 && deletes.hits > 20;
      });
      proxy.inject({ kind: 'reset', when: 'before' });
      proxy.resetConnections();
      await untilLost();
      for (const { metadata, status } of await podsOf(host, ns)) {
        expect(['Pending', 'Running'], metadata.name).toContain(status?.phase);
      }
    } finally {
      proxy.clear();
    }
    await untilRunning(host, ns, 'coming');
    await untilGone(host, ns, 'leaving');
    expect((await podsOf(played, ns)).map(({ metadata }) => metadata.name)).toEqual(['coming', 'stays']);
    expect((await getPod(played, ns, 'stays')).metadata.uid).toBe(uid);
    const done = writesOf(played, since).filter(
      ({ verb, objectRef }) => objectRef?.resource === 'pods' && objectRef.namespace === ns && verb !== 'patch',
    );
    expect(done.map(({ verb, responseStatus }) => `${verb} ${responseStatus?.code ?? 0}`).sort()).toEqual([
      'create 201',
      'delete 200',
    ]);
  });

  test('a member that answers after 30 s keeps nobody else waiting, not even at a start', async () => {
    const ns = await newNamespace(host, 'prompt');
    const [leaving, coming] = [numbered(5, 'leaving'), numbered(20, 'coming')];
    await host.apply(leaving.map((name) => idle(name, ns, 'played-burst')));
    for (const name of leaving) await untilRunning(host, ns, name);
    /** The whole life of a pod of the other member. */
    const promptly = async (name: string): Promise<void> => {
      const timed = async (step: string, act: () => Promise<unknown>): Promise<void> => {
        const began = performance.now();
        await act();
        expect(performance.now() - began, `${name}: ${step}`).toBeLessThan(PROMPT_MS);
      };
      const of = ['-n', ns, name];
      await timed('to Running', () =>
        runPod(host, pod(name, ns, podSpec([shell(`echo here; ${IDLE}`)], onNode('real')))),
      );
      await timed('exec', async () => {
        expect(await kubectl(host, ['exec', ...of, '--', 'echo', 'there'])).toBe('there\n');
      });
      await timed('logs', () =>
        until('its line is there', async () => (await kubectl(host, ['logs', ...of])) === 'here\n'),
      );
      await timed('deletion', async () => {
        await kubectl(host, ['delete', 'pod', ...of]);
        await untilGone(real, ns, name);
      });
    };
    const slow = proxy.inject({ kind: 'slow', ms: 30_000 });
    try {
      await host.apply(coming.map((name) => idle(name, ns, 'played-burst')));
      await kubectl(host, ['delete', 'pod', ...leaving, '-n', ns, '--wait=false']);
      await slow.hit(10);
      await promptly('while-requests-hang');
      await untilLost();
      proxy.resetConnections();
      await restartProgram(() => Promise.resolve());
      await promptly('after-a-restart');
    } finally {
      proxy.clear();
      proxy.resetConnections();
    }
    for (const name of coming) await untilRunning(host, ns, name, { timeoutMs: 60_000 });
    for (const name of leaving) await untilGone(host, ns, name, { timeoutMs: 60_000 });
    expect((await podsOf(played, ns)).map(({ metadata }) => metadata.name)).toEqual(coming.toSorted());
  });

  test('4: a node that comes, flaps, is cordoned and goes is counted as it is, never twice', async () => {
    const name = (index: number): string => `size-${index}`;
    const add = (index: number): Promise<unknown> =>
      played.api.call('POST', '/api/v1/nodes', {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: name(index), labels: { pool: 'size', 'kubernetes.io/hostname': name(index) } },
        status: { ...status('False'), allocatable: size, capacity: size },
      });
    const size = { cpu: '100', memory: '100Gi', pods: '100' };
    const status = (ready: string): Fields => ({
      conditions: [
        { type: 'Ready', status: ready, reason: 'ByHand', message: '', lastTransitionTime: new Date().toISOString() },
      ],
    });
    const turn = (index: number, ready: 'True' | 'False'): Promise<unknown> =>
      played.api.call('PATCH', `/api/v1/nodes/${name(index)}/status`, { status: status(ready) });
    const offered: string[] = [];
    const nowOffers = async (cpu: string): Promise<void> => {
      await untilAllocatable('played-size', 'cpu', cpu);
      offered.push(cpu);
    };

    await add(0);
    await turn(0, 'True');
    await nowOffers('100');
    await add(1);
    await turn(1, 'True');
    await nowOffers('200');
    await turn(1, 'False');
    await nowOffers('100');
    await turn(1, 'True');
    await nowOffers('200');
    await kubectl(played, ['cordon', name(1)]);
    await nowOffers('100');
    await turn(1, 'False');
    await kubectl(played, ['delete', 'node', name(1)]);
    // Nothing may change any more: give a wrong subtraction the time to show. Figures are written every few seconds.
    await sleep(6_000);
    await nowOffers('100');
    await turn(0, 'False');
    await nowOffers('0');
    await kubectl(played, ['delete', 'node', name(0)]);
    await sleep(6_000);
    await nowOffers('0');
    expect(offered).toEqual(['100', '200', '100', '200', '100', '100', '0', '0']);
    const refused = host
      .auditEvents()
      .filter(
        ({ objectRef, responseStatus }) => objectRef?.resource === 'nodes' && (responseStatus?.code ?? 0) === 422,
      );
    expect(refused).toEqual([]);
  });

  test('3 and 5: what ended while the program was down is told, and its own pods are not subtracted after the start', async () => {
    const ns = await newNamespace(host, 'down');
    const script = 'until [ -e /tmp/go ]; do sleep 0.1; done; exit 17';
    const requests = { resources: { requests: { cpu: '100m', memory: '64Mi' } } };
    await host.apply([
      pod('ends', ns, podSpec([shell(script, requests)], { ...onNode('real'), restartPolicy: 'Never' })),
      pod('stays', ns, podSpec([shell(IDLE, requests)], onNode('real'))),
    ]);
    for (const name of ['ends', 'stays']) await untilRunning(host, ns, name);
    const whole = (await read<Node>(real, '/api/v1/nodes/real-1'))?.status?.allocatable;
    for (const resource of ['cpu', 'pods']) await untilAllocatable('real', resource, String(whole?.[resource]));
    await restartProgram(async () => {
      await kubectl(real, ['exec', '-n', ns, 'ends', '--', 'touch', '/tmp/go']);
      await untilPod(real, ns, 'ends', 'has failed', (one) => one.status?.phase === 'Failed');
    });
    const ended = await untilPod(host, ns, 'ends', 'has failed', (one) => one.status?.phase === 'Failed');
    expect(exitCodeOf(ended)).toBe(17);
    for (const resource of ['cpu', 'pods']) await untilAllocatable('real', resource, String(whole?.[resource]));
    // Others' pods do take room.
    const guest = pod('guest', 'default', { containers: [shell(IDLE, { resources: { requests: { cpu: '500m' } } })] });
    await real.apply([guest]);
    await untilAllocatable('real', 'pods', String(Number(whole?.['pods']) - 1));
    await untilAllocatable('real', 'cpu', `${Number(whole?.['cpu']) * 1000 - 500}m`);
    await kubectl(real, ['delete', 'pod', 'guest', '--grace-period=0', '--force']);
    await untilAllocatable('real', 'cpu', String(whole?.['cpu']));
  });

  test('6: two virtual nodes of one member and two hosts on it leave each other alone', async () => {
    const ns = await newNamespace(host, 'shared');
    await played.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ns, labels: { [ALLOW_HOST_LABEL]: 'any' } } },
    ]);
    await serviceAccountIn(played, ns);
    const names = numbered(20, 'first');
    await host.apply(names.map((name) => idle(name, ns, 'played-burst')));
    await until('the pods of the first host run', async () => (await podsOf(host, ns)).every(isReady));
    const before = (await podsOf(played, ns)).map(withoutManagedFields);
    expect(before).toHaveLength(20);

    const other = await startCluster(topology.workspace, { name: 'other', serviceCidr: '10.120.0.0/16' });
    await installSpillway(other);
    const second = await startSpillway(other);
    await addMember(other, played);
    await waitForNode(other, 'played');
    await newNamespace(other, ns);
    await other.apply([idle('second-0', ns, 'played'), idle('first-0', ns, 'played')]);
    await untilRunning(other, ns, 'second-0');
    const taken = await untilPod(other, ns, 'first-0', 'is held', (one) => one.status?.reason === 'NameTaken');
    expect(taken.status?.phase).toBe('Pending');
    await kubectl(other, ['delete', 'pod', 'second-0', 'first-0', '-n', ns]);
    await untilGone(played, ns, 'second-0');
    await second.process.stop();
    second.process.restart();
    await waitReady(second);
    await other.apply([idle('second-1', ns, 'played')]);
    await untilRunning(other, ns, 'second-1');

    const after = (await podsOf(played, ns, 'spillway.dev/node=played-burst')).map(withoutManagedFields);
    expect(after).toEqual(before);
    await second.process.stop();
    await other.stop();
  });

  describe('7: ConfigMaps and Secrets', () => {
    const ns = 'objects';
    const settings = (data: Fields): Fields => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings', namespace: ns },
      data,
    });
    const path = `/api/v1/namespaces/${ns}/configmaps/settings`;
    const uses = { envFrom: [{ configMapRef: { name: 'settings' } }, { secretRef: { name: 'login' } }] };

    test('changes reach the member', async () => {
      await newNamespace(host, ns);
      const login = (password: string): Fields => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'login', namespace: ns },
        stringData: { password },
      });
      await host.apply([settings({ a: '1' }), login('old')]);
      await runPod(host, pod('uses', ns, podSpec([shell(IDLE, uses)], onNode('played-burst'))));
      await host.apply([settings({ a: '2' }), login('new')]);
      await until(
        'the copies are new',
        async () => {
          const copy = await read<{ data: Fields }>(played, path);
          const secret = await read<{ data: Fields }>(played, `/api/v1/namespaces/${ns}/secrets/login`);
          return copy?.data['a'] === '2' && secret?.data['password'] === btoa('new');
        },
        { timeoutMs: PROMPT_MS },
      );
      await kubectl(host, ['delete', 'pod', 'uses', '-n', ns]);
      await until('the copies are gone', async () => (await read(played, path)) === undefined);
    });

    test("the member's own object of that name is neither overwritten nor deleted", async () => {
      await kubectl(played, ['label', 'namespace', ns, `${ALLOW_HOST_LABEL}=any`, '--overwrite']);
      await played.apply([settings({ owner: 'member' })]);
      const before = await read<{ metadata: object }>(played, path);
      await host.apply([pod('uses', ns, podSpec([shell(IDLE, uses)], onNode('played-burst')))]);
      const held = await untilPod(host, ns, 'uses', 'is held', (one) => one.status?.reason === 'ConfigMapNameTaken');
      expect(held.status?.message).toContain('"played"');
      await host.apply([settings({ a: '3' })]);
      await restartProgram(() => Promise.resolve());
      await host.apply([settings({ a: '4' })]);
      await kubectl(host, ['delete', 'configmap', 'settings', '-n', ns]);
      await untilPod(host, ns, 'uses', 'says so', (one) => one.status?.reason === 'MandatoryConfigMapNotFound');
      expect(await read(played, path)).toEqual(before);
      // The owner takes it away: now there is room for the host's.
      await host.apply([settings({ a: '5' })]);
      await kubectl(played, ['delete', 'configmap', 'settings', '-n', ns]);
      await untilRunning(host, ns, 'uses', { timeoutMs: 90_000 });
      await kubectl(host, ['delete', 'pod', 'uses', '-n', ns]);
    });

    test("the member's CA stays its own", async () => {
      const volumes = [{ name: 'ca', configMap: { name: 'kube-root-ca.crt' } }];
      const container = shell(IDLE, { volumeMounts: [{ name: 'ca', mountPath: '/ca' }] });
      await runPod(host, pod('reads-ca', ns, podSpec([container], { ...onNode('played-burst'), volumes })));
      const published = await read<{ data: Record<string, string> }>(
        played,
        `/api/v1/namespaces/${ns}/configmaps/kube-root-ca.crt`,
      );
      expect(published?.data['ca.crt']?.trim()).toBe(played.caPem.trim());
      expect(played.caPem).not.toBe(host.caPem);
    });
  });

  describe('9: fields younger than the program', () => {
    const ns = 'fields';

    test('arrive in the member as they are', async () => {
      await newNamespace(host, ns);
      const grpc = { grpc: { port: 9000, service: 'health' }, periodSeconds: 5 };
      const spec = podSpec(
        [shell(IDLE, { livenessProbe: grpc, resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }] })],
        {
          ...onNode('played-burst'),
          hostUsers: false,
          securityContext: { seccompProfile: { type: 'RuntimeDefault' }, supplementalGroupsPolicy: 'Strict' },
          initContainers: [shell(IDLE, { name: 'sidecar', restartPolicy: 'Always' })],
        },
      );
      await runPod(host, pod('modern', ns, spec));
      const below = await getPod(played, ns, 'modern');
      expect(below.spec).toMatchObject({
        hostUsers: false,
        securityContext: { seccompProfile: { type: 'RuntimeDefault' }, supplementalGroupsPolicy: 'Strict' },
        initContainers: [{ name: 'sidecar', restartPolicy: 'Always' }],
        containers: [
          {
            livenessProbe: grpc,
            resizePolicy: expect.arrayContaining([{ resourceName: 'cpu', restartPolicy: 'NotRequired' }]),
          },
        ],
      });
    });

    test('gates are for the host: the pod starts when they are taken off', async () => {
      await host.apply([idle('gated', ns, 'played-burst', { schedulingGates: [{ name: 'example.com/wait' }] })]);
      await untilPod(host, ns, 'gated', 'waits', (one) => condition(one, 'PodScheduled')?.reason === 'SchedulingGated');
      expect(await readPod(played, ns, 'gated')).toBeUndefined();
      await kubectl(host, [
        'patch',
        'pod',
        'gated',
        '-n',
        ns,
        '--type=json',
        '-p',
        '[{"op":"remove","path":"/spec/schedulingGates"}]',
      ]);
      await untilRunning(host, ns, 'gated');
      expect((await getPod(played, ns, 'gated')).spec).not.toHaveProperty('schedulingGates');
    });
  });

  test('10: pods go from the host when they are gone in the member, and nothing is refused on the way', async () => {
    const ns = await newNamespace(host, 'going');
    const names = numbered(10, 'going');
    await host.apply(names.map((name) => idle(name, ns, 'played-burst', { terminationGracePeriodSeconds: 30 })));
    await until('all run', async () => (await podsOf(host, ns)).every(isReady));
    // A status that is on its way when a user deletes the pod is refused by right.
    await Promise.all(names.map(async (name) => await expectMirrored(host, played, ns, name)));
    const since = Date.now();
    const deleting = kubectl(host, ['delete', 'pod', ...names, '-n', ns, '--wait=false']);
    const late = async (name: string): Promise<number> => {
      const [below, above] = await Promise.all([untilGone(played, ns, name), untilGone(host, ns, name)]);
      return above - below;
    };
    const delays = (await Promise.all(names.map(late))).sort((a, b) => a - b);
    await deleting;
    // Not after their grace.
    expect(delays[4]).toBeLessThan(5_000);
    expect(delays.at(-1)).toBeLessThan(10_000);
    const refused = writesOf(host, since).filter(({ responseStatus }) => (responseStatus?.code ?? 0) >= 400);
    expect(refused.map(describeWrite).join('\n')).toBe('');
  });

  test('11: a burst into a new namespace over a slow line: all run, none is called failed', async () => {
    const ns = await newNamespace(host, 'far');
    const far = proxy.inject({ kind: 'slow', ms: 50 });
    try {
      const names = numbered(100, 'burst');
      const seen = new Set<string>();
      await host.apply(names.map((name) => idle(name, ns, 'played-burst', { restartPolicy: 'Never' })));
      await until(
        'all 100 run',
        async () => {
          const pods = await podsOf(host, ns);
          for (const { status } of pods) seen.add(status?.phase ?? '');
          return pods.length === 100 && pods.every(isReady);
        },
        { timeoutMs: 60_000 },
      );
      expect([...seen]).not.toContain('Failed');
      expect(await podsOf(played, ns)).toHaveLength(100);
    } finally {
      far.remove();
    }
  });

  describe('12: nothing crashes the program', () => {
    const ns = 'odd';
    beforeAll(async () => {
      await newNamespace(host, ns);
      // The member has it as soon as a pod is there.
      await runPod(host, idle('first', ns, 'played-burst'));
    });

    test('volumes without the secret they may have', async () => {
      const volumes = [
        { name: 'a', cephfs: { monitors: ['10.0.0.1'] } },
        { name: 'b', rbd: { monitors: ['10.0.0.1'], image: 'image' } },
        { name: 'c', cinder: { volumeID: 'id' } },
        { name: 'd', flexVolume: { driver: 'example.com/driver' } },
        { name: 'e', iscsi: { targetPortal: '10.0.0.1', iqn: 'iqn.2001-04.com.example:storage', lun: 0 } },
      ];
      await runPod(host, idle('volumes', ns, 'played-burst', { volumes }));
      const names = (await getPod(played, ns, 'volumes')).spec.volumes?.map(({ name }) => name) ?? [];
      expect(names.filter((name) => !name.startsWith('kube-api-access-'))).toEqual(['a', 'b', 'c', 'd', 'e']);
    });

    test("a container that the member's admission adds", async () => {
      const injected = { name: 'injected', image: 'example.invalid/sidecar:1' };
      await played.apply([
        {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'MutatingAdmissionPolicy',
          metadata: { name: 'injector' },
          spec: {
            matchConstraints: {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': ns } },
              resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
            },
            failurePolicy: 'Fail',
            reinvocationPolicy: 'Never',
            mutations: [
              {
                patchType: 'ApplyConfiguration',
                applyConfiguration: {
                  expression: `Object{spec: Object.spec{containers: [Object.spec.containers{name: "${injected.name}", image: "${injected.image}"}]}}`,
                },
              },
            ],
          },
        },
        {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'MutatingAdmissionPolicyBinding',
          metadata: { name: 'injector' },
          spec: { policyName: 'injector' },
        },
      ]);
      await until('the member adds its container', async () => {
        const trial = pod('trial', ns, { containers: [shell(IDLE)] });
        const input = JSON.stringify(trial);
        const { stdout } = await played.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input });
        return stdout.includes(injected.image);
      });
      await runPod(host, idle('injected', ns, 'played-burst', {}, { labels: { v: '1' } }));
      const before = await getPod(played, ns, 'injected');
      expect(before.spec.containers.map(({ name }) => name).sort()).toEqual(['injected', 'main']);
      await kubectl(host, ['label', 'pod', 'injected', '-n', ns, 'v=2', '--overwrite']);
      await kubectl(host, ['set', 'image', 'pod/injected', '-n', ns, 'main=example.invalid/other:2']);
      const after = await untilPod(
        played,
        ns,
        'injected',
        'has the changes',
        ({ metadata, spec }) =>
          metadata.labels?.['v'] === '2' && spec.containers.some(({ image }) => image === 'example.invalid/other:2'),
      );
      expect(after.spec.containers.find(({ name }) => name === 'injected')).toMatchObject(injected);
      expect(after.metadata.uid).toBe(before.metadata.uid);
      expect(isReady(await getPod(host, ns, 'injected'))).toBe(true);
      await kubectl(played, ['delete', 'mutatingadmissionpolicybinding', 'injector']);
    });
  });

  test('13: logs --since and --since-time', async () => {
    const ns = await newNamespace(host, 'since');
    const script = `echo early; until [ -e /tmp/go ]; do sleep 0.1; done; echo late; ${IDLE}`;
    await runPod(host, pod('talks', ns, podSpec([shell(script)], onNode('real'))));
    await until(
      'the first line is there',
      async () => (await kubectl(host, ['logs', 'talks', '-n', ns])) === 'early\n',
    );
    await sleep(5_000);
    const between = new Date(Date.now() - 1_000).toISOString().replace(/\.\d+Z$/, 'Z');
    const before = Date.now();
    await kubectl(host, ['exec', 'talks', '-n', ns, '--', 'touch', '/tmp/go']);
    await until(
      'the second one too',
      async () => (await kubectl(host, ['logs', 'talks', '-n', ns])) === 'early\nlate\n',
    );
    expect(await kubectl(host, ['logs', 'talks', '-n', ns, `--since-time=${between}`])).toBe('late\n');
    // Up to 4 s before the second line was written: kubectl takes its time until it asks, too.
    const seconds = Math.ceil((Date.now() - before) / 1_000) + 3;
    expect(await kubectl(host, ['logs', 'talks', '-n', ns, `--since=${seconds}s`])).toBe('late\n');
    expect(await kubectl(host, ['logs', 'talks', '-n', ns, '--since=1h'])).toBe('early\nlate\n');
  });

  describe('14: whose is what', () => {
    const ns = 'owners';

    test("a member's own pod of that name is not adopted, changed or deleted", async () => {
      await newNamespace(host, ns);
      await played.apply([
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ns, labels: { [ALLOW_HOST_LABEL]: 'any' } } },
      ]);
      await serviceAccountIn(played, ns);
      await played.apply([pod('mine', ns, { containers: [shell(IDLE)] })]);
      await untilRunning(played, ns, 'mine');
      const before = await getPod(played, ns, 'mine');
      await host.apply([idle('mine', ns, 'played-burst', {}, { labels: { from: 'host' } })]);
      const held = await untilPod(host, ns, 'mine', 'is held', (one) => one.status?.reason === 'NameTaken');
      expect(held.status).toMatchObject({ phase: 'Pending' });
      expect(condition(held, MIRRORED_CONDITION)?.status).toBe('False');
      // Nor shown as the host's.
      for (const args of [
        ['logs', 'mine'],
        ['exec', 'mine', '--', 'true'],
      ]) {
        const { code, stderr } = await host.kubectl(['-n', ns, ...args]);
        expect([args[0], code === 0, stderr]).toEqual([args[0], false, expect.stringContaining('has no running copy')]);
      }
      await kubectl(host, ['label', 'pod', 'mine', '-n', ns, 'more=labels']);
      await kubectl(host, ['delete', 'pod', 'mine', '-n', ns]);
      expect(await getPod(played, ns, 'mine')).toEqual(before);
      // And the name is free for the host once its owner has no use for it.
      await host.apply([idle('mine', ns, 'played-burst')]);
      await untilPod(host, ns, 'mine', 'is held', (one) => one.status?.reason === 'NameTaken');
      await kubectl(played, ['delete', 'pod', 'mine', '-n', ns]);
      await untilRunning(host, ns, 'mine', { timeoutMs: 90_000 });
    });

    test('edits of the host pod are not lost to a status write', async () => {
      await host.apply([idle('edited', ns, 'played-burst')]);
      const before = await getPod(host, ns, 'edited');
      const keys = numbered(20, 'edit');
      for (const key of keys) {
        await host.api.call('PATCH', `/api/v1/namespaces/${ns}/pods/edited`, { metadata: { labels: { [key]: 'x' } } });
      }
      const after = await untilRunning(host, ns, 'edited');
      expect(Object.keys(after.metadata.labels ?? {}).sort()).toEqual(keys.sort());
      const { nodeName: _node, ...spec } = after.spec as Pod['spec'] & Fields;
      const { nodeName: _before, ...wanted } = before.spec as Pod['spec'] & Fields;
      expect(spec).toEqual(wanted);
    });

    test('somebody who keeps changing the status is answered ever more rarely, and news come at once all the same', async () => {
      await runPod(host, idle('fought', ns, 'played-burst'));
      const status = `/api/v1/namespaces/${ns}/pods/fought/status`;
      const since = Date.now();
      let theirs = 0;
      while (Date.now() < since + 8_000 || theirs < 30) {
        await host.api.call('PATCH', status, { status: { message: `theirs ${theirs++}` } });
        await sleep(50);
      }
      const ours = writesOf(host, since).filter(
        ({ objectRef }) => objectRef?.name === 'fought' && objectRef.resource === 'pods',
      );
      // Six at once, then after 1, 2, 4, 8 s and so on.
      expect(ours.length).toBeGreaterThan(0);
      expect(ours.length).toBeLessThan(6 + Math.log2((Date.now() - since) / 1000) + 2);
      const told = await until('the user is told', async () =>
        (await eventsOf(host, ns, 'fought')).find(({ reason }) => reason === 'StatusOverwritten'),
      );
      expect(told.count).toBe(1);
      const news = { type: 'example.com/News', status: 'True' };
      const { conditions = [] } = (await getPod(played, ns, 'fought')).status ?? {};
      await played.api.call('PATCH', status, { status: { conditions: [...conditions, news] } });
      const after = await untilPod(
        host,
        ns,
        'fought',
        'shows the news',
        (one) => condition(one, news.type) !== undefined,
      );
      expect(after.status?.message).toBeUndefined();
    });

    test('finalizers stay where they are', async () => {
      await runPod(host, idle('kept', ns, 'played-burst', {}, { finalizers: ['example.com/keep'] }));
      expect((await getPod(played, ns, 'kept')).metadata.finalizers).toBeUndefined();
      await kubectl(host, ['delete', 'pod', 'kept', '-n', ns, '--wait=false']);
      await untilGone(played, ns, 'kept');
      const kept = await untilPod(host, ns, 'kept', 'has ended', (one) =>
        /Failed|Succeeded/.test(one.status?.phase ?? ''),
      );
      expect(kept.metadata.finalizers).toEqual(['example.com/keep']);
      expect(exitCodeOf(kept)).not.toBe(0);
      await kubectl(host, ['patch', 'pod', 'kept', '-n', ns, '-p', '{"metadata":{"finalizers":null}}']);
      await untilGone(host, ns, 'kept');
    });
  });

  test('15: the tolerations of host pods are theirs: nothing is added that keeps them on a dead node', async () => {
    const ns = await newNamespace(host, 'tolerant');
    const { spec } = await runPod(host, idle('plain', ns, 'played-burst'));
    expect(spec.tolerations?.map(({ key, tolerationSeconds }) => [key, tolerationSeconds])).toEqual([
      [VIRTUAL_NODE_TAINT, undefined],
      ['node.kubernetes.io/not-ready', 300],
      ['node.kubernetes.io/unreachable', 300],
    ]);
  });

  test("18: no token of either cluster is in the pod, and the host's accounts and priorities need not exist below", async () => {
    const ns = await newNamespace(host, 'identity');
    await host.apply([
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'builder', namespace: ns } },
      { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'urgent' }, value: 1000 },
    ]);
    const more = { ...onNode('real'), serviceAccountName: 'builder', priorityClassName: 'urgent' };
    const above = await runPod(host, pod('worker', ns, podSpec([shell(IDLE)], more)));
    expect(above.spec.priority).toBe(1000);
    const below = await getPod(real, ns, 'worker');
    expect(below.spec.serviceAccountName).toBe('default');
    expect(JSON.stringify(below.spec.volumes)).not.toContain('serviceAccountToken');
    const place = '/var/run/secrets/kubernetes.io/serviceaccount';
    const look = await host.kubectl(['exec', 'worker', '-n', ns, '--', 'find', place, '-name', 'token']);
    expect(look).toMatchObject({ code: 0, stdout: '' });
    // A token that is asked for by name is not replaced by somebody else's.
    const sources = [{ serviceAccountToken: { path: 'token', audience: 'vault' } }];
    await host.apply([idle('wants-token', ns, 'real', { volumes: [{ name: 'token', projected: { sources } }] })]);
    await untilPod(
      host,
      ns,
      'wants-token',
      'is refused',
      (one) => one.status?.reason === 'ServiceAccountTokenNotAvailable',
    );
    expect(await readPod(real, ns, 'wants-token')).toBeUndefined();
  });
});
