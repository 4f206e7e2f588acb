import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { kubectlCompletion, kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import { onNode, pod, podSpec, runPod } from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** `kubectl spillway`, as people run it: the real kubectl finds the program on its PATH. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: [
      { name: 'east', kwok: { nodes: 2, cpu: '8' }, options: { spec: { region: 'eu' } } },
      { name: 'west', kwok: { nodes: 2, cpu: '4' } },
    ],
  });
  ({ host } = topology);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

/** Standard output of a verb that succeeds. */
async function spillway(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await kubectlSpillway(host, words);
  if (code !== 0) throw new Error(`kubectl spillway ${words.join(' ')}: exit code ${code}: ${stderr}`);
  return stdout;
}

/** Path of a kubeconfig of somebody with these rights in the host and no more. */
async function viewer(name: string, rules: readonly object[]): Promise<string> {
  await host.apply([
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
    },
  ]);
  const file = join(host.dir, `${name}.kubeconfig`);
  writeFileSync(file, await host.kubeconfigFor(name), { mode: 0o600 });
  return file;
}

const container = (cpu: string) => ({
  name: 'main',
  image: 'registry.example/app:v1',
  resources: { requests: { cpu, memory: '1Gi' } },
});

describe('clusters', () => {
  test('shows each member, and what no pod has asked for there', async () => {
    await runPod(host, pod('three', 'default', podSpec([container('3')], onNode('east'))));
    const line = await until('the line of east', async () => {
      const lines = (await spillway('clusters')).split('\n');
      return lines.find((one) => /^east +True +True +True +1\/1 +1 +13\/16 +/.test(one));
    });
    expect(line).toMatch(/ v1\.36\.\d+ +\d+s +<none>$/);
    const { items } = JSON.parse(await spillway('clusters', 'east', '-o', 'json')) as { items: object[] };
    expect(items).toEqual([
      expect.objectContaining({
        name: 'east',
        ready: 'True',
        free: expect.objectContaining({ cpu: 13 }),
        region: 'eu',
      }),
    ]);
    expect(await spillway('clusters', '-o', 'name')).toBe('memberclusters/east\nmemberclusters/west\n');
  });

  test('names the right that is missing, and answers what it may', async () => {
    const members = { apiGroups: ['spillway.dev'], resources: ['memberclusters'], verbs: ['list'] };
    const some = await kubectlSpillway(host, ['clusters'], { kubeconfig: await viewer('some', [members]) });
    expect(some).toMatchObject({ code: 0 });
    expect(some.stdout).toMatch(/^east +True +True +True +\? +1 +\?\/16 /m);
    expect(some.stderr).toMatch(/you may not list nodes .*\n.*you may not list pods/);
    const none = await kubectlSpillway(host, ['clusters'], { kubeconfig: await viewer('none', []) });
    expect(none).toMatchObject({ code: 3, stdout: '' });
    expect(none.stderr).toMatch(/^error: you may not list memberclusters\.spillway\.dev in the cluster/);
    const unknown = await kubectlSpillway(host, ['clusters', 'moon']);
    expect(unknown).toMatchObject({ code: 4, stderr: 'error: there is no member moon: there are east, west\n' });
  });

  test('says that Spillway is not installed where it is not', async () => {
    const { cluster } = topology.member('west');
    const { code, stderr } = await kubectlSpillway(cluster, ['clusters']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/Spillway is not installed there[\s\S]*fix: apply manifests\/crds/);
  });
});

describe('status', () => {
  test('shows who works for the members, and pods that are held back', async () => {
    const secret = { name: 'main', secret: { secretName: 'nobody-made-it' } };
    await host.apply([pod('held', 'default', podSpec([container('1')], { ...onNode('east'), volumes: [secret] }))]);
    const screen = await until('the screen has all parts', async () => {
      const text = await spillway('status');
      return /MandatorySecretNotFound +default\/held/.test(text) && text;
    });
    expect(screen).toMatch(/Managers\n {2}NAME.*\n {2}\S+ +\d+s ago +east,west +[a-z,]*scheduler/);
    expect(screen).toMatch(/Policies\n {2}none/);
    const status = JSON.parse(await spillway('status', '-o', 'json')) as Record<string, unknown>;
    expect(status).toMatchObject({
      kind: 'Status',
      managers: [{ members: ['east', 'west'] }],
      pods: { held: [{ reason: 'MandatorySecretNotFound', pods: 1 }] },
    });
  });
});

describe('cordon and uncordon', () => {
  const isCordoned = async (): Promise<boolean> => {
    const { stdout } = await host.kubectl(['get', 'node', 'west', '-o', 'jsonpath={.spec.unschedulable}']);
    return stdout === 'true';
  };

  test('reach the virtual nodes through the MemberCluster, and only say so with a dry run', async () => {
    for (const mode of ['client', 'server']) {
      expect(await spillway('cordon', 'west', `--dry-run=${mode}`)).toMatch(
        /^membercluster\/west cordoned \(.*dry run\)\n$/,
      );
    }
    expect(await spillway('uncordon', 'west')).toBe('membercluster/west already uncordoned\n');
    expect(await spillway('cordon', 'west')).toBe('membercluster/west cordoned\n');
    await until('the virtual node is cordoned', isCordoned);
    expect(await spillway('clusters', 'west', '--no-headers')).toMatch(/^west +True,SchedulingDisabled /);
    expect(await spillway('uncordon', 'west')).toBe('membercluster/west uncordoned\n');
    await until('the virtual node is not cordoned any more', async () => !(await isCordoned()));
  });

  test('change nothing without the right to, or for a name that is not there', async () => {
    const get = { apiGroups: ['spillway.dev'], resources: ['memberclusters'], verbs: ['get'] };
    const reader = await kubectlSpillway(host, ['cordon', 'west'], { kubeconfig: await viewer('reader', [get]) });
    expect(reader).toMatchObject({ code: 3, stdout: '' });
    expect(reader.stderr).toMatch(/^error: you may not patch memberclusters\.spillway\.dev/);
    const unknown = await kubectlSpillway(host, ['cordon', 'east', 'moon']);
    expect(unknown).toMatchObject({ code: 4, stdout: '' });
    expect(await spillway('clusters', 'east', '--no-headers')).toMatch(/^east +True /);
  });
});

describe('completion', () => {
  test('offers verbs and names of members through kubectl', async () => {
    expect(await kubectlCompletion(host, ['spillway', 'cl'])).toContainEqual(expect.stringMatching(/^clusters\t/));
    expect(await kubectlCompletion(host, ['spillway', 'clusters', 'e'])).toContain('east');
  });
});
