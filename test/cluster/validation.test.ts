import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { run } from '../../hack/command.ts';
import { findProgram } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { KINDS } from '../../src/api/kinds.ts';
import {
  deployments,
  FOREIGN_SELECTORS,
  foreignSelector,
  gangPod,
  member,
  namespace,
  policy,
  WRONG_MARKS,
} from '../admission/wrong-objects.ts';
import { rawPolicy } from '../placement/policies.ts';
import { WRONG_POLICIES } from '../placement/wrong-policies.ts';

const file = (name: string): string => readFileSync(new URL(`../../manifests/${name}`, import.meta.url), 'utf8');

let workspace: Workspace;
let host: Cluster;

beforeAll(async () => {
  workspace = Workspace.create();
  host = await startCluster(workspace, { name: 'host', components: 'api-only' });
  for (const { resource } of KINDS) await host.apply(file(`crds/${resource.group}_${resource.plural}.yaml`));
  await host.apply(file('admission/validation.yaml'));
  await host.apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'shop' } },
  ]);
  for (const one of [
    foreignSelector('PlacementPolicy'),
    member({ 'spillway.dev/price': 'x' }),
    namespace('a', 'x'),
    gangPod('a', {}),
  ]) {
    await until('wrong objects are refused', async () =>
      (await dryRun(one)).stderr.includes('ValidatingAdmissionPolicy'),
    );
  }
});
afterAll(() => workspace?.close());

async function dryRun(object: object): Promise<{ stdout: string; stderr: string; code: number }> {
  return await host.kubectl(['create', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) });
}

describe('refused', () => {
  test.each([...FOREIGN_SELECTORS, ...WRONG_MARKS])(
    'by kubectl, with words that say why: %s',
    async (_what, object, words) => {
      const { stderr, code } = await dryRun(object);
      expect(code).toBe(1);
      expect(stderr).toContain(words);
    },
  );

  // The rest of them the schemas refuse by themselves.
  test.each(WRONG_POLICIES.filter(({ refusal }) => refusal === undefined))('$what', async ({ spec, field }) => {
    const { stderr, code } = await dryRun(rawPolicy('p', spec, 'shop'));
    expect(code).toBe(1);
    expect(stderr).toContain(field);
  });
});

describe('taken', () => {
  test.each<[string, object]>([
    [
      'a PlacementPolicy that names its own namespace',
      policy('PlacementPolicy', [{ ...deployments, namespace: 'shop' }], 'shop'),
    ],
    [
      'a ClusterPlacementPolicy for one namespace',
      policy('ClusterPlacementPolicy', [{ ...deployments, namespace: 'bank' }]),
    ],
    ['an OverridePolicy for all', policy('OverridePolicy', [], 'shop')],
    [
      'a ClusterOverridePolicy for one namespace',
      policy('ClusterOverridePolicy', [{ ...deployments, namespace: 'bank' }]),
    ],
    ['a member without annotations', member({})],
    [
      'a member with good ones',
      member({ 'spillway.dev/price': '0.25', 'spillway.dev/confirm-identity': '0c7d2c5e-8a4b-4f0e-9c52-2f2a8f3f9c11' }),
    ],
    ['a pod of a gang', gangPod('ring', { 'spillway.dev/gang-size': '8', 'spillway.dev/gang-timeout-seconds': '60' })],
    ['a namespace that may burst', namespace('bank', 'enabled')],
    ['a namespace that bursts by policies', namespace('bank', 'policies')],
    ['a namespace of the cluster itself that stays', namespace('kube-other', 'disabled')],
  ])('%s', async (_what, object) => {
    const { stderr, code } = await dryRun(object);
    expect([code, stderr]).toEqual([0, '']);
  });

  test('a namespace whose label was there before the rule: all else of it can change', async () => {
    const binding = 'validatingadmissionpolicybinding/spillway-burst-label';
    await host.kubectl(['delete', binding]);
    await until('the rule is gone', async () => (await dryRun(namespace('old', 'maybe'))).code === 0);
    await host.apply([namespace('old', 'maybe')]);
    await host.apply(file('admission/validation.yaml'));
    await until('the rule is back', async () => (await dryRun(namespace('new', 'maybe'))).code === 1);
    expect((await host.kubectl(['label', 'namespace', 'old', 'team=a'])).stderr).toBe('');
    expect(
      (await host.kubectl(['label', 'namespace', 'old', '--overwrite', 'spillway.dev/burst=no'])).stderr,
    ).toContain('metadata.labels[spillway.dev/burst]: must be');
    expect((await host.kubectl(['label', 'namespace', 'old', 'spillway.dev/burst-'])).stderr).toBe('');
  });
});

const page = readFileSync(new URL('../../docs/guides/backup-and-restore.md', import.meta.url), 'utf8');

test.skipIf(findProgram('jq') === undefined)(
  'what was saved by the commands of the page comes back by them',
  async () => {
    const save = [...page.matchAll(/^ {4}(.*)$/gm)].map(([, line = '']) => line).join('\n');
    const [, restore = ''] = /`(kubectl apply -f members\.json [^`]*)`/.exec(page) ?? [];
    const env = {
      ...process.env,
      KUBECONFIG: host.kubeconfig,
      KUBECACHEDIR: host.dir,
      PATH: `${dirname(host.kubectlPath)}:${process.env['PATH'] ?? ''}`,
    };
    const shell = async (words: string): Promise<string> => await run('sh', ['-ec', words], { cwd: host.dir, env });
    const secret = { namespace: 'spillway-system', name: 'member-saved' };
    const { spec } = member({}) as { spec: object };
    await host.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: secret.namespace } },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { ...secret, labels: { 'spillway.dev/renew-token': 'true' } },
        stringData: { token: 'abc' },
      },
      {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'MemberCluster',
        metadata: { name: 'saved', finalizers: ['spillway.dev/leaving'] },
        spec,
      },
      rawPolicy('saved', { placement: {}, priority: 7 }, 'shop'),
    ]);
    await shell(save);
    const noFinalizer = `kubectl patch membercluster saved --type=merge -p '{"metadata":{"finalizers":null}}'`;
    await shell(`${noFinalizer}; kubectl delete membercluster/saved; kubectl delete placementpolicy/saved -n shop`);
    await shell(`kubectl delete secret ${secret.name} -n ${secret.namespace}`);
    expect(await shell(restore)).toMatch(/secret\/member-saved created\nmembercluster.spillway.dev\/saved created\n/);
    const back =
      'kubectl get membercluster saved -o jsonpath={.metadata.finalizers}{.spec.credentials.secretRef.namespace}';
    expect(await shell(back)).toBe('default');
    expect(await shell('kubectl get placementpolicy saved -n shop -o jsonpath={.spec.priority}')).toBe('7');
    expect(await shell(`kubectl get secret ${secret.name} -n ${secret.namespace} -o jsonpath={.data.token}`)).toBe(
      'YWJj',
    );
  },
);
