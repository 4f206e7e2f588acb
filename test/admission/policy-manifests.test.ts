import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { expect, test } from 'vitest';
import { COMBINATIONS } from '../../hack/helm-chart.ts';
import { DEFAULT_CHOICES, filesOf } from '../../src/cli/installation.ts';
import { manifestObjects } from '../../src/cli/manifests.ts';

interface Policy {
  kind: string;
  metadata: { name: string };
  spec: { reinvocationPolicy?: string; matchConditions?: { name: string; expression: string }[] };
}

const folder = new URL('../../manifests/admission/', import.meta.url);
const policies = readdirSync(folder)
  .flatMap((file) => parseAllDocuments(readFileSync(new URL(file, folder), 'utf8')))
  .map((document) => document.toJS() as Policy)
  .filter(({ kind }) => kind === 'MutatingAdmissionPolicy');

/**
 * API servers ask policies in any order. One whose conditions do not match is not asked again when another one has changed
 * the pod, whatever its reinvocationPolicy.
 */
test.each(policies.map((policy) => [policy.metadata.name, policy] as const))(
  '%s has no match condition on what another policy adds',
  (_name, { spec }) => {
    expect(spec.reinvocationPolicy).toBe('IfNeeded');
    const added = /spec\.\??(tolerations|schedulingGates)|virtual-node'/;
    expect(spec.matchConditions?.filter(({ expression }) => added.test(expression)).map(({ name }) => name)).toEqual(
      [],
    );
  },
);

test('there are such policies', () => {
  expect(policies.length).toBeGreaterThan(2);
});

test('taints of effect NoExecute are refused in every installation, and no Node is held up by a rule that cannot judge it', () => {
  for (const chosen of COMBINATIONS)
    expect(filesOf({ ...DEFAULT_CHOICES, ...chosen })).toContain('admission/node-taints.yaml');
  expect(manifestObjects('admission/node-taints.yaml')).toMatchObject([
    {
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'spillway-node-taints' },
      spec: {
        failurePolicy: 'Ignore',
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['nodes'] }],
        },
      },
    },
    {
      kind: 'ValidatingAdmissionPolicyBinding',
      spec: { policyName: 'spillway-node-taints', validationActions: ['Deny'] },
    },
  ]);
});
