import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { SYSTEM_NAMESPACE, waitForNode } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { isReady } from '../fixtures/live-pods.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { GuideShell } from '../fixtures/guide-shell.ts';
import { Guide } from '../fixtures/guide.ts';
import { kubectlSpillway, type RunningVerb, startKubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import {
  eventsOf,
  type Fields,
  IDLE,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podsOf,
  podSpec,
  read,
  shell,
  untilRunning,
  writesOfAll,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';

let topology: Topology;
let host: Cluster;
let east: Cluster;
let west: Cluster;
/** Pods in the member that is lost. */
let were: string[];
/** What the page has people type. */
const page = new Guide('docs/concepts/leaving.md');
let typed: GuideShell;
/** `leave` of a member that is gone for good: it waits until that has left. */
let forced: RunningVerb | undefined;
/** What it named in the end, as `Kind namespace/name`. */
let named: string[] = [];

/** An outage counts sooner here than in earnest. */
const folder = mkdtempSync(join(tmpdir(), 'spillway-leaving-'));
const config = join(folder, 'spillway.yaml');

beforeAll(async () => {
  writeFileSync(config, 'forceLeaveSeconds: 20\n');
  topology = await startTopology({
    spillway: { args: ['--config', config] },
    members: [
      { name: 'east', kwok: { nodes: 2, prefix: 'east' }, options: { services: true } },
      { name: 'west', kwok: { nodes: 1, prefix: 'west' }, options: { services: true } },
    ],
  });
  ({ host } = topology);
  east = topology.member('east').cluster;
  west = topology.member('west').cluster;
  typed = new GuideShell(host, [east, west]);
  await newNamespace(host, 'lost');
  await runAll('lost', 'west');
  were = names(await podsOf(host, 'lost'));
  await until('a Service leads to them there', async () => (await labelled(west, 'spillway.dev/host')).some(isSlice));
  await west.component('kube-apiserver').stop('SIGKILL');
  await kubectl(host, ['delete', 'membercluster', 'west', '--wait=false']);
});
afterAll(async () => {
  await forced?.interrupt();
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  rmSync(folder, { recursive: true });
  expect(errors).toEqual([]);
});

type Member = {
  metadata: { uid: string; finalizers?: string[]; annotations?: Record<string, string> };
  status?: MemberClusterStatus;
};
const memberOf = async (name: string): Promise<Member | undefined> => await read<Member>(host, `${MEMBERS}/${name}`);

async function untilLeaving(name: string, reason: string, timeoutMs = 60_000): Promise<string> {
  return await until(
    `${name} leaves, and ${reason}`,
    async () => {
      const found = (await memberOf(name))?.status?.conditions?.find(({ type }) => type === 'Leaving');
      if (found === undefined) throw new Error('it is not said to leave');
      if (found.reason === reason) return found.message;
      throw new Error(`it is ${found.reason}: ${found.message}`);
    },
    { timeoutMs },
  );
}
async function isCordoned(node: string): Promise<boolean> {
  return (await read<Node>(host, `/api/v1/nodes/${node}`))?.spec?.unschedulable === true;
}
async function untilAway(name: string, timeoutMs = 60_000): Promise<void> {
  await until(
    `${name} has left`,
    async () => {
      const found = await memberOf(name);
      if (found === undefined) return true;
      throw new Error(JSON.stringify(found.status?.conditions?.find(({ type }) => type === 'Leaving')));
    },
    { timeoutMs },
  );
}
async function register(name: string, secret: string, spec: Fields = {}): Promise<void> {
  const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 };
  const credentials = { secretRef: { namespace: SYSTEM_NAMESPACE, name: secret } };
  const object = { apiVersion: 'spillway.dev/v1alpha1', kind: 'MemberCluster', metadata: { name } };
  await host.apply([{ ...object, spec: { credentials, probe, ...spec } }]);
  await waitForNode(host, name);
}

/** What pods of a namespace refer to, a budget, and a ReplicaSet of two on that virtual node. */
async function runAll(namespace: string, node: string): Promise<void> {
  const labels = { app: `web-${node}` };
  const env = [{ configMapRef: { name: 'settings' } }, { secretRef: { name: 'keys' } }];
  const spec = podSpec([shell(IDLE, { envFrom: env })], onNode(node));
  await host.apply([
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace }, data: { a: '1' } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys', namespace }, stringData: { key: 'x' } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `web-${node}`, namespace },
      spec: { selector: labels, ports: [{ port: 80 }] },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: `web-${node}`, namespace },
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: `web-${node}`, namespace },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ]);
  await until('all run', async () => {
    const pods = await podsOf(host, namespace, `app=web-${node}`);
    return pods.length === 2 && pods.every(isReady);
  });
}
const isSlice = (name: string): boolean => name.startsWith('EndpointSlice ');
const names = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name).toSorted();

/** Everything of every kind with one of our labels, as `Kind namespace/name`. */
async function labelled(cluster: Cluster, selector: string): Promise<string[]> {
  const kinds = await kubectl(cluster, ['api-resources', '--verbs=list', '-o', 'name']);
  const all = kinds
    .split('\n')
    .filter((kind) => kind !== '' && !kind.includes('metrics.k8s.io'))
    .join(',');
  const line = '{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\\n"}{end}';
  const words = ['get', all, '-A', '-l', selector, '-o', `jsonpath=${line}`, '--ignore-not-found'];
  const lines = (await kubectl(cluster, words)).split('\n').filter((one) => one !== '');
  return lines.map((one) => one.replace(' /', ' ')).toSorted();
}

describe('a member that is gone for good', () => {
  it('is waited for, until an administrator says so by the UID of the MemberCluster', async () => {
    await until('it is waited for', async () => (await untilLeaving('west', 'PodsRemain')).includes('cannot be asked'));
    const { uid = '' } = (await memberOf('west'))?.metadata ?? {};
    await kubectl(host, ['annotate', 'membercluster', 'west', 'spillway.dev/force-leave=another']);
    forced = startKubectlSpillway(host, ['leave', 'west', '--mode=force']);
    const { stdout } = forced;
    await until('the word is given', () => stdout() === 'membercluster/west annotated\n');
    const { annotations } = (await memberOf('west'))?.metadata ?? {};
    expect(annotations?.['spillway.dev/force-leave']).toBe(uid);
  });
});

describe('a MemberCluster that is deleted', () => {
  it('leaves what another MemberCluster for the same cluster needs', async () => {
    await newNamespace(host, 'shop');
    await runAll('shop', 'east');
    await register('twin', 'member-east');
    await runAll('shop', 'twin');
    const since = Date.now();
    const detached = startKubectlSpillway(host, ['leave', 'twin', '--mode=detach']);
    await untilLeaving('twin', 'PodsRemain');
    await until('the virtual node is cordoned, and its pods are waited for', async () => {
      return (await isCordoned('twin')) && detached.stderr().includes('waiting: PodsRemain: 2 pods are there');
    });
    await kubectl(host, ['delete', 'replicaset', 'web-twin', '-n', 'shop']);
    await kubectl(host, ['delete', 'poddisruptionbudget', 'web-twin', '-n', 'shop']);
    await untilAway('twin', 150_000);
    expect([await detached.ended, detached.stdout()]).toEqual([
      0,
      'membercluster/twin deleted\nmembercluster/twin left\n',
    ]);
    // Until somebody ended them, its pods ran on.
    expect(writesOfAll(host, since).filter(({ objectRef }) => objectRef?.subresource === 'eviction')).toEqual([]);
    expect((await podsOf(east, 'shop')).filter(isReady)).toHaveLength(2);
    for (const path of ['configmaps/settings', 'secrets/keys']) {
      expect(await read(east, `/api/v1/namespaces/shop/${path}`), path).toBeDefined();
    }
    expect(await labelled(host, 'spillway.dev/member=twin')).toEqual([]);
  }, 240_000);

  it('is held while pods are there, and says what to do', async () => {
    // Its owner has put something of his own into this one.
    await newNamespace(host, 'kept');
    await host.apply([pod('once', 'kept', podSpec([shell(IDLE)], onNode('east')))]);
    await untilRunning(host, 'kept', 'once');
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'theirs', namespace: 'kept' } };
    await east.apply([{ ...service, spec: { ports: [{ port: 80 }] } }]);
    expect((await memberOf('east'))?.metadata.finalizers).toEqual(['spillway.dev/leaving']);
    const [, remove = '', giveUp = ''] = page.commands('kubectl spillway leave east --mode=force');
    await typed.paste(remove);
    const message = await untilLeaving('east', 'PodsRemain');
    expect(message).toContain('3 pods are there (virtual node east).');
    expect(message).toContain('kubectl drain east --ignore-daemonsets');
    expect(message).toContain('kubectl spillway leave east --mode=drain');
    expect(message).toContain('kubectl spillway leave east --mode=detach');
    await until('it is seen', async () => /PodsRemain/.test(await kubectl(host, ['get', 'memberclusters', 'east'])));
    const { conditions } = (await memberOf('east'))?.status ?? {};
    expect(conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'False', reason: 'Leaving' });
    await until('the virtual node is cordoned', async () => await isCordoned('east'));
    await until('an Event tells', async () =>
      (await eventsOf(host, 'default', 'east', 'MemberCluster')).some(({ reason }) => reason === 'Leaving'),
    );
    // Pods are looked after: what they refer to is followed.
    await kubectl(host, ['patch', 'configmap', 'settings', '-n', 'shop', '--type=merge', '-p', '{"data":{"a":"2"}}']);
    await until('the copy follows', async () => {
      const copy = await read<{ data?: Fields }>(east, '/api/v1/namespaces/shop/configmaps/settings');
      return copy?.data?.['a'] === '2';
    });
    // The word that it is gone for good does not count while it answers.
    await typed.paste(giveUp);
    await until('it is said', async () => (await untilLeaving('east', 'PodsRemain')).includes('does not count'));
    await kubectl(host, ['annotate', 'membercluster', 'east', 'spillway.dev/force-leave-']);
    await until('it is not', async () => !(await untilLeaving('east', 'PodsRemain')).includes('does not count'));
  });

  it('waits for a member whose credentials are gone, and goes without a trace when it is drained', async () => {
    const secret = `/api/v1/namespaces/${SYSTEM_NAMESPACE}/secrets/member-east`;
    const { data } = (await read<{ data: Fields }>(host, secret)) ?? { data: {} };
    await host.api.call('DELETE', secret);
    const message = await until('it says why it waits', async () => {
      const said = await untilLeaving('east', 'PodsRemain');
      return said.includes('cannot be asked') && said;
    });
    const { uid = '' } = (await memberOf('east'))?.metadata ?? {};
    expect(message).toContain('does not exist');
    expect(message).toContain(`kubectl annotate --overwrite membercluster east spillway.dev/force-leave=${uid}`);
    const metadata = { name: 'member-east', namespace: SYSTEM_NAMESPACE };
    await host.apply([{ apiVersion: 'v1', kind: 'Secret', metadata, data }]);
    // Nothing replaces its pods, so a budget would keep the last one for ever.
    await kubectl(host, ['delete', 'poddisruptionbudget', 'web-east', '-n', 'shop']);
    const refused = await kubectlSpillway(host, ['leave', 'east']);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/nothing was done to member east: 1 pod .*\nreason: kept\/once: .*--force/);
    const left = await kubectlSpillway(host, ['leave', 'east', '--force', '--timeout=150'], { timeoutMs: 180_000 });
    expect(left.stderr).toMatch(/evicting pod kept\/once\n/);
    expect(left.stdout).toMatch(/^pod\/once \(namespace kept\) evicted\n/m);
    expect(left.stdout).toMatch(
      /\nmembercluster\/east left\n\nWhat may remain in the member \(1 object\):\n {2}Namespace kept \(holds Service theirs\)\n$/,
    );
    expect(left.code).toBe(5);
    await untilAway('east');
    const told = await until('it is told', async () =>
      (await eventsOf(host, 'default', 'east', 'MemberCluster')).find(({ reason }) => reason === 'Left'),
    );
    expect(told.message).toContain('What stays there: Namespace kept (holds Service theirs).');
    await kubectl(east, ['delete', 'namespace', 'kept', '--wait=false']);
    await until('nothing of ours is in the member', async () => {
      const found = await labelled(east, 'spillway.dev/host');
      if (found.length > 0) throw new Error(found.join(', '));
      return true;
    });
    expect(await read(east, '/api/v1/namespaces/shop')).toBeUndefined();
    expect(await labelled(host, 'spillway.dev/member=east')).toEqual([]);
    for (const lease of ['spillway-system/leases/spillway-member-east', 'kube-node-lease/leases/east']) {
      const path = `/apis/coordination.k8s.io/v1/namespaces/${lease}`;
      await until(`${lease} is gone`, async () => (await read(host, path)) === undefined);
    }
    const text = await (await fetch(`${topology.spillway.url}/metrics`)).text();
    expect(text.split('\n').filter((line) => /="([a-z]+-)?east"/.test(line))).toEqual([]);
  }, 240_000);

  it('may be kept after all: its pods do not notice', async () => {
    await register('east', 'member-east');
    await newNamespace(host, 'again');
    await runAll('again', 'east');
    const uids = async (): Promise<string[]> =>
      (await podsOf(host, 'again')).map(({ metadata }) => metadata.uid ?? '').toSorted();
    const before = await uids();
    await kubectl(host, ['delete', 'membercluster', 'east', '--wait=false']);
    await untilLeaving('east', 'PodsRemain');
    await typed.paste(page.script('kubectl get membercluster east -o yaml > east.yaml'));
    await until('it takes pods again', async () => {
      return !(await isCordoned('east')) && (await memberOf('east'))?.metadata.finalizers?.length === 1;
    });
    expect(await uids()).toEqual(before);
  });
});

describe('a member that is gone for good, later', () => {
  it('is given up by the word of an administrator, with a list of what may remain there', async () => {
    await untilAway('west', 200_000);
    const events = await until('it is told', async () => {
      const all = await eventsOf(host, 'default', 'west', 'MemberCluster');
      return all.some(({ reason }) => reason === 'MayRemain') && all;
    });
    expect(events.find(({ reason }) => reason === 'GivenUp')?.message).toContain('-l spillway.dev/host=');
    const told = events
      .filter(({ reason }) => reason === 'MayRemain')
      .map(({ message }) => message)
      .join(' ');
    for (const name of were) expect(told).toContain(`Pod lost/${name}`);
    const copies = ['ConfigMap lost/settings', 'Secret lost/keys', 'Service lost/web-west', 'Namespace lost'];
    for (const copy of copies) expect(told).toContain(copy);
    expect(told).toMatch(/EndpointSlice lost\/web-west-/);
    // Whoever said it has the whole list before them.
    expect(await forced?.ended).toBe(5);
    const [said = '', list = ''] = forced?.stdout().split(/\n\nWhat may remain in the member .*:\n/) ?? [];
    expect(said).toBe('membercluster/west annotated\nmembercluster/west left');
    named = list.split('\n').flatMap((line) => (line === '' ? [] : [line.trim()]));
    expect(await read(host, '/api/v1/nodes/west')).toBeUndefined();
    expect(names(await podsOf(host, 'lost')).filter((name) => were.includes(name))).toEqual([]);
  }, 240_000);

  it('leaves nothing once it is back and an administrator takes away what remained', async () => {
    west.component('kube-apiserver').restart();
    const ours = 'spillway.dev/host';
    const there = await until('it answers', async () => {
      const found = await labelled(west, ours);
      return found.length > 0 && found;
    });
    expect(named).toEqual(there);
    const orphans = async (...words: string[]) =>
      await kubectlSpillway(host, ['orphans', '--member-kubeconfig', west.kubeconfig, ...words]);
    const found = await orphans('-o', 'name');
    expect([found.code, found.stderr]).toEqual([5, '']);
    const expected = [...were.map((name) => `pod/${name}`), 'secret/keys', 'configmap/settings', 'service/web-west'];
    expect(found.stdout.split('\n')).toEqual(expect.arrayContaining([...expected, 'namespace/lost']));
    const { code, stdout } = await orphans('--delete');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^namespace\/lost deleted$/m)]);
    // Controllers there that lost their API server ask it again after a minute at most: 30 s of client-go's backoff, and jitter.
    const isEmpty = async (): Promise<boolean> => (await labelled(west, ours)).length === 0;
    await until('nothing is left', isEmpty, { timeoutMs: 150_000 });
    expect(await orphans()).toMatchObject({ code: 0, stdout: '', stderr: 'Nothing of this cluster is left there.\n' });
  }, 240_000);
});
