import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import type { AuditEvent } from '../../hack/audit-log.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { SYSTEM_NAMESPACE, waitReady, type Spillway } from '../../hack/spillway.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { KUBELET_PORT_COUNT } from '../../src/kubelet/kubelet-ports.ts';
import {
  describeWrite,
  exitCodeOf,
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
  shell,
  untilGone,
  untilPod,
  untilRunning,
  writesOf,
  writesOfAll,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/**
 * How soon after its start the program gives members new pods, in ms: sooner than it could if it had to wait for the leases of
 * its killed predecessor, which last 15 s.
 */
const BACK_MS = 12_000;

/**
 * What has to be the same of a member pod before and after, and of each of its containers. Not its resourceVersion: the
 * member's own kubelet writes when it likes. That we did not is in the audit logs.
 */
function lifeOf({ metadata, status }: Pod): unknown {
  const containers = status?.containerStatuses?.map(({ name, containerID, restartCount, state }) => [
    name,
    containerID,
    restartCount,
    state?.running?.startedAt,
  ]);
  return [metadata.name, metadata.uid, metadata.generation, status?.startTime, containers];
}

describe.runIf(kubelets.ok)('the program ends and starts again', () => {
  const steady = 'steady';
  const jobs = 'jobs';
  let topology: Topology;
  let host: Cluster;
  let spillway: Spillway;
  /** A real kubelet: 5 of the 50 pods, and everything that ends. */
  let real: Cluster;
  /** kwok: 45 of the 50 pods. */
  let played: Cluster;
  /** Another program on the first port that virtual nodes may have. */
  let squatter: Server;
  let firstPort = 0;

  beforeAll(async () => {
    firstPort = await freePort('0.0.0.0');
    squatter = createServer().listen(firstPort, '0.0.0.0');
    await once(squatter, 'listening');
    topology = await startTopology({
      spillway: { args: ['--first-port', String(firstPort)] },
      members: [
        { name: 'real', kubelet: 'real-1' },
        { name: 'played', kwok: { nodes: 2 } },
      ],
    });
    ({ host, spillway } = topology);
    real = topology.member('real').cluster;
    played = topology.member('played').cluster;
    await Promise.all([newNamespace(host, steady), newNamespace(host, jobs)]);
    await host.apply([deployment('real', 5), deployment('played', 45)]);
    await kubectl(host, ['rollout', 'status', 'deployment/real', '-n', steady, '--timeout=120s']);
    await kubectl(host, ['rollout', 'status', 'deployment/played', '-n', steady, '--timeout=120s']);
  });

  afterAll(async () => {
    await topology?.close();
    if (squatter?.listening) squatter.close();
  });

  function deployment(node: string, replicas: number): Fields {
    const labels = { app: node };
    const template = { metadata: { labels }, spec: podSpec([shell(IDLE)], onNode(node)) };
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: node, namespace: steady },
      spec: { replicas, selector: { matchLabels: labels }, template },
    };
  }

  async function lives(): Promise<unknown[]> {
    const pods = [...(await podsOf(real, steady)), ...(await podsOf(played, steady))];
    return pods.map(lifeOf);
  }

  async function hostVersions(): Promise<Map<string, string | undefined>> {
    return new Map((await podsOf(host, steady)).map(({ metadata }) => [metadata.uid ?? '', metadata.resourceVersion]));
  }

  /** Kills it as a crash would, and starts it again; `meanwhile` happens while it is down. */
  async function crash(meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<number> {
    await spillway.process.stop('SIGKILL');
    await meanwhile();
    const began = Date.now();
    spillway.process.restart();
    await waitReady(spillway);
    return began;
  }

  /** The members are followed again and every key has been looked at once. */
  async function settled(since: number): Promise<void> {
    await until(
      'both virtual nodes are renewed again',
      async () => {
        const leases = ['real', 'played'].map((node) =>
          read<{ spec: { renewTime?: string } }>(
            host,
            `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`,
          ),
        );
        return (await Promise.all(leases)).every((lease) => Date.parse(lease?.spec.renewTime ?? '') > since);
      },
      { timeoutMs: 60_000 },
    );
    const name = `probe-${since}`;
    await host.apply(
      ['real', 'played'].map((node) => pod(`${name}-${node}`, 'default', podSpec([shell(IDLE)], onNode(node)))),
    );
    for (const node of ['real', 'played']) {
      await untilRunning(host, 'default', `${name}-${node}`, { timeoutMs: 60_000 });
      await kubectl(host, ['delete', 'pod', `${name}-${node}`, '--wait=false']);
    }
  }

  /** Who holds the members, by their leases. */
  async function holders(): Promise<(string | undefined)[]> {
    const leases = ['real', 'played'].map((member) =>
      read<{ spec: { holderIdentity?: string } }>(
        host,
        `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM_NAMESPACE}/leases/spillway-member-${member}`,
      ),
    );
    return (await Promise.all(leases)).map((lease) => lease?.spec.holderIdentity);
  }

  /** The ports that the Nodes say. */
  async function kubeletPorts(): Promise<number[]> {
    const nodes = await Promise.all(['real', 'played'].map(getNode));
    return nodes.map(({ status }) => status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0);
  }

  const aboutPods =
    (namespace: string) =>
    ({ objectRef }: AuditEvent): boolean =>
      objectRef?.resource === 'pods' && objectRef.namespace === namespace;

  test('kill -9 with 50 running pods: nothing in the members changes, nothing is written anywhere', async () => {
    const before = { lives: await lives(), versions: await hostVersions() };
    expect(before.lives).toHaveLength(50);
    expect((await podsOf(host, steady)).every(isReady)).toBe(true);

    const former = await holders();
    const ports = await kubeletPorts();
    // The first one is taken, so they have the next free ones, one each.
    for (const port of ports) {
      expect(port).toBeGreaterThan(firstPort);
      expect(port).toBeLessThan(firstPort + KUBELET_PORT_COUNT);
    }
    expect(new Set(ports).size).toBe(2);
    // A lower port is free from now on: nodes keep theirs all the same.
    squatter.close();
    await once(squatter, 'close');
    const fresh = (['real', 'played'] as const).map((node) => ({ node, name: `fresh-${node}` }));
    const since = await crash(async () => {
      await host.apply(fresh.map(({ node, name }) => pod(name, 'default', podSpec([shell(IDLE)], onNode(node)))));
    });
    const ready = Date.now();
    // What the member's kubelet takes to start them is its own affair.
    const of = { real, played };
    await Promise.all(fresh.map(({ node, name }) => untilPod(of[node], 'default', name, 'is there', () => true)));
    expect(Date.now() - ready).toBeLessThan(BACK_MS);
    await Promise.all(fresh.map(({ name }) => untilRunning(host, 'default', name)));
    await kubectl(host, ['delete', 'pods', ...fresh.map(({ name }) => name), '--wait=false']);
    await settled(since);
    expect(await kubeletPorts()).toEqual(ports);
    // A crash leaves the members' leases behind, and they last 15 s; but they are its own, as the kernel knows it is dead.
    expect(await holders()).toEqual(former);
    expect(former).not.toContain(undefined);

    expect(await lives()).toEqual(before.lives);
    expect(await hostVersions()).toEqual(before.versions);
    for (const cluster of [host, real, played]) {
      expect(writesOf(cluster, since).filter(aboutPods(steady)).map(describeWrite), cluster.name).toEqual([]);
    }
  });

  test('what happened while it was down is handled after its start: exact exit codes, nothing runs twice', async () => {
    const waits = 'until [ -e /tmp/go ]; do sleep 0.1; done';
    const job = (name: string, exitCode: number, node: string, spec: Fields = {}): Fields => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, namespace: jobs },
      spec: {
        backoffLimit: 0,
        template: {
          spec: podSpec([shell(`${waits}; exit ${exitCode}`)], { restartPolicy: 'Never', ...onNode(node), ...spec }),
        },
      },
    });
    await host.apply([
      job('good', 0, 'real'),
      job('bad', 23, 'real'),
      pod('crashing', jobs, podSpec([shell(`${waits}; rm /tmp/go; exit 4`)], onNode('real'))),
      pod('leaving', jobs, podSpec([shell(IDLE)], onNode('real'))),
      pod('stays', jobs, podSpec([shell(IDLE)], onNode('real'))),
    ]);
    const ofJob = async (name: string): Promise<Pod[]> => await podsOf(host, jobs, `job-name=${name}`);
    for (const name of ['good', 'bad']) {
      await until(`job ${name} runs`, async () => (await ofJob(name)).some(isReady));
    }
    for (const name of ['crashing', 'leaving', 'stays']) await untilRunning(host, jobs, name);
    const [good, bad] = [(await ofJob('good'))[0], (await ofJob('bad'))[0]];
    const names = [good?.metadata.name ?? '', bad?.metadata.name ?? ''];
    const staying = lifeOf(await getPod(real, jobs, 'stays'));

    const since = await crash(async () => {
      for (const name of [...names, 'crashing'])
        await kubectl(real, ['exec', '-n', jobs, name, '--', 'touch', '/tmp/go']);
      for (const name of names) {
        await untilPod(real, jobs, name, 'has ended', ({ status }) => /Succeeded|Failed/.test(status?.phase ?? ''));
      }
      await untilPod(
        real,
        jobs,
        'crashing',
        'was restarted',
        ({ status }) => status?.containerStatuses?.some(({ restartCount }) => restartCount === 1) === true,
      );
      await kubectl(host, ['delete', 'pod', 'leaving', '-n', jobs, '--wait=false']);
      await host.apply([pod('arrived', jobs, podSpec([shell(IDLE)], onNode('real')))]);
      expect((await getPod(host, jobs, names[0] ?? '')).status?.phase).toBe('Running');
    });

    await kubectl(host, ['wait', 'job/good', '-n', jobs, '--for=condition=Complete', '--timeout=60s']);
    await kubectl(host, ['wait', 'job/bad', '-n', jobs, '--for=condition=Failed', '--timeout=60s']);
    expect((await ofJob('good')).map((one) => [one.metadata.uid, one.status?.phase, exitCodeOf(one)])).toEqual([
      [good?.metadata.uid, 'Succeeded', 0],
    ]);
    expect((await ofJob('bad')).map((one) => [one.metadata.uid, one.status?.phase, exitCodeOf(one)])).toEqual([
      [bad?.metadata.uid, 'Failed', 23],
    ]);
    const crashed = await untilPod(
      host,
      jobs,
      'crashing',
      'shows its restart',
      ({ status }) => status?.containerStatuses?.some(({ restartCount }) => restartCount === 1) === true,
    );
    expect(crashed.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode).toBe(4);
    await untilGone(host, jobs, 'leaving');
    expect(await readPod(real, jobs, 'leaving')).toBeUndefined();
    await untilRunning(host, jobs, 'arrived');
    expect(lifeOf(await getPod(real, jobs, 'stays'))).toEqual(staying);

    const below = writesOf(real, since).filter(aboutPods(jobs)).map(describeWrite);
    expect(below.sort()).toEqual([`create pods ${jobs}/arrived 201`, `delete pods ${jobs}/leaving 200`]);
  });

  test('a host pod that vanished while it was down: its copy goes, but only after a time of doubt', async () => {
    const definition = pod('vanished', jobs, podSpec([shell(IDLE)], onNode('real')));
    await host.apply([definition]);
    await untilRunning(host, jobs, 'vanished');
    const copy = await getPod(real, jobs, 'vanished');
    const since = await crash(async () => {
      await kubectl(host, ['delete', 'pod', 'vanished', '-n', jobs, '--force', '--grace-period=0']);
      await untilGone(host, jobs, 'vanished');
    });
    await settled(since);
    expect((await getPod(real, jobs, 'vanished')).metadata).toMatchObject({ uid: copy.metadata.uid });
    expect((await getPod(real, jobs, 'vanished')).metadata.deletionTimestamp).toBeUndefined();
    await untilGone(real, jobs, 'vanished', { timeoutMs: 100_000, intervalMs: 250 });
    expect((await lives()).length).toBe(50);
  }, 240_000);

  test('a virtual node that somebody deleted is back within seconds, and its pods know nothing of it', async () => {
    // The room of a copy that has just gone is offered within half a minute.
    const whole = (await read<Node>(real, '/api/v1/nodes/real-1'))?.status?.allocatable?.['pods'];
    await until('all its room is offered', async () => (await getNode('real')).status?.allocatable?.['pods'] === whole);
    const before = { node: await getNode('real'), lives: await lives(), versions: await hostVersions() };
    const since = Date.now();
    await kubectl(host, ['delete', 'node', 'real']);
    const after = await until(
      'the node is back',
      async () => {
        const node = await read<Node>(host, '/api/v1/nodes/real');
        return node !== undefined && node.metadata.uid !== before.node.metadata.uid ? node : undefined;
      },
      { timeoutMs: 30_000 },
    );
    expect(after.metadata.labels).toEqual(before.node.metadata.labels);
    expect(after.spec?.taints?.filter(({ key }) => key.startsWith('spillway.dev/'))).toEqual(
      before.node.spec?.taints?.filter(({ key }) => key.startsWith('spillway.dev/')),
    );
    await until(
      'it is Ready and offers the same',
      async () => {
        const node = await getNode('real');
        const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
        return ready && node.status?.allocatable?.['pods'] === before.node.status?.allocatable?.['pods'];
      },
      { timeoutMs: 30_000 },
    );
    expect(await lives()).toEqual(before.lives);
    // Not the host's own controllers either.
    const writes = writesOfAll(host, since).filter(aboutPods(steady));
    expect(writes.map((write) => `${write.userAgent}: ${describeWrite(write)}`)).toEqual([]);
    expect(await hostVersions()).toEqual(before.versions);
    expect(writesOf(real, since).filter(aboutPods(steady)).map(describeWrite)).toEqual([]);
    const [first] = await podsOf(host, steady, 'app=real');
    expect(await kubectl(host, ['exec', '-n', steady, first?.metadata.name ?? '', '--', 'echo', 'still here'])).toBe(
      'still here\n',
    );
  });

  test('SIGTERM ends it within the grace of its pod: streams drain, the last is cut, leases are given back', async () => {
    const [first] = await podsOf(host, steady, 'app=real');
    const before = await lives();
    const exec = (script: string) =>
      host.kubectl(['exec', '-n', steady, first?.metadata.name ?? '', '--', 'sh', '-c', script]);
    const short = exec('echo on; sleep 3; echo done');
    const long = exec('echo on; sleep 60; echo done');
    await until('both streams are open', async () => {
      const metrics = await (await fetch(`${spillway.url}/metrics`)).text();
      return /^spillway_kubelet_open_streams\{route="exec"\} 2$/m.test(metrics);
    });
    const versions = await hostVersions();
    const began = Date.now();
    spillway.process.signal('SIGTERM');
    // Streams may go on for 8 s; what comes after that takes a moment.
    await until('the process has ended', () => !spillway.process.running, { timeoutMs: 20_000, intervalMs: 20 });
    expect(spillway.process.logTail(1)).toContain('"msg":"stopped"');
    expect(await short).toMatchObject({ code: 0, stdout: 'on\ndone\n' });
    expect((await long).stdout).toBe('on\n');
    expect((await holders()).map((holder) => holder ?? '')).toEqual(['', '']);
    expect(await lives()).toEqual(before);
    expect(await hostVersions()).toEqual(versions);
    for (const cluster of [host, real, played]) {
      expect(writesOf(cluster, began).filter(aboutPods(steady)).map(describeWrite), cluster.name).toEqual([]);
    }

    spillway.process.restart();
    await waitReady(spillway);
    // Nobody has to wait for a lease that was given back.
    const name = 'right-away';
    await host.apply([pod(name, jobs, podSpec([shell(IDLE)], onNode('real')))]);
    await untilRunning(host, jobs, name);
  });

  async function getNode(name: string): Promise<Node> {
    const node = await read<Node>(host, `/api/v1/nodes/${name}`);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }
});
