import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster } from '../../hack/cluster.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { OVERRIDE_POLICY_KINDS, parseOverridePolicy } from '../../src/api/override-policy.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { rule, WRONG_OVERRIDES } from '../overrides/wrong-overrides.ts';

let workspace: Workspace;
let host: Cluster;

beforeAll(async () => {
  workspace = Workspace.create();
  host = await startCluster(workspace, { name: 'host', components: 'api-only' });
  for (const { resource } of OVERRIDE_POLICY_KINDS) {
    const file = `crds/${resource.group}_${resource.plural}.yaml`;
    await host.apply(readFileSync(new URL(`../../manifests/${file}`, import.meta.url), 'utf8'));
  }
  await until('the kinds are served', async () => {
    for (const { resource } of OVERRIDE_POLICY_KINDS) {
      await host.api.call('GET', `/apis/spillway.dev/v1alpha1/${resource.plural}`);
    }
    return true;
  });
});

afterAll(async () => {
  await workspace.close();
});

async function dryRun(spec: object, kind: string) {
  const object = { apiVersion: 'spillway.dev/v1alpha1', kind, metadata: { name: 'x' }, spec };
  return await host.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input: JSON.stringify(object) });
}

describe.each(OVERRIDE_POLICY_KINDS.map(({ resource }) => [resource.kind, resource.plural]))('%s', (kind, plural) => {
  it('is structural and established', async () => {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.spillway.dev`;
    const crd = (await host.api.call('GET', path)) as { status: { conditions: { type: string; status: string }[] } };
    const conditions = Object.fromEntries(crd.status.conditions.map(({ type, status }) => [type, status]));
    expect(conditions).toEqual({ NamesAccepted: 'True', Established: 'True' });
  });

  it('keeps every overrider as it was written', async () => {
    const spec = {
      resourceSelectors: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          labelSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
        },
      ],
      overrideRules: [
        {
          targetCluster: {
            clusterNames: ['east'],
            exclude: ['west'],
            labelSelector: { matchLabels: { tier: 'gold' } },
            fieldSelector: { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['z1'] }] },
          },
          overriders: {
            imageOverrider: [
              {
                predicate: { path: '/spec/template/spec/containers/0/image' },
                component: 'Tag',
                operator: 'remove',
                scope: 'Containers',
              },
            ],
            commandOverrider: [{ containerName: 'app', operator: 'add', value: ['--fast'] }],
            argsOverrider: [{ containerName: 'app', operator: 'remove', value: ['--slow'] }],
            labelsOverrider: [{ operator: 'add', value: { region: '${member.region}' } }],
            annotationsOverrider: [{ operator: 'replace', value: { note: 'a b' } }],
            envOverrider: [
              {
                operator: 'add',
                value: [
                  { name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
                  { name: 'B', value: '' },
                ],
              },
            ],
            resourcesOverrider: [{ operator: 'add', requests: { cpu: 1, memory: '1Gi' } }],
            initContainersOverrider: [
              { operator: 'add', position: 'First', value: [{ name: 'init', image: 'busybox', env: [{ name: 'X' }] }] },
            ],
            imagePullSecretsOverrider: [{ operator: 'add', value: ['pull'] }],
            tolerationsOverrider: [{ operator: 'add', value: [{ key: 'gpu', operator: 'Exists' }] }],
            nodeSelectorOverrider: [{ operator: 'add', value: { disk: 'ssd' } }],
            runtimeClassOverrider: { operator: 'add', value: 'gvisor' },
            storageClassOverrider: [{ from: '', operator: 'replace', value: 'fast' }],
            fieldOverrider: [
              { fieldPath: '/data/app.yaml', yaml: [{ subPath: '/a/0', operator: 'add', value: { b: [1, null] } }] },
            ],
            plaintext: [
              { path: '/spec/hostAliases', operator: 'add', value: [{ ip: '10.0.0.1', hostnames: ['db'] }] },
              { path: '/metadata/labels/a~1b', operator: 'remove' },
            ],
          },
        },
      ],
      applyTo: 'RunningPods',
    };
    const { stdout, stderr } = await dryRun(spec, kind);
    expect(stderr).toBe('');
    const stored = JSON.parse(stdout) as KubeObject & { spec: object };
    expect(stored.spec).toEqual(spec);
    expect(parseOverridePolicy(kind as 'OverridePolicy', stored)).toMatchObject({ policy: { kind, spec } });
  });

  it.each(WRONG_OVERRIDES)('refuses %s and names the field', async (_what, spec, words) => {
    const { stderr, code } = await dryRun(spec, kind);
    expect(code).not.toBe(0);
    expect(stderr).toContain(words);
  });

  it('lets only a ClusterOverridePolicy choose service accounts', async () => {
    const { stderr, code } = await dryRun(rule({ serviceAccountOverrider: { value: 'puller' } }), kind);
    expect(stderr).toContain(
      kind === 'OverridePolicy' ? 'serviceAccountOverrider: Forbidden: is only allowed in a ClusterOverridePolicy' : '',
    );
    expect(code === 0).toBe(kind === 'ClusterOverridePolicy');
  });
});
