import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { COMBINATIONS } from '../../hack/helm-chart.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { objectsIn, type ManifestObject } from '../../src/cli/manifests.ts';
import { helmIn } from '../fixtures/helm.ts';

interface Rule {
  apiGroups: string[];
  apiVersions: string[];
  operations?: string[];
  resources: string[];
}
interface Policy extends ManifestObject {
  metadata: ManifestObject['metadata'] & { generation?: number };
  spec: { matchConstraints: { resourceRules: Rule[] } };
  status?: {
    observedGeneration?: number;
    typeChecking?: { expressionWarnings?: { fieldRef: string; warning: string }[] };
  };
}

/** kube-controller-manager checks the expressions of policies against the schemas of the kinds that they match, and warns in their status. */
const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const root = new URL('../../manifests/', import.meta.url);
const shipped = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml') && !file.endsWith('kustomization.yaml'))
  .flatMap((file) => objectsIn(readFileSync(new URL(file, root), 'utf8')));
const policiesAmong = (objects: readonly ManifestObject[]): Policy[] =>
  objects.filter((one): one is Policy => one.kind === 'ValidatingAdmissionPolicy');
const policies = policiesAmong(shipped);

/** Kubernetes looks at no subresources, and not where all versions match. */
const checkedRules = new Map(
  policies
    .flatMap(({ spec }) => spec.matchConstraints.resourceRules)
    .flatMap((rule) => rule.resources.map((resource) => ({ ...rule, resources: [resource] })))
    .filter(({ resources, apiVersions }) => resources.every((one) => !one.includes('/')) && !apiVersions.includes('*'))
    .map((rule) => [`${rule.resources.join()}.${rule.apiGroups.join()}`, rule] as const),
);

let workspace: Workspace;
let cluster: Cluster;

beforeAll(async () => {
  workspace = Workspace.create();
  cluster = await startCluster(workspace, { name: 'types' });
  await cluster.apply(shipped.filter(({ kind }) => kind === 'CustomResourceDefinition'));
});
afterAll(() => workspace?.close());

const read = async (name: string): Promise<Policy> => (await cluster.api.call('GET', `${POLICIES}/${name}`)) as Policy;

/** What Kubernetes says of the expressions of a policy as it is now. */
async function warningsOf(name: string): Promise<string[]> {
  return await until(`the expressions of ${name} are checked`, async () => {
    const { metadata, status } = await read(name);
    if (status?.observedGeneration !== metadata.generation || status?.typeChecking === undefined) return undefined;
    return (status.typeChecking.expressionWarnings ?? []).map(({ fieldRef, warning }) => `${fieldRef}: ${warning}`);
  });
}

/** A kind whose schema Kubernetes does not know yet it passes by in silence: what is checked next would be well in any case. */
describe('a mistake is found', () => {
  test.each([...checkedRules])('in a policy about %s', async (what, rule) => {
    const name = `mistaken-${what.replace(/\.$/, '')}`;
    let tries = 0;
    await until(`a mistake about ${what} is found`, async () => {
      tries += 1;
      const validations = [{ expression: `object.metadata.mistaken == '${tries}'` }];
      const matchConstraints = { resourceRules: [{ ...rule, operations: ['CREATE'] }] };
      await cluster.apply([
        {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingAdmissionPolicy',
          metadata: { name },
          spec: { failurePolicy: 'Ignore', matchConstraints, validations },
        },
      ]);
      return (await warningsOf(name)).some((one) => one.includes(`undefined field 'mistaken'`));
    });
  });
});

describe('Kubernetes warns of no expression', () => {
  async function expectWell(these: readonly Policy[]): Promise<void> {
    await cluster.apply(these);
    const warnings = await Promise.all(
      these.map(async ({ metadata: { name } }) => [name, await warningsOf(name)] as const),
    );
    expect(warnings.filter(([, of]) => of.length > 0)).toEqual([]);
  }

  test('of the policies in manifests/', async () => {
    await expectWell(policies);
  });

  test('of those of the Helm chart', async () => {
    const helm = await helmIn(cluster.dir);
    const charted = new Map<string, Policy>();
    for (const chosen of COMBINATIONS) {
      const values = Object.entries(chosen).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
      const objects = await helm.template('--kube-version', 'v1.36.3', ...values);
      for (const one of policiesAmong(objects)) charted.set(one.metadata.name, one);
    }
    // It has those of the host; what is applied in members is not in it.
    expect(charted.size).toBeGreaterThan(20);
    await expectWell([...charted.values()]);
  });
});
