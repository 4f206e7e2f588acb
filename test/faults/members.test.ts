import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { admitHost, startSpillway, SYSTEM_NAMESPACE, waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { FaultProxy } from '../fixtures/fault-proxy.ts';
import {
  condition,
  eventsOf,
  exitCodeOf,
  getPod,
  isReady,
  kubectl,
  newNamespace,
  podsOf,
  read,
  readPod,
  serviceAccountIn,
  untilGone,
  untilPod,
  untilRunning,
  writesOf,
} from '../fixtures/live-pods.ts';
import { OwnHosts } from '../fixtures/own-hosts.ts';
import { idle, isPodOf, Lab, MEMBER, memberKubeconfig, numbered, phaseOf, report, seconds, wait } from './lab.ts';

const CONFIRM = /kubectl annotate --overwrite membercluster \S+ (\S+)$/;

/** Our taints go within that, once the line to a member is whole. */
const TAINT_GOES_MS = 5_000;

/** Harm that is done to members and to what is in them, and to the program itself. */
describe('members and their pods', () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.start({ proxied: ['member'] });
  });
  afterAll(() => lab?.close());

  const deletions = (namespace: string, since: number) =>
    writesOf(lab.member, since)
      .filter(isPodOf(namespace))
      .filter(({ verb }) => verb === 'delete');

  test('F33: pods are deleted by hand in the member', async (context) => {
    const ns = await newNamespace(lab.host, 'by-hand');
    const labels = { app: 'web' };
    const { spec } = idle('web', ns) as { spec: object };
    await lab.host.apply([
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: ns },
        spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
      },
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'done', namespace: ns },
        spec: { template: { spec: { ...spec, restartPolicy: 'Never' } } },
      },
    ]);
    const ofWeb = async (): Promise<Pod[]> => (await podsOf(lab.host, ns, 'app=web')).filter(isReady);
    await until('two replicas run', async () => (await ofWeb()).length === 2, { timeoutMs: 60_000 });
    await kubectl(lab.host, ['wait', 'job/done', '-n', ns, '--for=condition=Complete', '--timeout=60s']);
    const before = await ofWeb();
    const [done] = await podsOf(lab.host, ns, 'job-name=done');
    const began = Date.now();
    await kubectl(lab.member, ['delete', 'pods', '--all', '-n', ns, '--wait=false']);
    await until(
      'both were replaced',
      async () => {
        const now = await ofWeb();
        return (
          now.length === 2 && now.every(({ metadata }) => before.every((one) => one.metadata.uid !== metadata.uid))
        );
      },
      { timeoutMs: 60_000 },
    );
    const took = Date.now() - began;
    const [still] = await podsOf(lab.host, ns, 'job-name=done');
    expect([still?.metadata.uid, still?.status?.phase]).toEqual([done?.metadata.uid, 'Succeeded']);
    expect(await podsOf(lab.member, ns, 'job-name=done')).toEqual([]);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F33'],
      'running ones Failed and replaced, finished ones stay',
      `2 of 2 replaced after ${seconds(took)}; Job not run again`,
    );
  });

  test('F32: the namespace is deleted in the member', async (context) => {
    const ns = await newNamespace(lab.host, 'torn');
    await lab.runPods(ns, numbered(5, 'torn'));
    const since = Date.now();
    await kubectl(lab.member, ['delete', 'namespace', ns, '--wait=true', '--timeout=60s']);
    await until('all are Failed with a reason', async () => {
      const pods = await podsOf(lab.host, ns);
      return pods.length === 5 && pods.every((pod) => phaseOf(pod) === 'Failed' && (pod.status?.reason ?? '') !== '');
    });
    const reasons = new Set((await podsOf(lab.host, ns)).map(({ status }) => status?.reason));
    await wait(10_000);
    const created = writesOf(lab.member, since).filter(
      ({ verb, objectRef }) => verb === 'create' && objectRef?.namespace === ns,
    );
    expect(created).toEqual([]);
    expect(exitCodeOf((await podsOf(lab.host, ns))[0] as Pod)).not.toBe(0);
    // And the namespace may be used again.
    await lab.runPods(ns, ['anew']).catch(() => undefined);
    await untilRunning(lab.host, ns, 'anew', { timeoutMs: 60_000 });
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F32'],
      'lost with a reason, no create loop',
      `5 of 5 Failed (${[...reasons].join(', ')}), 0 creates into it`,
    );
  });

  test("F38: a stranger's pod has the name", async (context) => {
    const ns = await newNamespace(lab.host, 'strange');
    await lab.member.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ns, labels: { 'spillway.dev/allow-host': 'any' } } },
    ]);
    await serviceAccountIn(lab.member, ns);
    const { spec } = idle('mine', ns) as { spec: { containers: object[] } };
    await lab.member.apply([
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'mine', namespace: ns },
        spec: { containers: spec.containers },
      },
    ]);
    await untilRunning(lab.member, ns, 'mine');
    const before = await getPod(lab.member, ns, 'mine');
    const since = Date.now();
    await lab.host.apply([idle('mine', ns)]);
    await untilPod(lab.host, ns, 'mine', 'is held', (pod) => pod.status?.reason === 'NameTaken');
    await lab.crash();
    await lab.works();
    await kubectl(lab.host, ['delete', 'pod', 'mine', '-n', ns]);
    expect(await getPod(lab.member, ns, 'mine')).toEqual(before);
    const sent = writesOf(lab.member, since).filter(isPodOf(ns));
    expect(sent.filter(({ responseStatus }) => (responseStatus?.code ?? 0) < 300)).toEqual([]);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F38'],
      'left alone, conflict shown',
      `NameTaken; a restart and a deletion later it is byte for byte the same`,
    );
  });

  test('F24: the member is cut off for a minute', async (context) => {
    const ns = await newNamespace(lab.host, 'cut');
    await lab.runPods(ns, numbered(10, 'cut'));
    const taints = async (): Promise<string[]> => {
      const node = await read<{ spec?: { taints?: { key: string; effect: string }[] } }>(
        lab.host,
        `/api/v1/nodes/${MEMBER}`,
      );
      return (node?.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).toSorted();
    };
    const ofOthers = ['example.com/before:NoSchedule', 'example.com/meanwhile:NoSchedule'];
    const [early = '', late = ''] = ofOthers;
    await kubectl(lab.host, ['taint', 'node', MEMBER, early]);
    const tainted = await taints();
    const before = (await podsOf(lab.member, ns)).map(({ metadata }) => [
      metadata.name,
      metadata.uid,
      metadata.resourceVersion,
    ]);
    const since = Date.now();
    lab.proxies.member.freeze();
    await until(
      'pods are shown as not ready',
      async () => (await podsOf(lab.host, ns)).every((pod) => condition(pod, 'Ready')?.status === 'False'),
      {
        timeoutMs: 50_000,
      },
    );
    const unready = Date.now() - since;
    await kubectl(lab.host, ['taint', 'node', MEMBER, late]);
    const OURS = 'spillway.dev/member-unreachable:NoSchedule';
    expect(await taints()).toEqual([...tainted, late, OURS].toSorted());
    await wait(60_000 - (Date.now() - since));
    const back = Date.now();
    const sinceBack = async (what: string, isSo: () => Promise<boolean>): Promise<number> => {
      await until(what, isSo, { timeoutMs: 60_000, intervalMs: 100 });
      return Date.now() - back;
    };
    lab.proxies.member.thaw();
    const [answers, untainted, healed] = await Promise.all([
      sinceBack('it is known to answer', async () => (await lab.condition('Reachable')).startsWith('True')),
      sinceBack('our taint is gone', async () => !(await taints()).includes(OURS)),
      sinceBack('all are ready again', async () => (await podsOf(lab.host, ns)).every(isReady)),
    ]);
    expect(answers).toBeLessThan(TAINT_GOES_MS);
    expect(untainted).toBeLessThan(TAINT_GOES_MS);
    await waitForNode(lab.host, MEMBER);
    expect(await taints()).toEqual([...tainted, late].toSorted());
    await kubectl(lab.host, ['taint', 'node', MEMBER, ...ofOthers.map((taint) => `${taint}-`)]);
    expect(
      (await podsOf(lab.member, ns)).map(({ metadata }) => [metadata.name, metadata.uid, metadata.resourceVersion]),
    ).toEqual(before);
    const removed = [...writesOf(lab.host, since), ...writesOf(lab.member, since)]
      .filter(isPodOf(ns))
      .filter(({ verb }) => verb !== 'patch');
    expect(removed).toEqual([]);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F24'],
      'not ready, nothing deleted, heals',
      `10 pods not ready after ${seconds(unready)}, ready again ${seconds(healed)} after the line; our taint gone ${seconds(untainted)} after it, those of others not; member pods unchanged`,
    );
  });

  test('F59: a pod of a StatefulSet is deleted by force while the member is cut off', async (context) => {
    const ns = await newNamespace(lab.host, 'forced');
    const labels = { app: 'db' };
    const { spec } = idle('db', ns) as { spec: object };
    await lab.host.apply([
      {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name: 'db', namespace: ns },
        spec: { serviceName: 'db', selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
      },
    ]);
    const former = await untilRunning(lab.host, ns, 'db-0', { timeoutMs: 60_000 });
    const since = Date.now();
    lab.proxies.member.freeze();
    await kubectl(lab.host, ['delete', 'pod', 'db-0', '-n', ns, '--force', '--grace-period=0']);
    await untilPod(lab.host, ns, 'db-0', 'was made anew', ({ metadata }) => metadata.uid !== former.metadata.uid);
    await wait(20_000);
    lab.proxies.member.thaw();
    const back = Date.now();
    const now = await untilPod(
      lab.host,
      ns,
      'db-0',
      'runs anew',
      (pod) => isReady(pod) && pod.metadata.uid !== former.metadata.uid,
      { timeoutMs: 90_000 },
    );
    const took = Date.now() - back;
    const below = await podsOf(lab.member, ns);
    expect(below.map(({ metadata }) => metadata.labels?.['spillway.dev/uid'])).toEqual([now.metadata.uid]);
    const sent = writesOf(lab.member, since)
      .filter(isPodOf(ns))
      .filter(
        ({ objectRef, responseStatus }) => objectRef?.subresource === undefined && (responseStatus?.code ?? 0) < 300,
      )
      .map(({ verb }) => verb);
    expect(sent.filter((verb) => verb === 'create')).toHaveLength(1);
    expect(sent.indexOf('delete')).toBeLessThan(sent.indexOf('create'));
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F59'],
      'one copy at any time',
      `the former copy was deleted and gone before the new one was made; it ran ${seconds(took)} after the line was back`,
    );
  });

  test('F64: the name of the member leads nowhere, to a stranger, and then elsewhere', async (context) => {
    const hosts = new OwnHosts(lab.workspace.dir);
    const problem = await hosts.unavailable();
    if (problem !== undefined) return context.skip(problem);
    const [name, port] = ['member.spillway.test', await freePort()];
    const { server, ca } = lab.member.adminAccess;
    const at = async (address: string, authority: Cluster): Promise<FaultProxy> =>
      await FaultProxy.start({ server, ca, ...lab.memberAccess }, await authority.issueServing(name, [name]), {
        host: address,
        port,
      });
    const [first, stranger, other] = await Promise.all([
      at('127.0.0.2', lab.member),
      at('127.0.0.3', lab.host),
      at('127.0.0.4', lab.member),
    ]);
    const open = new Set([first, stranger, other]);
    const secret = `/api/v1/namespaces/${SYSTEM_NAMESPACE}/secrets/member-${MEMBER}`;
    const kubeconfig = readFileSync(memberKubeconfig(lab.member), 'utf8');
    const use = async (text: string): Promise<void> => {
      await lab.host.api.call('PATCH', secret, { stringData: { kubeconfig: text } });
    };
    const { spec } = lab.spillway.process;
    const former = { file: spec.file, args: spec.args };
    const reachable = async (beginning: string): Promise<void> => {
      await until(`Reachable is ${beginning}`, async () => (await lab.condition('Reachable')).startsWith(beginning), {
        timeoutMs: 90_000,
      });
    };
    try {
      hosts.lead({ [name]: '127.0.0.2' });
      await lab.crash(async () => {
        await use(kubeconfig.replaceAll(lab.proxies.member.url, `https://${name}:${port}`));
        Object.assign(spec, hosts.wrap(former));
      });
      const ns = await newNamespace(lab.host, 'named');
      await lab.runPods(ns, numbered(10, 'named'));
      expect(first.seen.length).toBeGreaterThan(0);
      const below = async (): Promise<unknown[]> =>
        (await podsOf(lab.member, ns)).map(({ metadata }) => [metadata.name, metadata.uid, metadata.resourceVersion]);
      const before = await below();
      const since = Date.now();

      hosts.lead({});
      open.delete(first);
      await first.close();
      await reachable('False NameNotFound');
      const noticed = Date.now() - since;
      hosts.lead({ [name]: '127.0.0.3' });
      await reachable('False TLSVerifyFailed');
      await wait(5_000);
      expect(stranger.seen).toEqual([]);
      const back = Date.now();
      hosts.lead({ [name]: '127.0.0.4' });
      await reachable('True');
      const healed = Date.now() - back;
      await waitForNode(lab.host, MEMBER);
      await lab.works();
      await until('all are ready', async () => (await podsOf(lab.host, ns)).every(isReady), { timeoutMs: 60_000 });
      expect(other.seen.length).toBeGreaterThan(0);
      expect(await below()).toEqual(before);
      const writes = [...writesOf(lab.host, since), ...writesOf(lab.member, since)].filter(isPodOf(ns));
      expect(writes.filter(({ verb }) => verb !== 'patch')).toEqual([]);
      expect(lab.violations()).toEqual([]);
      report(
        context,
        ['F64'],
        'reconnects; nothing is said to a stranger',
        `name unknown: noticed after ${seconds(noticed)}; a server of another CA in its place got 0 requests; at the new ` +
          `address after ${seconds(healed)}; 10 member pods unchanged`,
      );
    } finally {
      await lab.crash(async () => {
        await use(kubeconfig);
        Object.assign(spec, former);
      });
      await Promise.all([...open].map((proxy) => proxy.close()));
    }
    await lab.works();
  }, 400_000);

  test('I2: host pods vanish in numbers; the breaker opens, outlives a restart, and closes on confirmation', async (context) => {
    const ns = await newNamespace(lab.host, 'vanish');
    const names = numbered(12, 'vanish');
    await lab.runPods(ns, names);
    const uids = new Set((await podsOf(lab.member, ns)).map(({ metadata }) => metadata.uid));
    const since = Date.now();
    await lab.crash(async () => {
      await kubectl(lab.host, ['delete', 'pods', '--all', '-n', ns, '--force', '--grace-period=0']);
      await until('they are gone from the host', async () => (await podsOf(lab.host, ns)).length === 0);
    });
    let kept = 0;
    const opened = await until(
      'the breaker is open and holds the rest',
      async () => {
        const text = await lab.condition('DeletionsAllowed');
        kept = Number(/ (\d+) pods are kept/.exec(text)?.[1] ?? 0);
        const whole =
          text.startsWith('False DeletionBreakerOpen') && kept + deletions(ns, since).length === names.length;
        return whole ? text : undefined;
      },
      { timeoutMs: 150_000, intervalMs: 500 },
    );
    // Those that were judged before the sixth, and were not gone when it opened, are kept with the others.
    expect(kept).toBeGreaterThanOrEqual(names.length - 5);
    await until('the others are gone', async () => (await podsOf(lab.member, ns)).length === kept);
    expect((await eventsOf(lab.host, 'default', MEMBER, 'MemberCluster')).map(({ reason }) => reason)).toContain(
      'DeletionBreakerOpen',
    );
    expect(await lab.metric('spillway_deletion_breaker_open', MEMBER)).toBe(1);
    expect(await lab.metric('spillway_pods_kept', MEMBER)).toBe(kept);

    // A wrong token confirms nothing; nor does a restart.
    await kubectl(lab.host, [
      'annotate',
      'membercluster',
      MEMBER,
      `spillway.dev/confirm-deletions=${kept}-0000000000`,
      '--overwrite',
    ]);
    await lab.crash();
    expect(await lab.metric('spillway_deletion_breaker_open', MEMBER)).toBeLessThanOrEqual(1);
    const again = await until(
      'it is open again with all of them',
      async () => {
        const text = await lab.condition('DeletionsAllowed');
        return (await lab.metric('spillway_pods_kept', MEMBER)) === kept && text === opened ? text : undefined;
      },
      { timeoutMs: 150_000, intervalMs: 500 },
    );
    expect(deletions(ns, since)).toHaveLength(names.length - kept);
    await lab.works();

    const [, annotation = ''] = CONFIRM.exec(again) ?? [];
    expect(annotation).toMatch(new RegExp(`^spillway\\.dev/confirm-deletions=${kept}-[0-9a-f]{10}$`));
    await kubectl(lab.host, ['annotate', 'membercluster', MEMBER, annotation, '--overwrite']);
    const began = Date.now();
    await until('all are gone', async () => (await podsOf(lab.member, ns)).length === 0, { timeoutMs: 30_000 });
    const took = Date.now() - began;
    await until('the condition says so', async () => {
      const text = await lab.condition('DeletionsAllowed');
      if (text.startsWith('True')) return true;
      throw new Error(text);
    });
    expect(await lab.metric('spillway_deletion_breaker_open', MEMBER)).toBe(0);
    expect(uids.size).toBe(12);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['I2'],
      'kept until confirmed',
      `12 vanished: after a minute of doubt ${12 - kept} copies deleted, ${kept} kept, also over a restart; gone ` +
        `${seconds(took)} after the confirmation`,
    );
  }, 600_000);

  test('F08: two programs, one virtual node; the one in charge hangs', async (context) => {
    const ns = await newNamespace(lab.host, 'two');
    const first = lab.spillway;
    const second = await startSpillway(lab.host, { name: 'second', args: ['--host-identity', 'NodeCertificate'] });
    const holder = async (): Promise<string> => {
      const path = `/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/spillway-member-${MEMBER}`;
      return (await read<{ spec: { holderIdentity?: string } }>(lab.host, path))?.spec.holderIdentity ?? '';
    };
    const former = await holder();
    await lab.runPods(ns, numbered(5, 'one'));
    expect(await holder()).toBe(former);
    const stopped = Date.now();
    first.process.signal('SIGSTOP');
    await until('the other one is in charge', async () => (await holder()) !== former, { timeoutMs: 60_000 });
    const taken = Date.now() - stopped;
    await lab.host.apply(numbered(5, 'next').map((name) => idle(name, ns)));
    for (const name of numbered(5, 'next')) await untilRunning(lab.host, ns, name, { timeoutMs: 60_000 });
    const names = numbered(5, 'one');
    await kubectl(lab.host, ['delete', 'pod', ...names, '-n', ns, '--wait=false']);
    for (const name of names) await untilGone(lab.host, ns, name);
    const before = await lab.lives(ns);
    const awake = Date.now();
    first.process.signal('SIGCONT');
    await wait(20_000);
    expect(await holder()).not.toBe(former);
    expect(await lab.lives(ns)).toEqual(before);
    expect(writesOf(lab.member, awake).filter(isPodOf(ns))).toEqual([]);
    const leaving = Date.now();
    await second.process.stop('SIGTERM', 15_000);
    await until('the first one is back in charge', async () => (await holder()) === former, { timeoutMs: 30_000 });
    await lab.works();
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F08'],
      'one acts at a time',
      `taken over ${seconds(taken)} after the hang; awake again it wrote nothing; given back in ${seconds(Date.now() - leaving)}`,
    );
  }, 300_000);

  test('F21: the etcd of the host is restored to an older state', async (context) => {
    const ns = await newNamespace(lab.host, 'restored');
    await lab.runPods(ns, numbered(3, 'known'));
    const [data, backup] = [join(lab.host.dir, 'etcd'), join(lab.host.dir, 'etcd-backup')];
    const whileDown = async (meanwhile: () => void): Promise<void> => {
      await lab.spillway.process.stop('SIGTERM', 15_000);
      await lab.halt(lab.host, meanwhile);
      lab.spillway.process.restart();
      await waitReady(lab.spillway);
    };
    await whileDown(() => cpSync(data, backup, { recursive: true }));
    await lab.works(90_000);
    await lab.runPods(ns, [...numbered(3, 'known'), ...numbered(8, 'young')]);
    // The host's history goes on for a while.
    for (let i = 0; i < 500; i++) {
      await lab.host.api.call('PATCH', `/api/v1/namespaces/${ns}`, { metadata: { annotations: { i: String(i) } } });
    }
    const before = (await podsOf(lab.member, ns)).map(({ metadata }) => [metadata.name, metadata.uid]);
    expect(before).toHaveLength(11);
    const since = Date.now();
    await whileDown(() => {
      rmSync(data, { recursive: true, force: true });
      cpSync(backup, data, { recursive: true });
    });
    expect(await podsOf(lab.host, ns)).toHaveLength(3);
    const text = await until(
      'it is told',
      async () => {
        const now = await lab.condition('DeletionsAllowed');
        return now.includes('8 pods are kept') ? now : undefined;
      },
      { timeoutMs: 90_000, intervalMs: 250 },
    );
    expect(text).toContain('restore from a backup');
    // Longer than the doubt about a pod that is merely missing.
    await wait(75_000);
    expect((await podsOf(lab.member, ns)).map(({ metadata }) => [metadata.name, metadata.uid])).toEqual(before);
    expect(deletions(ns, since)).toEqual([]);
    await lab.works(90_000);
    const [, annotation = ''] = CONFIRM.exec(await lab.condition('DeletionsAllowed')) ?? [];
    await kubectl(lab.host, ['annotate', 'membercluster', MEMBER, annotation, '--overwrite']);
    await until('those that the host lacks are gone', async () => (await podsOf(lab.member, ns)).length === 3);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F21'],
      'kept until confirmed',
      '11 pods run, 8 of them younger than the backup: 0 deleted, condition names them; gone after the confirmation, the 3 others untouched',
    );
  }, 400_000);

  // Last: afterwards the member is another one.
  test('F31: the member is wiped, same address and certificates', async (context) => {
    const ns = await newNamespace(lab.host, 'wiped');
    await lab.runPods(ns, numbered(10, 'wiped'));
    const since = Date.now();
    await lab.kwok.process.stop('SIGKILL');
    await lab.halt(lab.member, () => rmSync(join(lab.member.dir, 'etcd'), { recursive: true, force: true }));
    lab.kwok.process.restart();
    // Its owner builds it up as it was: the program is let in.
    await admitHost(lab.member);
    const changed = await until(
      'the change of identity is noticed',
      async () => {
        const text = await lab.condition('IdentityPinned');
        return text.startsWith('False IdentityChanged') ? text : undefined;
      },
      { timeoutMs: 90_000 },
    );
    const noticed = Date.now() - since;
    await wait(20_000);
    expect(
      writesOf(lab.member)
        .map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp))
        .filter((at) => at > since),
    ).toEqual([]);
    const pods = await podsOf(lab.host, ns);
    expect(pods).toHaveLength(10);
    expect(pods.filter((pod) => phaseOf(pod) !== 'Running')).toEqual([]);
    expect(await readPod(lab.host, ns, 'wiped-0')).toBeDefined();

    const [, annotation = ''] = CONFIRM.exec(changed) ?? [];
    await lab.kwok.addNodes({ nodes: 2, prefix: 'fresh' });
    await kubectl(lab.host, ['annotate', 'membercluster', MEMBER, annotation, '--overwrite']);
    await until(
      'its pods are known to be lost',
      async () => (await podsOf(lab.host, ns)).every((pod) => phaseOf(pod) === 'Failed'),
      {
        timeoutMs: 60_000,
      },
    );
    await lab.works(90_000);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F31'],
      'read-only until confirmed',
      `noticed after ${seconds(noticed)}; 0 writes to the other cluster, 10 of 10 host pods kept; after the confirmation Failed, and new pods run`,
    );
  }, 300_000);
});
