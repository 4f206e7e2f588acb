import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { PersistentVolume } from '../../src/kube/volumes.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ForwardProxy } from '../fixtures/forward-proxy.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import {
  exitCodeOf,
  expectMirrored,
  type Fields,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podsOf,
  podSpec,
  read,
  shell,
  untilGone,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';
import { kubeconfigOf } from './member-harness.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/** A kubelet tries a volume again after some time, and a busy machine starts one pod after the other. */
const LONG = { timeoutMs: 120_000 };
/** Five tests share one kubelet. */
const SIDE_BY_SIDE = { timeout: 300_000 };

/** What any provider of virtual nodes is asked to run, on a real kubelet: phase, logs and exit codes are the test. */
describe.runIf(kubelets.ok)('pods of every shape', () => {
  const ns = 'shapes';
  let topology: Topology;
  let host: Cluster;
  let member: Cluster;

  beforeAll(async () => {
    const classes = [
      { host: 'spillway', member: 'local' },
      { host: 'made', member: 'made' },
    ];
    const options = { spec: { storage: { classes }, namespaces: { podSecurity: 'privileged' } } };
    topology = await startTopology({ members: [{ name: 'east', kubelet: 'east-1', options }] });
    host = topology.host;
    member = topology.member('east').cluster;
    await newNamespace(host, ns);
  });

  afterAll(async () => {
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    await topology?.close();
    expect(errors).toEqual([]);
  });

  const logs = (name: string, ...more: string[]): Promise<string> => kubectl(host, ['logs', '-n', ns, name, ...more]);

  const create = (name: string, containers: Fields[], more: Fields = {}): Promise<string> =>
    host.apply([pod(name, ns, podSpec(containers, { restartPolicy: 'Never', ...more }))]);

  const untilEnded = async (name: string, phase: 'Succeeded' | 'Failed'): Promise<Pod> => {
    const hasEnded = ({ status }: Pod): boolean => ['Succeeded', 'Failed'].includes(status?.phase ?? '');
    const ended = await untilPod(host, ns, name, 'has ended', hasEnded, LONG);
    expect(ended.status?.phase).toBe(phase);
    await expectMirrored(host, member, ns, name);
    return ended;
  };

  /** Runs a pod to its good end and gives the log of its main container. */
  const outputOf = async (name: string, containers: Fields[], more: Fields = {}): Promise<string> => {
    await create(name, containers, more);
    await untilEnded(name, 'Succeeded');
    return await logs(name, '-c', 'main');
  };

  const configMap = (name: string, data: Fields): Fields => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: ns },
    data,
  });
  const secret = (name: string, stringData: Fields): Fields => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: ns },
    stringData,
  });
  const terminated = (ended: Pod, name: string) =>
    ended.status?.containerStatuses?.find((one) => one.name === name)?.state?.terminated;

  describe.concurrent('what is started', SIDE_BY_SIDE, () => {
    test('a command that says hello', async () => {
      expect(await outputOf('hello', [shell('echo hello, world')])).toBe('hello, world\n');
    });

    test('a program of many lines as one argument', async () => {
      const program = [
        '# comment; with "quotes", \'others\' and a \\ backslash',
        'BEGIN {',
        '\tfor (i = 1; i <= 3; i++) total += i * i',
        '\tprintf "%s=%d\\n", "total", total',
        '}',
      ].join('\n');
      const container = { name: 'main', image: IMAGES.busybox, command: ['awk'], args: [program] };
      expect(await outputOf('program', [container])).toBe('total=14\n');
    });

    test("the image's own entry point and arguments, with either or both replaced", async () => {
      const image = IMAGES.agnhost;
      const more = { restartPolicy: 'Never' };
      const replaced = (command?: string[], args?: string[]): Fields => ({
        name: 'main',
        image,
        ...(command === undefined ? {} : { command }),
        ...(args === undefined ? {} : { args }),
      });
      await create('entry-default', [replaced()], more);
      expect(await outputOf('entry-args', [replaced(undefined, ['entrypoint-tester', 'own', 'args'])])).toBe(
        '[/agnhost entrypoint-tester own args]\n',
      );
      expect(await outputOf('entry-both', [replaced(['/agnhost-2', 'entrypoint-tester'], ['two'])])).toBe(
        '[/agnhost-2 entrypoint-tester two]\n',
      );
      await untilRunning(host, ns, 'entry-default', LONG);
      expect(await logs('entry-default')).toContain('Paused');
    });
  });

  describe.concurrent('environment', SIDE_BY_SIDE, () => {
    test('variables, in order and by reference', async () => {
      const env = [
        { name: 'FIRST', value: 'one' },
        { name: 'SECOND', value: '$(FIRST) and two' },
        { name: 'THIRD', value: '$$(FIRST) and $(UNKNOWN)' },
      ];
      expect(await outputOf('env', [shell('echo "$FIRST|$SECOND|$THIRD"', { env })])).toBe(
        'one|one and two|$(FIRST) and $(UNKNOWN)\n',
      );
    });

    test('quotes, line ends and whatever else a value may hold arrive byte for byte', async () => {
      const values = [
        '"double"',
        "'single'",
        '`id`',
        '$HOME ${PATH}',
        'a\nb\n',
        ' spaces ',
        'tab\there',
        '\\n',
        '{"json": ["x"]}',
        'é🚀',
        '',
      ];
      const env = values.map((value, index) => ({ name: `Q${index}`, value }));
      const script = values.map((_, index) => `printf '<%s>' "$Q${index}"`).join('; ');
      expect(await outputOf('quotes', [shell(script, { env })])).toBe(values.map((value) => `<${value}>`).join(''));
    });

    test('single keys and whole objects of ConfigMaps and Secrets', async () => {
      await host.apply([
        configMap('colors', { sky: 'blue', leaf: 'green' }),
        secret('login', { user: 'ada', password: 'p"4$s' }),
      ]);
      const env = [
        { name: 'SKY', valueFrom: { configMapKeyRef: { name: 'colors', key: 'sky' } } },
        { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } },
        { name: 'BOTH', value: '$(SKY)/$(PASSWORD)' },
      ];
      const envFrom = [{ configMapRef: { name: 'colors' } }, { prefix: 'S_', secretRef: { name: 'login' } }];
      const script = 'echo "$SKY|$PASSWORD|$BOTH|$leaf|$S_user|$S_password"';
      expect(await outputOf('references', [shell(script, { env, envFrom })])).toBe(
        'blue|p"4$s|blue/p"4$s|green|ada|p"4$s\n',
      );
    });
  });

  describe.concurrent('volumes', SIDE_BY_SIDE, () => {
    test('an emptyDir is shared by containers of a pod', async () => {
      const shared = { volumeMounts: [{ name: 'work', mountPath: '/work' }] };
      const output = await outputOf(
        'shared',
        [
          shell('until [ -s /work/message ]; do sleep 0.1; done; cat /work/message', shared),
          shell('echo from the other > /work/message', { name: 'other', ...shared }),
        ],
        { volumes: [{ name: 'work', emptyDir: {} }] },
      );
      expect(output).toBe('from the other\n');
    });

    test('ConfigMaps and Secrets as files: chosen keys, their modes, one file by subPath', async () => {
      await host.apply([configMap('files', { 'a.txt': 'alpha', 'b.txt': 'beta' }), secret('keys', { key: 'private' })]);
      const volumes = [
        { name: 'config', configMap: { name: 'files', items: [{ key: 'a.txt', path: 'deep/a', mode: 0o440 }] } },
        { name: 'all', configMap: { name: 'files' } },
        { name: 'key', secret: { secretName: 'keys', defaultMode: 0o400 } },
      ];
      const volumeMounts = [
        { name: 'config', mountPath: '/config' },
        { name: 'all', mountPath: '/etc/only-b', subPath: 'b.txt' },
        { name: 'key', mountPath: '/key', readOnly: true },
      ];
      const script =
        'cat /config/deep/a; ls /config; cat /etc/only-b; cat /key/key; echo; stat -Lc %a /config/deep/a /key/key';
      expect(await outputOf('files', [shell(script, { volumeMounts })], { volumes })).toBe(
        'alphadeep\nbetaprivate\n440\n400\n',
      );
    });

    test('a projected bundle of certificates keeps every byte and line', async () => {
      const certificate = (name: string): string =>
        `-----BEGIN CERTIFICATE-----\n${`${name}+/=`.repeat(16)}\n${'B'.repeat(64)}\n-----END CERTIFICATE-----\n`;
      const bundle = `# roots\r\n${certificate('one')}\n${certificate('two')}`;
      await host.apply([
        configMap('roots', { 'ca.crt': bundle }),
        secret('extra', { 'extra.crt': certificate('three') }),
      ]);
      const sources = [
        { configMap: { name: 'roots', items: [{ key: 'ca.crt', path: 'ca/ca.crt' }] } },
        { secret: { name: 'extra' } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
      ];
      // By sum: the log of a container loses carriage returns, with any kubelet.
      const script = 'cat /trust/ca/ca.crt /trust/extra.crt /trust/namespace | md5sum';
      const output = await outputOf(
        'trust',
        [shell(script, { volumeMounts: [{ name: 'trust', mountPath: '/trust' }] })],
        { volumes: [{ name: 'trust', projected: { sources } }] },
      );
      const sum = createHash('md5')
        .update(`${bundle}${certificate('three')}${ns}`)
        .digest('hex');
      expect(output).toBe(`${sum}  -\n`);
    });

    test('what one container mounts with Bidirectional propagation, another sees', async () => {
      const unmount = 'umount /work/mounted; exit 0';
      const script = `mkdir -p /work/mounted && mount -t tmpfs none /work/mounted && echo inside > /work/mounted/file; trap "${unmount}" TERM; until [ -e /work/seen ]; do sleep 0.1; done; ${unmount}`;
      const mount = (mountPropagation: string): Fields => ({
        volumeMounts: [{ name: 'work', mountPath: '/work', mountPropagation }],
      });
      const output = await outputOf(
        'propagated',
        [
          shell(
            'until cat /work/mounted/file 2>/dev/null; do sleep 0.1; done; touch /work/seen',
            mount('HostToContainer'),
          ),
          shell(script, { name: 'mounter', securityContext: { privileged: true }, ...mount('Bidirectional') }),
        ],
        { volumes: [{ name: 'work', emptyDir: {} }] },
      );
      expect(output).toBe('inside\n');
    });
  });

  describe.concurrent('init containers', SIDE_BY_SIDE, () => {
    const work = { volumeMounts: [{ name: 'work', mountPath: '/work' }] };
    const volumes = [{ name: 'work', emptyDir: {} }];

    test('one prepares what the main container needs', async () => {
      const initContainers = [shell('echo prepared > /work/state', { name: 'init', ...work })];
      expect(await outputOf('init', [shell('cat /work/state', work)], { volumes, initContainers })).toBe('prepared\n');
    });

    test('many run one after another, each with a log of its own', async () => {
      const names = ['one', 'two', 'three'];
      const initContainers = names.map((name) =>
        shell(`echo ${name} >> /work/order; echo log of ${name}`, { name, ...work }),
      );
      expect(await outputOf('inits', [shell('cat /work/order', work)], { volumes, initContainers })).toBe(
        'one\ntwo\nthree\n',
      );
      for (const name of names) expect(await logs('inits', '-c', name)).toBe(`log of ${name}\n`);
    });
  });

  describe.concurrent('limits', SIDE_BY_SIDE, () => {
    test('are seen by the container, and who takes more memory is killed and named so', async () => {
      const resources = { requests: { cpu: '20m', memory: '16Mi' }, limits: { cpu: '200m', memory: '48Mi' } };
      const variable = (name: string, resource: string): Fields => ({
        name,
        valueFrom: { resourceFieldRef: { resource } },
      });
      const env = [variable('CPU', 'limits.cpu'), variable('MEMORY', 'limits.memory')];
      const script = 'echo "$CPU $MEMORY"; dd if=/dev/zero of=/dev/null bs=200M count=1 && echo survived';
      await create('limits', [shell(script, { resources, env }), shell('sleep 1', { name: 'modest', resources })]);
      const ended = await untilEnded('limits', 'Failed');
      // The limit of the CPU is rounded up to whole ones.
      expect(await logs('limits', '-c', 'main')).toMatch(new RegExp(`^1 ${48 * 1024 * 1024}\\n`));
      expect(await logs('limits', '-c', 'main')).not.toContain('survived');
      expect(terminated(ended, 'modest')).toMatchObject({ exitCode: 0, reason: 'Completed' });
    });

    test('the process that exceeds its memory ends with 137, OOMKilled', async () => {
      const resources = { limits: { memory: '32Mi' } };
      await create('oom', [
        { name: 'main', image: IMAGES.busybox, command: ['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=128M'], resources },
      ]);
      const ended = await untilEnded('oom', 'Failed');
      expect(terminated(ended, 'main')).toMatchObject({ exitCode: 137, reason: 'OOMKilled' });
    });
  });

  describe.concurrent('probes and hooks', SIDE_BY_SIDE, () => {
    test('startup, readiness and liveness by exec, HTTP and TCP', async () => {
      const quick = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 };
      const serve =
        'mkdir /tmp/w; (sleep 1; echo ok > /tmp/w/index.html; httpd -p 8080 -h /tmp/w; touch /tmp/started) &';
      await create(
        'probes',
        [
          shell(`${serve} ${IDLE}`, {
            startupProbe: { exec: { command: ['test', '-e', '/tmp/started'] }, ...quick, failureThreshold: 30 },
            readinessProbe: { httpGet: { path: '/index.html', port: 8080 }, ...quick },
            livenessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1, failureThreshold: 3 },
          }),
        ],
        { restartPolicy: 'Always', terminationGracePeriodSeconds: 20 },
      );
      await untilRunning(host, ns, 'probes', LONG);
      await kubectl(host, ['exec', '-n', ns, 'probes', '--', 'rm', '/tmp/w/index.html']);
      const unready = await untilPod(host, ns, 'probes', 'is not ready any more', (one) => !isReady(one));
      expect(unready.status?.containerStatuses?.[0]).toMatchObject({ ready: false, started: true, restartCount: 0 });
      await kubectl(host, ['exec', '-n', ns, 'probes', '--', 'killall', 'httpd']);
      const restarted = await untilPod(
        host,
        ns,
        'probes',
        'is ready again after a restart',
        (one) => isReady(one) && (one.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
        LONG,
      );
      // Told to end, the container does so by itself.
      expect(restarted.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode).toBe(0);
    });

    test('postStart runs before the container counts as running, preStop before it ends', async () => {
      const lifecycle = {
        postStart: { exec: { command: ['sh', '-c', 'echo started > /hooks/post'] } },
        preStop: { exec: { command: ['sh', '-c', 'echo stopping > /hooks/pre; sleep 3'] } },
      };
      const volumeMounts = [{ name: 'hooks', mountPath: '/hooks' }];
      // A sidecar ends after the main container and tells what the hook of that one left.
      const witness = 'trap "cat /hooks/pre; exit 0" TERM; while :; do sleep 0.1; done';
      await create('hooks', [shell(IDLE, { lifecycle, volumeMounts })], {
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 20,
        volumes: [{ name: 'hooks', emptyDir: {} }],
        initContainers: [shell(witness, { name: 'witness', restartPolicy: 'Always', volumeMounts })],
      });
      await untilRunning(host, ns, 'hooks', LONG);
      expect(await kubectl(host, ['exec', '-n', ns, 'hooks', '-c', 'main', '--', 'cat', '/hooks/post'])).toBe(
        'started\n',
      );
      const following = kubectl(host, ['logs', '-f', '-n', ns, 'hooks', '-c', 'witness']);
      await kubectl(host, ['delete', 'pod', 'hooks', '-n', ns, '--wait=false']);
      expect(await following).toBe('stopping\n');
      await untilGone(host, ns, 'hooks');
    });
  });

  describe.concurrent('claims', SIDE_BY_SIDE, () => {
    // The member's controller deletes what is below /tmp, and nothing else.
    const disks = mkdtempSync('/tmp/spillway-disks-');
    afterAll(() => rmSync(disks, { recursive: true, force: true }));
    const files = (disk: string): string[] =>
      existsSync(join(disks, disk)) ? readdirSync(join(disks, disk)) : ['gone'];
    const volume = (name: string, storageClassName: string, policy: string, more: Fields): Fields => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        storageClassName,
        persistentVolumeReclaimPolicy: policy,
        ...more,
      },
    });
    const storageClass = (name: string, more: Fields): Fields => ({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      ...more,
    });
    const onNode = {
      required: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['east-1'] }] },
        ],
      },
    };
    const claim = (name: string, storageClassName: string, more: Fields = {}): Fields => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: ns },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName, ...more },
    });
    const data = (name: string): Fields => ({
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
    });
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const remove = (...what: string[]): Promise<string> =>
      kubectl(host, ['delete', '-n', ns, ...what, '--timeout=90s'], { timeoutMs: 100_000 });
    const phaseOf = async (name: string): Promise<string | undefined> =>
      (await read<PersistentVolume>(member, `/api/v1/persistentvolumes/${name}`))?.status?.phase;

    beforeAll(async () => {
      const [local, made] = ['local', 'made'].map((name) => join(disks, name));
      for (const path of [local, made]) mkdirSync(path ?? '');
      const provisioner = 'kubernetes.io/no-provisioner';
      const later = { volumeBindingMode: 'WaitForFirstConsumer' };
      await member.apply([
        storageClass('local', { provisioner, ...later }),
        storageClass('made', { provisioner, volumeBindingMode: 'Immediate' }),
        volume('local', 'local', 'Retain', { local: { path: local }, nodeAffinity: onNode }),
        volume('made', 'made', 'Delete', { hostPath: { path: made } }),
      ]);
      const ofMembers = { provisioner: 'member.spillway.dev', parameters: { member: 'east' } };
      await host.apply([
        storageClass('made', { ...ofMembers, volumeBindingMode: 'Immediate', reclaimPolicy: 'Delete' }),
      ]);
    });

    test.each([
      ['of its first pod, on a local disk that is kept', 'disk', 'spillway', 'local', ['notes']],
      ['that binds at once, on one that goes with it', 'bind', 'made', 'made', ['gone']],
    ])('data of a claim %s', async (_, name, storageClassName, disk, left) => {
      await host.apply([claim(name, storageClassName)]);
      await outputOf(`${name}-writer`, [shell('echo written by one > /data/notes', { volumeMounts })], data(name));
      expect(files(disk)).toEqual(['notes']);
      await remove(`pod/${name}-writer`);
      const reader = [shell('cat /data/notes', { volumeMounts })];
      expect(await outputOf(`${name}-reader`, reader, data(name))).toBe('written by one\n');
      expect(await phaseOf(disk)).toBe('Bound');
      await remove(`pod/${name}-reader`);
      expect(files(disk)).toEqual(['notes']);
      await remove(`pvc/${name}`);
      const path = `/api/v1/namespaces/${ns}/persistentvolumeclaims/${name}`;
      await until('the claim is gone in the member', async () => (await read(member, path)) === undefined, LONG);
      await until(
        'the member does with the data what its volume says',
        async () => {
          const phase = await phaseOf(disk);
          return phase === (left[0] === 'gone' ? undefined : 'Released') && files(disk)[0] === left[0];
        },
        LONG,
      );
    });
  });

  describe.concurrent('failures', SIDE_BY_SIDE, () => {
    test('each container of a failing pod keeps its own exit code and last words', async () => {
      const words = 'echo last words > /dev/termination-log';
      await create('failing', [
        shell(`${words}; exit 3`),
        shell('exit 0', { name: 'good' }),
        shell('echo on stderr >&2; exit 127', { name: 'logged', terminationMessagePolicy: 'FallbackToLogsOnError' }),
      ]);
      const ended = await untilEnded('failing', 'Failed');
      expect(terminated(ended, 'main')).toMatchObject({ exitCode: 3, reason: 'Error', message: 'last words\n' });
      expect(terminated(ended, 'good')).toMatchObject({ exitCode: 0, reason: 'Completed' });
      expect(terminated(ended, 'logged')).toMatchObject({ exitCode: 127, message: 'on stderr\n' });
    });

    test('a command that is not there never runs, and the pod says so', async () => {
      await create('no-command', [{ name: 'main', image: IMAGES.busybox, command: ['/no/such/program'] }]);
      const ended = await untilEnded('no-command', 'Failed');
      expect(terminated(ended, 'main')).toMatchObject({ exitCode: 128, reason: 'StartError' });
    });

    test('an image that is not there keeps the pod waiting with the reason', async () => {
      await create('no-image', [{ name: 'main', image: 'spillway.test/none:1', imagePullPolicy: 'Never' }]);
      const waiting = await untilPod(
        host,
        ns,
        'no-image',
        'waits for its image',
        ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImageNeverPull',
        LONG,
      );
      expect(waiting.status?.phase).toBe('Pending');
    });

    test('a Job that fails is tried as often as it says and no more', async () => {
      await host.apply([
        {
          apiVersion: 'batch/v1',
          kind: 'Job',
          metadata: { name: 'failed', namespace: ns },
          spec: {
            backoffLimit: 1,
            template: { spec: podSpec([shell('echo trying; exit 4')], { restartPolicy: 'Never' }) },
          },
        },
      ]);
      await kubectl(host, ['wait', 'job/failed', '-n', ns, '--for=condition=Failed', '--timeout=120s'], {
        timeoutMs: 130_000,
      });
      const pods = await podsOf(host, ns, 'batch.kubernetes.io/job-name=failed');
      expect(pods.map((one) => exitCodeOf(one))).toEqual([4, 4]);
      for (const { metadata } of pods) expect(await logs(metadata.name)).toBe('trying\n');
    });
  });

  test('in a member that only a proxy reaches: logs and commands come through it, and an outage of it does no harm', async () => {
    const name = 'hidden';
    const user = { name: 'spillway', password: 'p@ss:w0rd/' };
    const proxy = await ForwardProxy.start({ user, names: { 'api.hidden:6443': member.server } });
    onTestFinished(() => proxy.close());
    // By HTTP CONNECT for the administrator, by SOCKS5 for the manager.
    const file = join(member.dir, 'hidden.kubeconfig');
    const cluster = { 'tls-server-name': 'kubernetes', 'proxy-url': proxy.url('http') };
    writeFileSync(file, await kubeconfigOf(member, { server: 'https://api.hidden:6443', cluster }), { mode: 0o600 });
    const byKubectl = await host.kubectl(['--kubeconfig', file, 'get', 'namespace', 'default', '-o', 'name']);
    expect(byKubectl).toMatchObject({ code: 0, stdout: 'namespace/default\n' });
    const words = ['join', name, '--member-kubeconfig', file, '--proxy-url'];
    const ofAdministrator = await kubectlSpillway(host, words.slice(0, -1));
    expect(ofAdministrator.stderr).toContain('the manager cannot reach the member through http://127.0.0.1:');
    const joined = await kubectlSpillway(host, [...words, proxy.url('socks5')], { timeoutMs: 70_000 });
    expect(joined).toMatchObject({ code: 0, stdout: expect.stringContaining('hidden is Ready') as string });

    await host.apply([pod(name, ns, podSpec([shell(`echo from afar; ${IDLE}`)], onNode(name)))]);
    const before = await untilRunning(host, ns, name);
    expect(await logs(name)).toBe('from afar\n');
    expect(await kubectl(host, ['exec', '-n', ns, name, '--', 'echo', 'done there'])).toBe('done there\n');
    expect(new Set(proxy.asked)).toEqual(new Set(['api.hidden:6443']));

    const condition = async (): Promise<string> => {
      const path = '{.status.conditions[?(@.type=="Reachable")]}';
      return await kubectl(host, ['get', 'membercluster', name, '-o', `jsonpath=${path}`]);
    };
    const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 };
    await kubectl(host, ['patch', 'membercluster', name, '--type=merge', '-p', JSON.stringify({ spec: { probe } })]);
    proxy.refusal = { http: 503, socks: 4 };
    proxy.cut();
    const said = await until('it is unreachable', async () => {
      const text = await condition();
      return text.includes('"ProxyFailed"') ? text : undefined;
    });
    expect(said).toMatch(/the proxy socks5:\/\/127\.0\.0\.1:\d+ refuses: .*HostUnreachable/);
    proxy.refusal = undefined;
    await until('it is reachable again', async () => (await condition()).includes('"ProbeSucceeded"'));
    expect((await untilRunning(host, ns, name)).metadata.uid).toBe(before.metadata.uid);
    expect(await logs(name)).toBe('from afar\n');
    const shown = await kubectl(host, ['get', 'memberclusters,events', '-A', '-o', 'yaml']);
    for (const text of [said, shown, joined.stderr, readFileSync(topology.spillway.process.spec.logFile, 'utf8')]) {
      for (const secret of [user.password, encodeURIComponent(user.password)]) expect(text).not.toContain(secret);
    }
    const gone = ['delete', 'pod', '-n', ns, name, '--timeout=30s'];
    await kubectl(host, gone, { timeoutMs: 40_000 });
    await kubectlSpillway(host, ['leave', name, '--timeout', '60'], { timeoutMs: 70_000 });
  });
});
