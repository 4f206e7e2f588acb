import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { PlacementPolicy } from '../../src/api/placement-policy.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { Copies } from '../fixtures/copies.ts';
import type { FaultProxy } from '../fixtures/fault-proxy.ts';
import {
  eventsOf,
  type Fields,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  podsOf,
  read,
  shell,
} from '../fixtures/live-pods.ts';
import { addProxiedMember } from '../fixtures/proxied-member.ts';
import { deployment, policy, settled } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';
import { measured, seconds } from '../faults/lab.ts';
import { FencedSets, SETS } from './fenced-sets.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, so no partition is tried: ${kubelets.reason}`);

const NAMES = ['east', 'west'];
const NAMESPACE = 'heal';
/** Half an hour, a thirtieth of it: pods of a lost member are replaced after 15 s instead of 5 min and more. */
const PARTITION_MS = 60_000;
const PATIENT = { timeoutMs: 120_000 };
/** Ends well when it is told to, and not when it is ended. */
const UNTIL_DONE = 'trap "exit 1" TERM; until [ -e /tmp/done ]; do sleep 0.1; done';
/** Done when the partition is over. */
const LONGER = `sleep ${String(PARTITION_MS / 1_000 + 20)}`;

interface JobStatus {
  succeeded?: number;
  failed?: number;
  completionTime?: string;
}

/** Two members with real kubelets behind lines that can be cut. */
describe.runIf(kubelets.ok)('a partition', () => {
  let topology: Topology;
  let host: Cluster;
  const proxies = new Map<string, FaultProxy>();
  const copies = new Copies();
  const ended = new AbortController();
  const following: Promise<void>[] = [];

  beforeAll(async () => {
    topology = await startTopology({
      extender: true,
      // Were the Node to tell of the member, Kubernetes would evict its pods within the partition.
      host: {
        apiServerFlags: {
          'default-not-ready-toleration-seconds': '5',
          'default-unreachable-toleration-seconds': '5',
        },
        controllerManagerFlags: { 'node-monitor-period': '1s', 'node-monitor-grace-period': '20s' },
      },
      members: NAMES.map((name) => ({ name, kubelet: `${name}-1`, unregistered: true })),
    });
    ({ host } = topology);
    const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2, podsUnreadyAfterSeconds: 1 };
    for (const name of NAMES) {
      const { cluster } = topology.member(name);
      proxies.set(name, await addProxiedMember(host, cluster, { spec: { probe } }));
    }
    await Promise.all(NAMES.map((name) => waitForNode(host, name)));
    await host.apply(readFileSync(new URL('../../manifests/scheduler/descheduler.yaml', import.meta.url), 'utf8'));
    await newNamespace(host, NAMESPACE);
  }, 600_000);
  afterAll(async () => {
    ended.abort();
    await Promise.all(following);
    const errors = topology === undefined ? [] : errorsOf(topology.spillway);
    for (const proxy of proxies.values()) await proxy.close();
    await topology?.close();
    expect(errors).toEqual([]);
  });

  /** East first, then west; after 15 s without an answer pods are replaced, or held. */
  function rules(name: string, kind: string, onMemberLost: Fields = {}): Fields {
    const clusterAffinity = { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] };
    const { spec, ...rest } = policy(NAMESPACE, name, { clusterAffinity });
    const apiVersion = kind === 'Job' ? 'batch/v1' : 'apps/v1';
    const failover = { onMemberLost: { after: '15s', ...onMemberLost } };
    return { ...rest, spec: { ...(spec as Fields), resourceSelectors: [{ apiVersion, kind, name }], failover } };
  }

  const web = (name: string, replicas: number): Fields =>
    deployment(NAMESPACE, name, replicas, '10m', {}, { containers: [shell(IDLE)] });

  function stateful(name: string): Fields {
    const { kind: _, spec, ...rest } = web(name, 1);
    return { ...rest, kind: 'StatefulSet', spec: { ...(spec as Fields), serviceName: name } };
  }

  function job(name: string, script: string): Fields {
    const { spec } = web(name, 1) as { spec: { template: { spec: Fields } } };
    const containers = [shell(script)];
    const template = { ...spec.template, spec: { ...spec.template.spec, restartPolicy: 'Never', containers } };
    return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: NAMESPACE }, spec: { template } };
  }

  /** Has a pod of a Job that waits for that end well, in the member itself. */
  async function finish(member: string, { metadata: { name } }: Pod): Promise<void> {
    await kubectl(topology.member(member).cluster, ['exec', name, '-n', NAMESPACE, '--', 'touch', '/tmp/done']);
  }

  const jobStatus = async (name: string): Promise<JobStatus> =>
    (await read<{ status?: JobStatus }>(host, `/apis/batch/v1/namespaces/${NAMESPACE}/jobs/${name}`))?.status ?? {};

  async function jobIsDone(name: string): Promise<JobStatus> {
    return await until(
      `Job ${name} is done`,
      async () => {
        const status = await jobStatus(name);
        return status.completionTime === undefined ? undefined : status;
      },
      PATIENT,
    );
  }

  /** The only pod of an app that is there, and not going. */
  async function goesOn(app: string): Promise<Pod> {
    return await until(
      `one pod of ${app} is left`,
      async () => {
        const [only, ...others] = await podsOf(host, NAMESPACE, `app=${app}`);
        return others.length === 0 && only?.metadata.deletionTimestamp === undefined ? only : undefined;
      },
      PATIENT,
    );
  }

  function cut(): void {
    const proxy = proxies.get('east');
    proxy?.inject({ kind: 'reset', when: 'before' });
    proxy?.resetConnections();
  }

  /** From now on `seen` knows what kubelets say of the pods of a namespace. */
  async function followCopies(seen: Copies, namespace: string): Promise<void> {
    for (const name of NAMES) {
      const { cluster } = topology.member(name);
      for (const pod of await podsOf(cluster, namespace)) seen.seen(name, 'ADDED', pod);
      following.push(
        cluster.api.follow(`/api/v1/namespaces/${namespace}/pods`, ended.signal, ({ type, object }) =>
          seen.seen(name, type, object as Pod),
        ),
      );
    }
  }

  /** Of what the tests before made: the word of an administrator is about all pods of a node. */
  async function nothingIsLeft(): Promise<void> {
    await kubectl(host, ['delete', 'deployments,statefulsets,jobs', '--all', '-n', NAMESPACE, '--wait=false']);
    await until(
      'no pods are left',
      async () => {
        const clusters = [host, ...NAMES.map((name) => topology.member(name).cluster)];
        const left = await Promise.all(clusters.map(async (cluster) => await podsOf(cluster, NAMESPACE)));
        return left.flat().length === 0;
      },
      PATIENT,
    );
  }

  /** Since when the Node has been Ready. */
  async function nodeReadySince(name: string): Promise<string> {
    const node = await read<Node>(host, `/api/v1/nodes/${name}`);
    const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
    expect(ready?.status).toBe('True');
    return ready?.lastTransitionTime ?? '';
  }

  const uidsOf = (pods: readonly Pod[]): Set<string | undefined> => new Set(pods.map(({ metadata }) => metadata.uid));

  /** By app, the fewest pods that were Ready, and not going, after any event from now on. */
  async function followReady(apps: readonly string[]): Promise<Map<string, number>> {
    const all = new Map((await podsOf(host, NAMESPACE)).map((pod) => [pod.metadata.uid, pod]));
    const fewest = new Map<string, number>();
    const count = (): void => {
      for (const app of apps) {
        const ready = [...all.values()].filter(
          (pod) => pod.metadata.labels?.['app'] === app && isReady(pod) && pod.metadata.deletionTimestamp === undefined,
        );
        fewest.set(app, Math.min(fewest.get(app) ?? Number.POSITIVE_INFINITY, ready.length));
      }
    };
    count();
    const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
    following.push(
      host.api.follow(path, ended.signal, ({ type, object }) => {
        const pod = object as Pod;
        if (type === 'DELETED') all.delete(pod.metadata.uid);
        else all.set(pod.metadata.uid, pod);
        count();
      }),
    );
    return fewest;
  }

  async function told(pod: Pod | undefined, about: string): Promise<string> {
    const events = await eventsOf(host, NAMESPACE, pod?.metadata.name ?? '');
    return events.find(({ reason }) => reason === about)?.message ?? '';
  }

  test('of what must not run twice never two live, and nothing is run again; of each other pod one stays when the member is back, as onHeal says', async (context) => {
    const wanted = { replacement: 2, original: 2, longest: 2, died: 1 };
    const names = Object.keys(wanted) as (keyof typeof wanted)[];
    await host.apply([
      rules('replacement', 'Deployment'),
      rules('original', 'Deployment', { onHeal: 'KeepOriginal' }),
      rules('longest', 'Deployment', { onHeal: 'LongestRunning' }),
      rules('died', 'Deployment', { onHeal: 'LongestRunning' }),
      rules('db', 'StatefulSet'),
      rules('fenced', 'StatefulSet', { action: 'ReplaceWhenFenced' }),
      rules('sum', 'Job'),
      rules('work-original', 'Job', { action: 'Replace', onHeal: 'KeepOriginal' }),
      rules('work-replacement', 'Job', { action: 'Replace', onHeal: 'KeepReplacement' }),
      rules('short', 'Job', { action: 'Replace', onHeal: 'KeepOriginal' }),
    ]);
    const held = ['db', 'fenced', 'sum'];
    const works = ['work-original', 'work-replacement'];
    await host.apply([
      ...names.map((name) => web(name, wanted[name])),
      ...['db', 'fenced'].map((name) => stateful(name)),
      ...[...works, 'short'].map((name) => job(name, UNTIL_DONE)),
      job('sum', LONGER),
    ]);
    const before = new Map<string, Pod[]>();
    for (const name of [...names, ...held, ...works, 'short'])
      before.set(name, await settled(host, NAMESPACE, name, { east: name in wanted ? wanted[name as 'died'] : 1 }));
    await followCopies(copies, NAMESPACE);

    const readySince = await nodeReadySince('east');
    const cutAt = Date.now();
    cut();
    await until(
      'others of each Deployment, and of Jobs that are replaced, are Ready in west',
      async () => {
        const pods = await podsOf(host, NAMESPACE);
        const there = (app: string): number =>
          pods.filter((pod) => pod.metadata.labels?.['app'] === app && pod.spec.nodeName === 'west' && isReady(pod))
            .length;
        return (
          names.every((name) => there(name) === wanted[name]) && [...works, 'short'].every((name) => there(name) === 1)
        );
      },
      PATIENT,
    );
    // One of those that wait ends, and starts anew, while nobody can see it.
    const [lone] = before.get('died') ?? [];
    const east = topology.member('east').cluster;
    await kubectl(east, ['exec', lone?.metadata.name ?? '', '-n', NAMESPACE, '--', 'kill', '1']);
    await until('it runs again', () => copies.restarts.get('died') === 1, PATIENT);
    // Nobody can see that the first one did its work to the end, so it is done once more.
    const [first] = before.get('short') ?? [];
    const second = (await podsOf(host, NAMESPACE, 'app=short')).find(({ spec }) => spec.nodeName === 'west');
    if (first === undefined || second === undefined) throw new Error('there are not two pods of short');
    await finish('east', first);
    await until('it is done in east', () => copies.doneIn('short').includes('east'), PATIENT);
    await finish('west', second);
    // Kubernetes calls a Job complete once none of its pods is going any more: that takes the member's answer.
    await until('the second one counts', async () => (await jobStatus('short')).succeeded === 1, PATIENT);
    expect((await jobStatus('short')).completionTime).toBeUndefined();
    // Those that wait are found by the next process.
    await topology.spillway.process.stop('SIGKILL');
    topology.spillway.process.restart();
    await waitReady(topology.spillway);
    await sleep(Math.max(0, cutAt + PARTITION_MS - Date.now()));
    const going = (await podsOf(host, NAMESPACE)).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    const evicted = ['replacement', ...works, 'short'].flatMap((name) => before.get(name) ?? []);
    expect(uidsOf(going)).toEqual(uidsOf(evicted));
    // The Node is Ready as long as it is served, so Kubernetes evicts nobody.
    expect(await nodeReadySince('east')).toBe(readySince);
    expect(going.flatMap(({ status }) => status?.conditions ?? []).map(({ reason }) => reason)).not.toContain(
      'DeletionByTaintManager',
    );

    const fewest = await followReady(names);
    proxies.get('east')?.clear();
    const healedAt = Date.now();
    // A crash in the middle of it.
    await until(
      'one is back',
      async () => (await podsOf(host, NAMESPACE, 'app=original')).filter(isReady).length > 2,
      PATIENT,
    );
    await topology.spillway.process.stop('SIGKILL');
    topology.spillway.process.restart();
    await waitReady(topology.spillway);

    const after = new Map<string, Pod[]>();
    const where = { replacement: 'west', original: 'east', longest: 'east', died: 'west' };
    for (const name of names)
      after.set(name, await settled(host, NAMESPACE, name, { [where[name]]: wanted[name] }, PATIENT.timeoutMs));
    const settledMs = Date.now() - healedAt;
    for (const name of ['original', 'longest', 'db', 'fenced'])
      expect([name, uidsOf(after.get(name) ?? (await podsOf(host, NAMESPACE, `app=${name}`)))]).toEqual([
        name,
        uidsOf(before.get(name) ?? []),
      ]);
    expect(fewest).toEqual(new Map(names.map((name) => [name, wanted[name]])));
    expect(await jobIsDone('sum')).toMatchObject({ succeeded: 1 });
    expect((await jobStatus('sum')).failed ?? 0).toBe(0);

    // What kubelets ran: each of these one copy, once.
    for (const app of held)
      expect([app, copies.made.get(app)?.size, copies.most.get(app), copies.restarts.get(app)]).toEqual([app, 1, 1, 0]);
    // Of these the one that came goes on, the original ends before its work does, and the Job has as many as it asked for.
    for (const app of works) {
      const came = await goesOn(app);
      expect([app, came.spec.nodeName, uidsOf(before.get(app) ?? []).has(came.metadata.uid)]).toEqual([
        app,
        'west',
        false,
      ]);
      await until(`the copy of ${app} in east is gone`, async () => {
        return (await podsOf(east, NAMESPACE, `app=${app}`)).length === 0;
      });
      await finish('west', came);
      expect(await jobIsDone(app)).toMatchObject({ succeeded: 1 });
      expect([app, copies.made.get(app)?.size, copies.restarts.get(app), copies.doneIn(app)]).toEqual([
        app,
        2,
        0,
        ['west'],
      ]);
    }
    // What was done twice counts once.
    expect(await jobIsDone('short')).toMatchObject({ succeeded: 1 });
    expect(uidsOf([await goesOn('short')])).toEqual(uidsOf([second]));
    expect([copies.made.get('short')?.size, copies.doneIn('short')]).toEqual([2, ['east', 'west']]);
    // The policy says that it chooses nothing there.
    const path = `/apis/spillway.dev/v1alpha1/namespaces/${NAMESPACE}/placementpolicies/work-original`;
    const { conditions = [] } = (await read<PlacementPolicy>(host, path))?.status ?? {};
    expect(conditions.find(({ type }) => type === 'Consistent')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('onHeal'),
    });
    for (const app of ['replacement', 'original', 'longest']) {
      expect([app, copies.made.get(app)?.size, copies.restarts.get(app)]).toEqual([app, 4, 0]);
    }
    await until('exactly one copy of each is left', async () => {
      const left = (
        await Promise.all(NAMES.map(async (name) => await podsOf(topology.member(name).cluster, NAMESPACE)))
      ).flat();
      return names.every(
        (name) => left.filter(({ metadata }) => metadata.labels?.['app'] === name).length === wanted[name],
      );
    });
    // Events name the two of which one was picked.
    const [kept] = after.get('original') ?? [];
    const [, ends = ''] = /which ends (\S+) or another/.exec(await told(kept, 'OriginalKept')) ?? [];
    expect(ends).toMatch(/^original-/);
    expect(before.get('original')?.map(({ metadata: { name } }) => name)).not.toContain(ends);
    const came = after.get('died')?.map(({ metadata: { name } }) => name);
    expect(came).toContain(/ has (\S+) in its place/.exec(await told(lone, 'ReleasedPodEvicted'))?.[1]);
    const most = held.map((app) => `${app} ${String(copies.most.get(app))}`).join(', ');
    measured(
      context,
      ['F25', 'F69'],
      `cut off for ${seconds(PARTITION_MS)}, and two crashes: one of each is left ${seconds(settledMs)} after the line is whole; most copies at once of what must not run twice: ${most}; two Jobs that were replaced, each done once, by the pod that came`,
    );
  }, 400_000);

  test.each([
    { word: 'stands until the line is whole', takenBack: false },
    { word: 'is taken back before', takenBack: true },
  ])(
    'StatefulSets that an administrator calls out of service, whose word $word: the old copy ends first, and none lives beside its successor in the member that is back',
    async ({ takenBack }) => {
      onTestFinished(async () => {
        proxies.get('east')?.clear();
        await host.kubectl(['taint', 'node', 'east', 'node.kubernetes.io/out-of-service-']);
      });
      await nothingIsLeft();
      const east = topology.member('east').cluster;
      const west = topology.member('west').cluster;
      const sets = new FencedSets(host, east, takenBack ? 'fenced-briefly' : 'fenced');
      const before = await sets.start();
      const old = (name: (typeof SETS)[number]): Pod => {
        const pod = before.get(name);
        if (pod === undefined) throw new Error(`${name} had no pod`);
        return pod;
      };
      const seen = new Copies();
      await followCopies(seen, old('moved').metadata.namespace ?? '');
      const copiesBefore = await sets.copiesIn(east);
      expect(copiesBefore).toHaveLength(SETS.length);

      cut();
      // They are held, however long the member is lost, until somebody says that they do not run.
      for (const name of SETS) await sets.told(name, 'PodOfLostMemberHeld');
      for (const name of SETS) expect((await sets.pod(name))?.metadata.uid).toBe(old(name).metadata.uid);
      expect(await sets.ended(before)).toEqual([]);
      await sets.taint();
      await sets.runsIn('west', 'moved');
      const moved = await sets.next('moved', old('moved'), isReady);
      for (const name of ['bound', 'pinned', 'kept'] as const)
        expect(await sets.told(name, 'OutOfServicePodHeld')).toMatch(/no other cluster takes it now/);
      for (const name of ['bound', 'pinned'] as const) await sets.deleteByHand(name);
      const bound = await sets.next('bound', old('bound'), ({ spec }) => spec.nodeName === undefined);
      await sets.bind('bound');
      const pinned = await sets.next('pinned', old('pinned'), ({ spec }) => spec.nodeName === undefined);
      expect(await sets.ended(before)).toEqual(['moved', 'bound', 'pinned']);
      if (takenBack) {
        await sets.takeBack();
        // What was ended stays ended, also for the next process.
        await topology.spillway.process.stop('SIGKILL');
        topology.spillway.process.restart();
        await waitReady(topology.spillway);
        expect(await sets.ended(before)).toEqual(['moved', 'bound', 'pinned']);
      }
      // The word is wrong: all copies live on, and work.
      const [beatsBefore] = (await sets.beats('moved', east)).slice(-1);
      await until(
        'the old copy works on',
        async () => ((await sets.beats('moved', east)).at(-1) ?? 0) > (beatsBefore ?? 0),
      );
      expect(await sets.copiesIn(east)).toEqual(copiesBefore);
      expect([bound, pinned].some(isReady)).toBe(false);

      const healedAt = Date.now();
      proxies.get('east')?.clear();
      await sets.runsIn('east', 'bound');
      if (!takenBack) {
        await sets.outOfService('MemberAnswers');
        expect((await sets.pod('pinned'))?.spec.nodeName).toBeUndefined();
        await sets.takeBack();
      }
      await sets.runsIn('east', 'pinned');
      const settledMs = Date.now() - healedAt;

      // In the host: the successors that there were, and the one that nobody released.
      const now = await Promise.all(SETS.map(async (name) => (await sets.pod(name))?.metadata.uid));
      expect(now).toEqual([moved, bound, pinned, old('kept')].map(({ metadata }) => metadata.uid));
      // All that is to end is told so before anything is made.
      const writes = sets.writesInEast(healedAt);
      expect(writes.slice(0, 3).toSorted()).toEqual(['delete bound-0', 'delete moved-0', 'delete pinned-0']);
      expect(writes.slice(3).toSorted()).toEqual(['create bound-0', 'create pinned-0']);
      // By the kubelets' own times no successor began in the member before the old copy had ended there.
      for (const name of ['bound', 'pinned'] as const) {
        const [first, second, ...others] = seen.lives(name);
        expect([name, first?.member, second?.member, others]).toEqual([name, 'east', 'east', []]);
        expect(first?.ended, name).toBeGreaterThanOrEqual(healedAt - 1_000);
        expect(second?.began, name).toBeGreaterThanOrEqual(first?.ended ?? Number.POSITIVE_INFINITY);
        expect([name, seen.most.get(name), seen.restarts.get(name)]).toEqual([name, 1, 0]);
        const [since] = await sets.beats(name, east);
        expect(since, name).toBeGreaterThanOrEqual(first?.ended ?? Number.POSITIVE_INFINITY);
      }
      // The one in west knows nothing of that: the old copy ended, and was taken for nobody else's.
      const [inEast, inWest, ...others] = seen.lives('moved');
      expect([inEast?.member, inWest?.member, others]).toEqual(['east', 'west', []]);
      expect(inEast?.ended).toBeGreaterThanOrEqual(healedAt - 1_000);
      expect([inWest?.ended, seen.restarts.get('moved')]).toEqual([undefined, 0]);
      expect([seen.made.get('kept')?.size, seen.most.get('kept'), seen.restarts.get('kept')]).toEqual([1, 1, 0]);
      // Exactly one copy of each.
      const copiesOf = async (cluster: Cluster): Promise<string[]> =>
        (await sets.copiesIn(cluster)).map((copy) => copy.split(' ')[0] ?? '');
      expect([await copiesOf(east), await copiesOf(west)]).toEqual([['bound', 'kept', 'pinned'], ['moved']]);
      console.info(
        `whole again: each StatefulSet has its one copy ${seconds(settledMs)} later; most copies at once: ${SETS.map((name) => `${name} ${String(seen.most.get(name))}`).join(', ')}`,
      );
      await sets.end();
    },
    300_000,
  );
});
