import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { SYSTEM_NAMESPACE, waitForNode } from '../../hack/spillway.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { COPIED_KEYS_ANNOTATION } from '../../src/pods/translate-metadata.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import {
  condition,
  eventsOf,
  exitCodeOf,
  expectMirrored,
  type Fields,
  getPod,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  ON_VIRTUAL_NODE,
  onNode,
  pod,
  podsOf,
  podSpec,
  read,
  readPod,
  runPod,
  shell,
  untilGone,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { saidInTerminal, whenSize, whileSizeChanges } from '../fixtures/terminal.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/** Plain kubectl on the host; a real kubelet in the member does the work. */
describe.runIf(kubelets.ok)('workloads on a virtual node', () => {
  let topology: Topology;
  let host: Cluster;
  let member: Cluster;

  beforeAll(async () => {
    // kubectl debug takes more than baseline allows.
    const options = { spec: { namespaces: { podSecurity: 'privileged' } } };
    topology = await startTopology({ members: [{ name: 'east', kubelet: 'east-1', options }] });
    host = topology.host;
    member = topology.member('east').cluster;
  });

  afterAll(() => topology?.close());

  /** Of probes that tell at once; an answer may come late on a busy machine. */
  const QUICK = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 };

  /** A container that runs may not have come to its last line yet. */
  const WRITTEN = { timeout: 20_000, interval: 200 };

  const logs = (namespace: string, name: string, ...more: string[]): Promise<string> =>
    kubectl(host, ['logs', '-n', namespace, name, ...more]);

  const exec = (namespace: string, name: string, ...command: string[]): Promise<string> =>
    kubectl(host, ['exec', '-n', namespace, name, '--', ...command]);

  describe('Deployments', () => {
    const ns = 'deployments';
    const labels = { app: 'web' };
    const deployment = (script: string): Fields => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: ns },
      spec: {
        replicas: 3,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: podSpec([
            shell(script, {
              readinessProbe: { httpGet: { path: '/', port: 8080 }, ...QUICK },
            }),
          ]),
        },
      },
    });
    const serve = (page: string): string =>
      `echo ${page} > /tmp/index.html; httpd -p 8080 -h /tmp; trap "exit 0" TERM; while :; do sleep 0.1; done`;
    const rollout = (verb: string, ...more: string[]): Promise<string> =>
      kubectl(host, ['rollout', verb, 'deployment/web', '-n', ns, ...more]);
    /** Answers of all pods that both sides call Ready, through the addresses that the host shows. */
    const pages = async (): Promise<string[]> => {
      const ready = (await podsOf(host, ns)).filter((one) => isReady(one) && !one.metadata.deletionTimestamp);
      const answers = ready.map(async ({ status }) => {
        const answer = await fetch(`http://${status?.podIP ?? ''}:8080/`, { signal: AbortSignal.timeout(20_000) });
        return (await answer.text()).trim();
      });
      return await Promise.all(answers);
    };

    beforeAll(() => newNamespace(host, ns));

    test('roll out, and every pod answers at the address the host shows', async () => {
      await host.apply([deployment(serve('one'))]);
      await rollout('status', '--timeout=60s');
      expect(await pages()).toEqual(['one', 'one', 'one']);
      const [above, below] = [await podsOf(host, ns), await podsOf(member, ns)];
      expect(below.map(({ metadata }) => metadata.name)).toEqual(above.map(({ metadata }) => metadata.name));
      for (const { metadata } of above) await expectMirrored(host, member, ns, metadata.name);
    });

    test('scale up and down', async () => {
      await kubectl(host, ['scale', 'deployment/web', '-n', ns, '--replicas=5']);
      await rollout('status', '--timeout=60s');
      expect(await pages()).toHaveLength(5);
      await kubectl(host, ['scale', 'deployment/web', '-n', ns, '--replicas=2']);
      await until('two pods are left on both sides', async () => {
        const counts = [(await podsOf(host, ns)).length, (await podsOf(member, ns)).length];
        return counts[0] === 2 && counts[1] === 2;
      });
    });

    test('a new version replaces the old one', async () => {
      await host.apply([
        { ...deployment(serve('two')), spec: { ...(deployment(serve('two'))['spec'] as Fields), replicas: 2 } },
      ]);
      await rollout('status', '--timeout=60s');
      await until('only the new version is left', async () => (await podsOf(member, ns)).length === 2);
      expect(await pages()).toEqual(['two', 'two']);
    });

    test('a bad version stops the roll-out, and a roll-back ends it', async () => {
      const template = { spec: { containers: [{ name: 'main', command: ['sh', '-c', 'echo broken; exit 9'] }] } };
      await kubectl(host, ['patch', 'deployment/web', '-n', ns, '-p', JSON.stringify({ spec: { template } })]);
      const broken = await until('a pod of the bad version crashes', async () => {
        const all = await podsOf(host, ns);
        return all.find(({ status }) => status?.containerStatuses?.some(({ restartCount }) => restartCount > 0));
      });
      // Its kubelet may have removed that container for a newer one that ended.
      await expect.poll(() => logs(ns, broken.metadata.name, '--previous'), WRITTEN).toBe('broken\n');
      expect((await pages()).filter((page) => page === 'two').length).toBeGreaterThanOrEqual(1);
      await rollout('undo');
      await rollout('status', '--timeout=60s');
      await until('the bad pod is gone on both sides', async () => {
        return (await podsOf(host, ns)).length === 2 && (await podsOf(member, ns)).length === 2;
      });
      await expect.poll(pages, WRITTEN).toEqual(['two', 'two']);
    });

    test('deleting it leaves nothing in the member', async () => {
      await kubectl(host, ['delete', 'deployment/web', '-n', ns, '--cascade=foreground', '--timeout=30s']);
      await until('no pod is left', async () => (await podsOf(member, ns)).length === 0);
    });
  });

  describe('Jobs', () => {
    const ns = 'jobs';
    const job = (name: string, container: Fields, spec: Fields = {}, podMore: Fields = {}): Fields => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, namespace: ns },
      spec: { template: { spec: podSpec([container], { restartPolicy: 'Never', ...podMore }) }, ...spec },
    });
    const finished = async (name: string, type: 'Complete' | 'Failed'): Promise<Pod[]> => {
      await kubectl(host, ['wait', `job/${name}`, '-n', ns, `--for=condition=${type}`, '--timeout=60s']);
      return await podsOf(host, ns, `batch.kubernetes.io/job-name=${name}`);
    };

    beforeAll(() => newNamespace(host, ns));

    test('complete with exit code 0, and their finalizer is taken off', async () => {
      await host.apply([job('good', shell('echo done'), { completions: 3, parallelism: 2 })]);
      const pods = await finished('good', 'Complete');
      expect(pods.map((one) => [one.status?.phase, exitCodeOf(one)])).toEqual([
        ['Succeeded', 0],
        ['Succeeded', 0],
        ['Succeeded', 0],
      ]);
      for (const { metadata } of pods) {
        expect(await logs(ns, metadata.name)).toBe('done\n');
        await expectMirrored(host, member, ns, metadata.name);
        expect((await getPod(member, ns, metadata.name)).metadata.finalizers).toBeUndefined();
      }
      await until('the finalizers are gone', async () =>
        (await podsOf(host, ns, 'batch.kubernetes.io/job-name=good')).every(
          ({ metadata }) => !metadata.finalizers?.length,
        ),
      );
    });

    test('fail after backoffLimit, with the exit codes that the containers really had', async () => {
      await host.apply([job('bad', shell('exit 42'), { backoffLimit: 1 })]);
      const pods = await finished('bad', 'Failed');
      expect(pods.map((one) => [one.status?.phase, exitCodeOf(one)])).toEqual([
        ['Failed', 42],
        ['Failed', 42],
      ]);
      for (const { metadata } of pods) {
        expect(exitCodeOf(await getPod(member, ns, metadata.name))).toBe(42);
        await expectMirrored(host, member, ns, metadata.name);
      }
    });

    test('a pod failure policy acts on the exit code', async () => {
      const podFailurePolicy = {
        rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [7] } }],
      };
      await host.apply([job('policy', shell('exit 7'), { backoffLimit: 6, podFailurePolicy })]);
      const pods = await finished('policy', 'Failed');
      expect(pods.map((one) => exitCodeOf(one))).toEqual([7]);
    });

    test('restartPolicy OnFailure restarts in place and shows the count', async () => {
      const script = 'if [ -e /work/second ]; then exit 0; fi; touch /work/second; exit 5';
      const container = shell(script, { volumeMounts: [{ name: 'work', mountPath: '/work' }] });
      const more = { restartPolicy: 'OnFailure', volumes: [{ name: 'work', emptyDir: {} }] };
      await host.apply([job('again', container, {}, more)]);
      const [only, ...others] = await finished('again', 'Complete');
      expect(others).toEqual([]);
      expect(only?.status?.containerStatuses?.[0]).toMatchObject({
        restartCount: 1,
        state: { terminated: { exitCode: 0 } },
        lastState: { terminated: { exitCode: 5 } },
      });
    });

    test('a pod that is deleted before it could start makes way, also where the Job waits for it to have failed', async () => {
      const container = shell('echo "$WORD"', { envFrom: [{ configMapRef: { name: 'late' } }] });
      await host.apply([job('held', container, { podReplacementPolicy: 'Failed' })]);
      const held = await until('the pod waits for its ConfigMap', async () => {
        const [only] = await podsOf(host, ns, 'batch.kubernetes.io/job-name=held');
        const reason = only === undefined ? undefined : condition(only, 'spillway.dev/Mirrored')?.reason;
        return reason === 'MandatoryConfigMapNotFound' ? only : undefined;
      });
      await kubectl(host, ['delete', 'pod', held.metadata.name, '-n', ns, '--timeout=20s']);
      await host.apply([
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late', namespace: ns }, data: { WORD: 'late' } },
      ]);
      const [next, ...others] = await finished('held', 'Complete');
      expect(others).toEqual([]);
      expect(await logs(ns, next?.metadata.name ?? '')).toBe('late\n');
    });

    test('a deadline ends the pod with the reason of its kubelet', async () => {
      await host.apply([
        pod('deadline', ns, podSpec([shell(IDLE)], { restartPolicy: 'Never', activeDeadlineSeconds: 2 })),
      ]);
      const ended = await untilPod(host, ns, 'deadline', 'has failed', ({ status }) => status?.phase === 'Failed');
      expect(ended.status?.reason).toBe('DeadlineExceeded');
      await expectMirrored(host, member, ns, 'deadline');
    });
  });

  describe('StatefulSets', () => {
    const ns = 'statefulsets';
    beforeAll(() => newNamespace(host, ns));

    test('come up in order, keep their names, and go in reverse', async () => {
      const labels = { app: 'db' };
      const readinessProbe = { exec: { command: ['test', '-e', '/tmp/ready'] }, periodSeconds: 1, timeoutSeconds: 10 };
      await host.apply([
        {
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          metadata: { name: 'db', namespace: ns },
          spec: {
            serviceName: 'db',
            replicas: 3,
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: podSpec([shell(`hostname; sleep 0.5; touch /tmp/ready; ${IDLE}`, { readinessProbe })]),
            },
          },
        },
      ]);
      await kubectl(host, ['rollout', 'status', 'statefulset/db', '-n', ns, '--timeout=60s']);
      const pods = await podsOf(host, ns);
      expect(pods.map(({ metadata }) => metadata.name)).toEqual(['db-0', 'db-1', 'db-2']);
      for (const { metadata } of pods) expect(await logs(ns, metadata.name)).toBe(`${metadata.name}\n`);
      const readyAt = pods.map((one) => condition(one, 'Ready')?.lastTransitionTime ?? '');
      const created = pods.map(({ metadata }) => metadata.creationTimestamp ?? '');
      expect((created[1] ?? '') >= (readyAt[0] ?? '?')).toBe(true);
      expect((created[2] ?? '') >= (readyAt[1] ?? '?')).toBe(true);

      const before = { host: await getPod(host, ns, 'db-1'), member: await getPod(member, ns, 'db-1') };
      await kubectl(host, ['delete', 'pod', 'db-1', '-n', ns]);
      const after = await untilPod(
        host,
        ns,
        'db-1',
        'is back',
        (one) => isReady(one) && one.metadata.uid !== before.host.metadata.uid,
      );
      const copy = await getPod(member, ns, 'db-1');
      expect(copy.metadata.uid).not.toBe(before.member.metadata.uid);
      expect(copy.metadata.labels?.['spillway.dev/uid']).toBe(after.metadata.uid);
      expect(await logs(ns, 'db-1')).toBe('db-1\n');

      const gone: string[] = [];
      await kubectl(host, ['scale', 'statefulset/db', '-n', ns, '--replicas=0']);
      await until(
        'all are gone',
        async () => {
          const left = new Set((await podsOf(member, ns)).map(({ metadata }) => metadata.name));
          for (const name of ['db-2', 'db-1', 'db-0']) if (!left.has(name) && !gone.includes(name)) gone.push(name);
          return gone.length === 3;
        },
        { intervalMs: 50 },
      );
      expect(gone).toEqual(['db-2', 'db-1', 'db-0']);
    });
  });

  describe('init containers and sidecars', () => {
    const ns = 'init';
    const work = { volumeMounts: [{ name: 'work', mountPath: '/work' }] };
    const volumes = [{ name: 'work', emptyDir: {} }];
    beforeAll(() => newNamespace(host, ns));

    test('run in order before the main container and share its emptyDir', async () => {
      const spec = podSpec([shell(`echo main >> /work/order; cat /work/order; ${IDLE}`, work)], {
        volumes,
        initContainers: [
          shell('echo first >> /work/order', { name: 'first', ...work }),
          shell(`echo sidecar >> /work/order; touch /work/up; ${IDLE}`, {
            name: 'sidecar',
            restartPolicy: 'Always',
            startupProbe: { exec: { command: ['test', '-e', '/work/up'] }, periodSeconds: 1, timeoutSeconds: 10 },
            ...work,
          }),
          shell('echo last >> /work/order', { name: 'last', ...work }),
        ],
      });
      const above = await runPod(host, pod('ordered', ns, spec));
      await expect.poll(() => logs(ns, 'ordered', '-c', 'main'), WRITTEN).toBe('first\nsidecar\nlast\nmain\n');
      expect(
        above.status?.initContainerStatuses?.map(({ name, started, state }) => [
          name,
          started,
          Object.keys(state ?? {}),
        ]),
      ).toEqual([
        ['first', false, ['terminated']],
        ['sidecar', true, ['running']],
        ['last', false, ['terminated']],
      ]);
      await expectMirrored(host, member, ns, 'ordered');
    });

    test('a failing init container keeps the pod from starting and shows its exit code', async () => {
      const spec = podSpec([shell(IDLE)], { initContainers: [shell('exit 11', { name: 'gate' })] });
      await host.apply([pod('gated', ns, spec)]);
      const held = await untilPod(
        host,
        ns,
        'gated',
        'has a restarted init container',
        ({ status }) => (status?.initContainerStatuses?.[0]?.restartCount ?? 0) > 0,
      );
      expect(held.status?.phase).toBe('Pending');
      const [gate] = held.status?.initContainerStatuses ?? [];
      expect(gate?.lastState?.terminated?.exitCode ?? gate?.state?.terminated?.exitCode).toBe(11);
      expect(held.status?.containerStatuses?.[0]?.state?.waiting?.reason).toBe('PodInitializing');
    });

    test("a Job's sidecar ends after its main container, and the Job completes", async () => {
      const spec = podSpec([shell('sleep 1; echo main ended', work)], {
        volumes,
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 10,
        initContainers: [
          shell('trap "exit 0" TERM; while :; do sleep 0.1; done', { name: 'proxy', restartPolicy: 'Always', ...work }),
        ],
      });
      await host.apply([
        {
          apiVersion: 'batch/v1',
          kind: 'Job',
          metadata: { name: 'with-sidecar', namespace: ns },
          spec: { template: { spec } },
        },
      ]);
      await kubectl(host, ['wait', 'job/with-sidecar', '-n', ns, '--for=condition=Complete', '--timeout=60s']);
      const [done] = await podsOf(host, ns, 'batch.kubernetes.io/job-name=with-sidecar');
      const main = done?.status?.containerStatuses?.[0]?.state?.terminated;
      const proxy = done?.status?.initContainerStatuses?.[0]?.state?.terminated;
      expect(main?.exitCode).toBe(0);
      expect(proxy).toBeDefined();
      expect((proxy?.finishedAt ?? '') >= (main?.finishedAt ?? '?')).toBe(true);
      await expectMirrored(host, member, ns, done?.metadata.name ?? '');
    });
  });

  describe('probes and restarts', () => {
    const ns = 'probes';
    beforeAll(() => newNamespace(host, ns));

    test('a failing liveness probe restarts the container, and the host counts', async () => {
      const livenessProbe = { exec: { command: ['test', '-e', '/tmp/alive'] }, ...QUICK };
      // The container may be looked at before it has come to its first line.
      const probes = { livenessProbe, startupProbe: { ...livenessProbe, failureThreshold: 30 } };
      await runPod(host, pod('lives', ns, podSpec([shell(`touch /tmp/alive; ${IDLE}`, probes)])));
      await exec(ns, 'lives', 'rm', '/tmp/alive');
      const after = await untilPod(
        host,
        ns,
        'lives',
        'was restarted',
        (one) => one.status?.containerStatuses?.[0]?.restartCount === 1 && isReady(one),
      );
      expect(after.status?.containerStatuses?.[0]?.lastState?.terminated).toBeDefined();
      await expectMirrored(host, member, ns, 'lives');
    });

    test('readiness decides whether a Service of the host sends traffic there', async () => {
      const readinessProbe = { exec: { command: ['test', '-e', '/tmp/open'] }, ...QUICK };
      const spec = { selector: { app: 'shop' }, ports: [{ port: 80, targetPort: 8080 }] };
      await host.apply([
        { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop', namespace: ns }, spec },
        pod('shop', ns, podSpec([shell(IDLE, { readinessProbe })]), { labels: { app: 'shop' } }),
      ]);
      const running = await untilPod(host, ns, 'shop', 'runs', ({ status }) => status?.phase === 'Running');
      expect(isReady(running)).toBe(false);
      const endpoints = async (): Promise<string> =>
        await kubectl(host, [
          'get',
          'endpointslices',
          '-n',
          ns,
          '-l',
          'kubernetes.io/service-name=shop',
          '-o',
          'jsonpath={range .items[*].endpoints[*]}{.addresses[0]} {.conditions.ready} {.nodeName};{end}',
        ]);
      const address = running.status?.podIP ?? '?';
      await until('the endpoint is not ready', async () => (await endpoints()) === `${address} false east;`);
      await exec(ns, 'shop', 'touch', '/tmp/open');
      await until('the endpoint is ready', async () => (await endpoints()) === `${address} true east;`);
      await exec(ns, 'shop', 'rm', '/tmp/open');
      await until('the endpoint is not ready again', async () => (await endpoints()) === `${address} false east;`);
    });

    test('a crashing container is started again and again, and the host shows each exit code', async () => {
      await host.apply([pod('crashes', ns, podSpec([shell('exit 3')]))]);
      const seen = await untilPod(
        host,
        ns,
        'crashes',
        'was restarted',
        ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
      );
      expect(seen.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode).toBe(3);
      await expectMirrored(host, member, ns, 'crashes');
    });
  });

  describe('deletion', () => {
    const ns = 'deletion';
    /** What takes a moment on an idle machine; every grace here is longer, or the time that it is compared with is. */
    const SOON_MS = 5_000;
    beforeAll(() => newNamespace(host, ns));

    /** Deletes with kubectl and tells when each side was rid of the pod, in ms since the command was given. */
    async function timedDeletion(name: string, ...more: string[]): Promise<{ member: number; host: number }> {
      const began = performance.now();
      const deleting = kubectl(host, ['delete', 'pod', name, '-n', ns, '--wait=false', ...more]);
      const gone = await Promise.all([untilGone(member, ns, name), untilGone(host, ns, name), deleting]);
      return { member: gone[0] - began, host: gone[1] - began };
    }

    test('a pod that ends early is gone at once in the host, not after its grace', async () => {
      await runPod(host, pod('early', ns, podSpec([shell(IDLE)], { terminationGracePeriodSeconds: 30 })));
      const took = await timedDeletion('early');
      expect(took.host - took.member).toBeLessThan(SOON_MS);
      expect(took.host).toBeLessThan(20_000);
    });

    test('a preStop hook gets its time', async () => {
      const lifecycle = { preStop: { exec: { command: ['sleep', '3'] } } };
      await runPod(host, pod('hook', ns, podSpec([shell(IDLE, { lifecycle })], { terminationGracePeriodSeconds: 30 })));
      const deleting = timedDeletion('hook');
      const leaving = await untilPod(
        member,
        ns,
        'hook',
        'is leaving',
        ({ metadata }) => metadata.deletionTimestamp !== undefined,
      );
      expect(leaving.metadata.deletionGracePeriodSeconds).toBe(30);
      const took = await deleting;
      expect(took.member).toBeGreaterThan(3_000);
      expect(took.host).toBeGreaterThan(3_000);
      expect(took.host - took.member).toBeLessThan(SOON_MS);
      expect(took.host).toBeLessThan(25_000);
    });

    test('a shorter grace on the command line counts in the member', async () => {
      const stubborn = 'trap "" TERM; while :; do sleep 0.1; done';
      await runPod(host, pod('stubborn', ns, podSpec([shell(stubborn)], { terminationGracePeriodSeconds: 60 })));
      const took = await timedDeletion('stubborn', '--grace-period=2');
      expect(took.member).toBeGreaterThan(1_500);
      expect(took.host).toBeLessThan(30_000);
      expect(took.host - took.member).toBeLessThan(SOON_MS);
    });

    test('a deletion under way can be made shorter', async () => {
      const stubborn = 'trap "" TERM; until [ -e /tmp/end ]; do sleep 0.1; done';
      await runPod(host, pod('patience', ns, podSpec([shell(stubborn)], { terminationGracePeriodSeconds: 40 })));
      const grace = (seconds: number) => (one: Pod) => one.metadata.deletionGracePeriodSeconds === seconds;
      await kubectl(host, ['delete', 'pod', 'patience', '-n', ns, '--wait=false']);
      await untilPod(member, ns, 'patience', 'is leaving', grace(40), { timeoutMs: 15_000 });
      await kubectl(host, ['delete', 'pod', 'patience', '-n', ns, '--wait=false', '--grace-period=1']);
      // What the kubelet makes of it is its own affair: today's goes on with the grace it began with.
      await untilPod(member, ns, 'patience', 'is to leave sooner', grace(1), { timeoutMs: 15_000 });
      await member.kubectl(['exec', '-n', ns, 'patience', '--', 'touch', '/tmp/end']);
      await untilGone(host, ns, 'patience');
      expect(await readPod(member, ns, 'patience')).toBeUndefined();
    });

    test('a forced deletion frees the name at once, and the member follows', async () => {
      await runPod(host, pod('forced', ns, podSpec([shell(IDLE)], { terminationGracePeriodSeconds: 30 })));
      const took = await timedDeletion('forced', '--force', '--grace-period=0');
      // Nothing of its grace is waited for.
      expect(took.host).toBeLessThan(10_000);
      expect(took.member).toBeLessThan(20_000);
    });

    test('a new pod of the same name waits until the old one has left the member', async () => {
      const slow = { preStop: { exec: { command: ['sleep', '3'] } } };
      const definition = pod(
        'twice',
        ns,
        podSpec([shell(IDLE, { lifecycle: slow })], { terminationGracePeriodSeconds: 20 }),
      );
      await runPod(host, definition);
      const first = await getPod(member, ns, 'twice');
      await kubectl(host, ['delete', 'pod', 'twice', '-n', ns, '--force', '--grace-period=0']);
      await host.apply([definition]);
      const second = await untilRunning(host, ns, 'twice');
      const copy = await getPod(member, ns, 'twice');
      expect(copy.metadata.uid).not.toBe(first.metadata.uid);
      expect(copy.metadata.labels?.['spillway.dev/uid']).toBe(second.metadata.uid);
    });

    test(
      'a copy that a finalizer of the member keeps is told of, and its pod goes when that is off',
      { timeout: 180_000 },
      async () => {
        const path = `/api/v1/namespaces/${ns}/pods/held`;
        await runPod(host, pod('held', ns, podSpec([shell(IDLE)], { terminationGracePeriodSeconds: 1 })));
        await member.api.call('PATCH', path, { metadata: { finalizers: ['example.com/hold'] } });
        await kubectl(host, ['delete', 'pod', 'held', '-n', ns, '--wait=false']);
        const told = async (): Promise<string | undefined> =>
          (await eventsOf(host, ns, 'held')).find(({ reason }) => reason === 'MemberPodNotDeleted')?.message;
        const message = await until('it is told', told, { timeoutMs: 120_000 });
        expect(message).toMatch(
          /^Cluster "east" was told to delete deletion\/held, .*: finalizer example\.com\/hold\. /,
        );
        expect(await readPod(host, ns, 'held')).toBeDefined();
        await member.api.call('PATCH', path, { metadata: { finalizers: null } });
        await untilGone(host, ns, 'held');
      },
    );

    test('a namespace that is deleted takes its pods with it', async () => {
      await newNamespace(host, 'short-lived');
      await runPod(host, pod('one', 'short-lived', podSpec([shell(IDLE)])));
      await kubectl(host, ['delete', 'namespace', 'short-lived', '--timeout=60s']);
      await untilGone(member, 'short-lived', 'one');
    });
  });

  describe('what a pod sees', () => {
    const ns = 'downward';
    beforeAll(() => newNamespace(host, ns));

    test('the downward API says what is true in the host', async () => {
      const variable = (name: string, fieldPath: string): Fields => ({ name, valueFrom: { fieldRef: { fieldPath } } });
      const item = (path: string, fieldPath: string): Fields => ({ path, fieldRef: { fieldPath } });
      const script = `env | grep ^X_ | sort; for f in name namespace uid label annotation labels; do echo "$f: $(cat /info/$f)"; done; ${IDLE}`;
      const spec = podSpec(
        [
          shell(script, {
            resources: { requests: { memory: '32Mi' }, limits: { memory: '64Mi' } },
            env: [
              variable('X_NAME', 'metadata.name'),
              variable('X_NAMESPACE', 'metadata.namespace'),
              variable('X_UID', 'metadata.uid'),
              variable('X_NODE', 'spec.nodeName'),
              variable('X_ACCOUNT', 'spec.serviceAccountName'),
              variable('X_POD_IP', 'status.podIP'),
              variable('X_HOST_IP', 'status.hostIP'),
              variable('X_LABEL', "metadata.labels['app']"),
              variable('X_ANNOTATION', "metadata.annotations['note']"),
              { name: 'X_LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } },
              { name: 'X_COMBINED', value: '$(X_NAMESPACE)/$(X_NAME)' },
            ],
            volumeMounts: [{ name: 'info', mountPath: '/info' }],
          }),
        ],
        {
          volumes: [
            {
              name: 'info',
              downwardAPI: {
                items: [
                  item('name', 'metadata.name'),
                  item('namespace', 'metadata.namespace'),
                  item('uid', 'metadata.uid'),
                  item('label', "metadata.labels['app']"),
                  item('annotation', "metadata.annotations['note']"),
                  item('labels', 'metadata.labels'),
                ],
              },
            },
          ],
        },
      );
      const metadata = { labels: { app: 'facts' }, annotations: { note: 'with "quotes" and $(X_NAME)' } };
      const above = await runPod(host, pod('facts', ns, spec, metadata));
      const lines = async (): Promise<string[]> => (await logs(ns, 'facts')).split('\n').slice(0, 17);
      await expect
        .poll(lines, WRITTEN)
        .toEqual([
          'X_ACCOUNT=default',
          'X_ANNOTATION=with "quotes" and $(X_NAME)',
          `X_COMBINED=${ns}/facts`,
          expect.stringMatching(/^X_HOST_IP=\d+\./),
          'X_LABEL=facts',
          `X_LIMIT=${64 * 1024 * 1024}`,
          'X_NAME=facts',
          `X_NAMESPACE=${ns}`,
          `X_NODE=${above.spec.nodeName ?? '?'}`,
          `X_POD_IP=${above.status?.podIP ?? '?'}`,
          `X_UID=${above.metadata.uid ?? '?'}`,
          'name: facts',
          `namespace: ${ns}`,
          `uid: ${above.metadata.uid ?? '?'}`,
          'label: facts',
          'annotation: with "quotes" and $(X_NAME)',
          expect.stringContaining('labels: app="facts"'),
        ]);
      expect(above.spec.nodeName).toBe('east');
      expect(above.status?.hostIP).toBe((await getPod(member, ns, 'facts')).status?.hostIP);
    });

    test('services of the host are in the environment, and no token of either cluster is there', async () => {
      await host.apply([
        {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'my-db', namespace: ns },
          spec: { selector: { app: 'none' }, ports: [{ name: 'sql', port: 5432 }] },
        },
      ]);
      const service = await read<{ spec: { clusterIP: string } }>(host, `/api/v1/namespaces/${ns}/services/my-db`);
      await until('the program knows the service', async () => {
        const name = `asks-${Math.random().toString(36).slice(2, 7)}`;
        const script =
          'env | grep -E "^(MY_DB|KUBERNETES)_SERVICE" | sort; ls /var/run/secrets/kubernetes.io/serviceaccount';
        await host.apply([pod(name, ns, podSpec([shell(script)], { restartPolicy: 'Never' }))]);
        await untilPod(host, ns, name, 'has ended', ({ status }) => status?.phase === 'Succeeded');
        const lines = (await logs(ns, name)).trim().split('\n');
        if (!lines.some((line) => line.startsWith('MY_DB'))) return false;
        expect(lines).toEqual([
          'KUBERNETES_SERVICE_HOST=10.96.0.1',
          'KUBERNETES_SERVICE_PORT=443',
          'KUBERNETES_SERVICE_PORT_HTTPS=443',
          `MY_DB_SERVICE_HOST=${service?.spec.clusterIP ?? '?'}`,
          'MY_DB_SERVICE_PORT=5432',
          'MY_DB_SERVICE_PORT_SQL=5432',
          'ca.crt',
          'namespace',
        ]);
        return true;
      });
    });

    test('fields this program has never heard of arrive and work', async () => {
      // Restart rules by exit code are younger than most clients: 42 is restarted although the policy is Never.
      const rules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }];
      const script = 'if [ -e /work/again ]; then exit 0; fi; touch /work/again; exit 42';
      const container = shell(script, {
        restartPolicy: 'Never',
        restartPolicyRules: rules,
        volumeMounts: [{ name: 'work', mountPath: '/work' }],
      });
      const more = { restartPolicy: 'Never', volumes: [{ name: 'work', emptyDir: {} }], setHostnameAsFQDN: false };
      await host.apply([pod('rules', ns, podSpec([container], more))]);
      const done = await untilPod(host, ns, 'rules', 'has ended', ({ status }) =>
        /Succeeded|Failed/.test(status?.phase ?? ''),
      );
      expect(done.status?.phase).toBe('Succeeded');
      expect(done.status?.containerStatuses?.[0]?.restartCount).toBe(1);
      const copy = await getPod(member, ns, 'rules');
      expect(copy.spec.containers[0]).toMatchObject({ restartPolicyRules: rules });
      expect(copy.spec).toMatchObject({ setHostnameAsFQDN: false });
    });
  });

  describe('ConfigMaps and Secrets', () => {
    const ns = 'dependents';
    const configMap = (name: string, data: Fields): Fields => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: ns },
      data,
    });
    const secret = (name: string, stringData: Fields, more: Fields = {}): Fields => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: ns },
      stringData,
      ...more,
    });
    const inMember = (
      kind: 'configmaps' | 'secrets',
      name: string,
    ): Promise<{ data?: Record<string, string> } | undefined> =>
      read(member, `/api/v1/namespaces/${ns}/${kind}/${name}`);

    beforeAll(() => newNamespace(host, ns));

    test('reach the pod as files, projected files, variables and whole environments', async () => {
      await host.apply([
        configMap('settings', { color: 'green', size: 'big' }),
        secret('login', { user: 'ada', password: 'p4ss' }),
        secret('bundle', { BUNDLED: 'yes' }),
        configMap('not-used', { a: 'b' }),
      ]);
      const script = [
        'echo "$COLOR $USERNAME $CM_size $BUNDLED"',
        'cat /settings/color /login/password /all/size /all/who /all/name',
        'ls /settings /login',
        IDLE,
      ].join('; echo; ');
      const spec = podSpec(
        [
          shell(script, {
            env: [
              { name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } },
              { name: 'USERNAME', valueFrom: { secretKeyRef: { name: 'login', key: 'user' } } },
              { name: 'NONE', valueFrom: { configMapKeyRef: { name: 'absent', key: 'x', optional: true } } },
            ],
            envFrom: [{ prefix: 'CM_', configMapRef: { name: 'settings' } }, { secretRef: { name: 'bundle' } }],
            volumeMounts: [
              { name: 'settings', mountPath: '/settings' },
              { name: 'login', mountPath: '/login' },
              { name: 'all', mountPath: '/all' },
            ],
          }),
        ],
        {
          volumes: [
            { name: 'settings', configMap: { name: 'settings' } },
            { name: 'login', secret: { secretName: 'login', defaultMode: 0o400 } },
            {
              name: 'all',
              projected: {
                sources: [
                  { configMap: { name: 'settings', items: [{ key: 'size', path: 'size' }] } },
                  { secret: { name: 'login', items: [{ key: 'user', path: 'who' }] } },
                  { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
                ],
              },
            },
          ],
        },
      );
      await runPod(host, pod('reader', ns, spec));
      const lines = async (): Promise<string[]> => (await logs(ns, 'reader')).split('\n').filter((line) => line !== '');
      await expect
        .poll(lines, WRITTEN)
        .toEqual([
          'green ada big yes',
          'greenp4ssbigadareader',
          '/login:',
          'password',
          'user',
          '/settings:',
          'color',
          'size',
        ]);
      expect(await inMember('configmaps', 'not-used')).toBeUndefined();
      const warnings = (await eventsOf(host, ns, 'reader')).map(({ reason }) => reason);
      expect(warnings).not.toContain('MandatoryConfigMapNotFound');
    });

    test('follow changes within seconds', async () => {
      await host.apply([
        configMap('settings', { color: 'blue', size: 'big' }),
        secret('login', { user: 'ada', password: 'new' }),
      ]);
      await until(
        'the copies changed',
        async () => {
          const [settings, login] = [await inMember('configmaps', 'settings'), await inMember('secrets', 'login')];
          return settings?.data?.['color'] === 'blue' && login?.data?.['password'] === btoa('new');
        },
        { timeoutMs: 20_000 },
      );
    });

    test('go with their last user', async () => {
      await host.apply([
        pod('second', ns, podSpec([shell(IDLE, { envFrom: [{ configMapRef: { name: 'settings' } }] })])),
      ]);
      await untilRunning(host, ns, 'second');
      await kubectl(host, ['delete', 'pod', 'reader', '-n', ns]);
      await until('what only the first one used is gone', async () => {
        const left = await Promise.all([inMember('secrets', 'login'), inMember('secrets', 'bundle')]);
        return left.every((one) => one === undefined);
      });
      expect(await inMember('configmaps', 'settings')).toBeDefined();
      await kubectl(host, ['delete', 'pod', 'second', '-n', ns]);
      await until('the last one is gone', async () => (await inMember('configmaps', 'settings')) === undefined);
    });

    test.each([
      [
        'ConfigMap',
        'MandatoryConfigMapNotFound',
        configMap('late', { key: 'here' }),
        { configMapRef: { name: 'late' } },
      ],
      ['Secret', 'MandatorySecretNotFound', secret('late', { key: 'here' }), { secretRef: { name: 'late' } }],
    ])(
      'a missing %s keeps the pod Pending, says so, and lets it start when it appears',
      async (kind, reason, object, source) => {
        const name = `waits-${kind.toLowerCase()}`;
        await host.apply([pod(name, ns, podSpec([shell(`echo $key; ${IDLE}`, { envFrom: [source] })]))]);
        const waiting = await untilPod(host, ns, name, 'says why', ({ status }) => status?.reason === reason, {
          timeoutMs: 20_000,
        });
        expect(waiting.status?.phase).toBe('Pending');
        expect(waiting.status?.message).toContain('"late"');
        await until(
          'the Event',
          async () => (await eventsOf(host, ns, name)).some((event) => event.reason === reason),
          {
            timeoutMs: 20_000,
          },
        );
        expect(await readPod(member, ns, name)).toBeUndefined();
        await host.apply([object]);
        const running = await untilRunning(host, ns, name, { timeoutMs: 45_000 });
        expect(running.status?.reason).toBeUndefined();
        await expect.poll(() => logs(ns, name), WRITTEN).toBe('here\n');
      },
    );

    test('an optional one that is missing does not keep the pod from starting', async () => {
      const envFrom = [
        { configMapRef: { name: 'never', optional: true } },
        { secretRef: { name: 'never', optional: true } },
      ];
      await runPod(host, pod('optional', ns, podSpec([shell(IDLE, { envFrom })])));
    });

    test('pull secrets are copied with their type', async () => {
      const data = { '.dockerconfigjson': btoa('{"auths":{}}') };
      await host.apply([
        secret('registry', {}, { type: 'kubernetes.io/dockerconfigjson', stringData: undefined, data }),
      ]);
      await runPod(host, pod('pulls', ns, podSpec([shell(IDLE)], { imagePullSecrets: [{ name: 'registry' }] })));
      expect(await inMember('secrets', 'registry')).toMatchObject({ type: 'kubernetes.io/dockerconfigjson', data });
    });
  });

  describe('changes to a running pod', () => {
    const ns = 'changes';
    const name = 'changing';
    beforeAll(async () => {
      await newNamespace(host, ns);
      const resources = { requests: { cpu: '50m', memory: '32Mi' }, limits: { cpu: '100m', memory: '64Mi' } };
      const metadata = { labels: { app: 'a', old: 'x' }, annotations: { note: 'first', gone: 'soon' } };
      await runPod(host, pod(name, ns, podSpec([shell(IDLE, { resources })]), metadata));
    });

    const patch = (body: object, ...more: string[]): Promise<string> =>
      kubectl(host, ['patch', 'pod', name, '-n', ns, '-p', JSON.stringify(body), ...more]);

    test('labels and annotations are added, changed and removed; what the member added stays', async () => {
      await kubectl(member, ['label', 'pod', name, '-n', ns, 'team.member/tracked=yes']);
      const before = await getPod(member, ns, name);
      await patch({
        metadata: {
          labels: { app: 'b', old: null, new: 'y' },
          annotations: { note: 'second', gone: null, more: 'yes' },
        },
      });
      const after = await untilPod(
        member,
        ns,
        name,
        'has the labels',
        ({ metadata }) => metadata.labels?.['app'] === 'b',
        {
          timeoutMs: 20_000,
        },
      );
      expect(after.metadata.labels).toMatchObject({ app: 'b', new: 'y', 'team.member/tracked': 'yes' });
      expect(after.metadata.labels).not.toHaveProperty('old');
      expect(after.metadata.annotations).toMatchObject({ note: 'second', more: 'yes' });
      expect(after.metadata.annotations).not.toHaveProperty('gone');
      expect(after.metadata.annotations?.[COPIED_KEYS_ANNOTATION]).toContain('new');
      expect(after.metadata.uid).toBe(before.metadata.uid);
      for (const mark of ['host', 'node', 'uid']) {
        expect(after.metadata.labels?.[`spillway.dev/${mark}`]).toBe(before.metadata.labels?.[`spillway.dev/${mark}`]);
      }
    });

    test('a new image restarts the container in place', async () => {
      await kubectl(host, ['set', 'image', `pod/${name}`, '-n', ns, `main=${IMAGES.agnhost}`]);
      const after = await untilPod(
        host,
        ns,
        name,
        'runs the new image',
        (one) => isReady(one) && one.status?.containerStatuses?.[0]?.image.includes('agnhost') === true,
      );
      expect(after.status?.containerStatuses?.[0]?.restartCount).toBe(1);
      await expectMirrored(host, member, ns, name);
    });

    test('a resize is carried out without a restart, and the host shows the new amounts', async () => {
      const restarts = (await getPod(host, ns, name)).status?.containerStatuses?.[0]?.restartCount;
      const resources = { requests: { cpu: '70m' }, limits: { cpu: '200m' } };
      await patch({ spec: { containers: [{ name: 'main', resources }] } }, '--subresource', 'resize');
      const below = await untilPod(
        member,
        ns,
        name,
        'has the new amounts',
        ({ spec }) => spec.containers[0]?.resources?.requests?.['cpu'] === '70m',
        { timeoutMs: 20_000 },
      );
      expect(below.spec.containers[0]?.resources).toMatchObject({
        requests: { cpu: '70m', memory: '32Mi' },
        limits: { cpu: '200m' },
      });
      const after = await untilPod(
        host,
        ns,
        name,
        'shows the new amounts',
        ({ status }) => status?.containerStatuses?.[0]?.resources?.limits?.['cpu'] === '200m',
      );
      expect(after.status?.containerStatuses?.[0]).toMatchObject({
        restartCount: restarts,
        resources: { requests: { cpu: '70m' } },
        allocatedResources: { cpu: '70m' },
      });
      await expectMirrored(host, member, ns, name);
    });

    test('kubectl debug adds a container that sees the target, and shows its output', async () => {
      const script = 'echo debugging; ls /proc/1/root >/dev/null && echo sees-target; sleep 1; exit 6';
      await kubectl(host, [
        'debug',
        '-n',
        ns,
        name,
        `--image=${IMAGES.busybox}`,
        '--target=main',
        '--container=helper',
        '--image-pull-policy=IfNotPresent',
        '--attach=false',
        '--profile=general',
        '--',
        'sh',
        '-c',
        script,
      ]);
      const after = await untilPod(
        host,
        ns,
        name,
        'has had its ephemeral container',
        ({ status }) => status?.ephemeralContainerStatuses?.[0]?.state?.terminated !== undefined,
      );
      expect(after.status?.ephemeralContainerStatuses?.[0]?.state?.terminated?.exitCode).toBe(6);
      expect(await logs(ns, name, '-c', 'helper')).toBe('debugging\nsees-target\n');
      await expectMirrored(host, member, ns, name);
    });

    test('kubectl debug -it gives a terminal in the new container, as it does on the member itself', async () => {
      await Promise.all([
        runPod(host, pod('debugged', ns, podSpec([shell(IDLE)]))),
        member.apply([pod('debugged', 'default', { terminationGracePeriodSeconds: 1, containers: [shell(IDLE)] })]),
      ]);
      await untilRunning(member, 'default', 'debugged');
      const script = `${whenSize('33 101')}; echo "tty=$(tty)"; ${whenSize('44 120')}; read line; echo "heard=$line"; exit 7`;
      const debug = async (cluster: Cluster, namespace: string): Promise<unknown> => {
        const options = `-n ${namespace} --image=${IMAGES.busybox} --container=helper --target=main --profile=general`;
        const command = `"$KUBECTL" debug -it debugged ${options} --image-pull-policy=IfNotPresent -- sh -c '${script}'`;
        const typist = { shown: /size=44 120/, keys: 'what is typed\r' };
        const said = await saidInTerminal(cluster, whileSizeChanges(command), typist);
        const ended = await untilPod(
          cluster,
          namespace,
          'debugged',
          'has had its ephemeral container',
          ({ status }) => status?.ephemeralContainerStatuses?.[0]?.state?.terminated !== undefined,
        );
        return [...said, ended.status?.ephemeralContainerStatuses?.[0]?.state?.terminated?.exitCode];
      };
      const [viaHost, direct] = await Promise.all([debug(host, ns), debug(member, 'default')]);
      expect(viaHost).toEqual(direct);
      const said = ['size=33 101', 'tty=/dev/pts/N', 'size=44 120', 'heard=what is typed', 'code=0'];
      expect(viaHost).toEqual([...said, 7]);
      await kubectl(member, ['delete', 'pod', 'debugged', '-n', 'default', '--wait=false']);
    });

    test('tolerations may be added', async () => {
      const present = (await getPod(host, ns, name)).spec.tolerations ?? [];
      const added = { key: 'example.com/maintenance', operator: 'Exists', effect: 'NoExecute' };
      await patch({ spec: { tolerations: [...present, added] } });
      const below = await untilPod(
        member,
        ns,
        name,
        'has the toleration',
        ({ spec }) => spec.tolerations?.some(({ key }) => key === added.key) === true,
        { timeoutMs: 20_000 },
      );
      expect(below.spec.tolerations?.some(({ key }) => key?.startsWith('spillway.dev/'))).toBe(false);
    });

    test('a deadline set later ends the pod', async () => {
      await patch({ spec: { activeDeadlineSeconds: 1 } });
      const ended = await untilPod(host, ns, name, 'has failed', ({ status }) => status?.phase === 'Failed');
      expect(ended.status?.reason).toBe('DeadlineExceeded');
      await expectMirrored(host, member, ns, name);
    });
  });

  test('network Isolated: Services of the host send nothing there, while logs, exec and port-forward work', async () => {
    const ns = await newNamespace(host, 'isolated');
    const apart = { key: 'example.com/apart', effect: 'NoSchedule' };
    // The same member once more; its namespaces there have other names.
    await host.apply([
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'MemberCluster',
        metadata: { name: 'apart' },
        spec: {
          credentials: { secretRef: { namespace: SYSTEM_NAMESPACE, name: 'member-east' } },
          network: 'Isolated',
          namespaces: { mapping: 'Prefixed', prefix: 'apart-' },
          taints: [apart],
        },
      },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'page', namespace: ns },
        data: { 'index.html': 'apart' },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace: ns },
        spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
      },
    ]);
    await waitForNode(host, 'apart');
    const web = (name: string, node: string): Fields => {
      const container = shell('echo serving; exec httpd -f -p 8080 -h /page', {
        volumeMounts: [{ name: 'page', mountPath: '/page' }],
      });
      const more = {
        ...onNode(node),
        tolerations: [{ operator: 'Exists' }],
        volumes: [{ name: 'page', configMap: { name: 'page' } }],
      };
      return pod(name, ns, podSpec([container], more), { labels: { app: 'web' } });
    };
    const hidden = await runPod(host, web('hidden', 'apart'));
    expect(hidden.status).not.toHaveProperty('podIP');
    expect(hidden.status).not.toHaveProperty('podIPs');
    const below = await getPod(member, `apart-${ns}`, 'hidden');
    expect(below.status?.podIP).toMatch(/^\d/);
    expect(hidden.metadata.annotations?.['spillway.dev/member-pod-ip']).toBe(below.status?.podIP);
    expect(await read(member, `/api/v1/namespaces/apart-${ns}/configmaps/page`)).toMatchObject({
      data: { 'index.html': 'apart' },
    });
    // The one that can be reached is an endpoint; by then the other would long be one, too.
    const shown = await runPod(host, web('shown', 'east'));
    const endpoints = async (): Promise<string> =>
      await kubectl(host, [
        'get',
        'endpointslices',
        '-n',
        ns,
        '-o',
        'jsonpath={range .items[*].endpoints[*]}{.addresses[0]} {.conditions.ready} {.targetRef.name};{end}',
      ]);
    const alone = `${shown.status?.podIP ?? '?'} true shown;`;
    await until('the Service has that endpoint alone', async () => (await endpoints()) === alone);

    await expect.poll(() => logs(ns, 'hidden'), WRITTEN).toBe('serving\n');
    expect(await exec(ns, 'hidden', 'cat', '/page/index.html')).toBe('apart');
    const forward = topology.workspace.start({
      name: 'forward',
      file: host.kubectlPath,
      args: ['--kubeconfig', host.kubeconfig, 'port-forward', '-n', ns, 'hidden', ':8080'],
      logFile: join(host.dir, 'forward.log'),
    });
    const port = await until('a port is open', () => /127\.0\.0\.1:(\d+) ->/.exec(forward.logTail())?.[1]);
    expect(await (await fetch(`http://127.0.0.1:${port}/index.html`)).text()).toBe('apart');
    await forward.stop();
    await kubectl(host, ['delete', 'pods', '--all', '-n', ns]);
    expect(await read(member, `/api/v1/namespaces/apart-${ns}/pods/hidden`)).toBeUndefined();
    await kubectl(host, ['delete', 'membercluster', 'apart']);
    await kubectl(host, ['delete', 'node', 'apart', '--ignore-not-found']);
  });

  test('a healthy pod costs no Events and no more than its share of writes', async () => {
    const ns = 'quiet';
    await newNamespace(host, ns);
    await runPod(host, { ...pod('calm', ns, podSpec([shell(IDLE)])) });
    await kubectl(host, ['delete', 'pod', 'calm', '-n', ns]);
    await untilGone(member, ns, 'calm');
    const about = (cluster: Cluster): string[] =>
      cluster
        .auditEvents()
        .filter(({ userAgent, verb, objectRef }) => {
          const mine = userAgent?.startsWith('spillway') === true && objectRef?.namespace === ns;
          return mine && !['get', 'list', 'watch'].includes(verb);
        })
        .map(
          ({ verb, objectRef }) =>
            `${verb} ${objectRef?.resource ?? ''}${objectRef?.subresource === undefined ? '' : `/${objectRef.subresource}`}`,
        );
    expect(about(member)).toEqual(['create pods', 'delete pods']);
    const above = about(host);
    expect(above.filter((call) => call === 'delete pods')).toHaveLength(1);
    // A real kubelet reports in more steps than a fake one, and in more of them on a busy machine; between the first and Running they are combined.
    const reports = member
      .auditEvents()
      .filter(({ verb, objectRef }) => verb === 'patch' && objectRef?.subresource === 'status')
      .filter(({ objectRef }) => objectRef?.resource === 'pods' && objectRef.namespace === ns);
    expect(above.filter((call) => call === 'patch pods/status').length).toBeLessThanOrEqual(
      Math.max(4, reports.length),
    );
    expect(above.filter((call) => call.includes('events'))).toEqual([]);
  });

  test('pods that tolerate nothing stay off the virtual node', async () => {
    const ns = 'strangers';
    await newNamespace(host, ns);
    const { tolerations: _, ...rest } = ON_VIRTUAL_NODE;
    await host.apply([pod('plain', ns, { ...rest, containers: [shell(IDLE)] })]);
    const waiting = await untilPod(
      host,
      ns,
      'plain',
      'is unschedulable',
      (one) => condition(one, 'PodScheduled')?.status === 'False',
    );
    expect(waiting.spec.nodeName).toBeUndefined();
    expect(condition(waiting, 'PodScheduled')?.message).toContain('untolerated taint');
    await kubectl(host, ['delete', 'pod', 'plain', '-n', ns]);
  });

  test('the program was the same process all this time and met no error', () => {
    expect(topology.spillway.process.running).toBe(true);
    expect(errorsOf(topology.spillway)).toEqual([]);
  });
});
