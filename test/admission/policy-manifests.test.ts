import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { expect, test } from 'vitest';
import { COMBINATIONS } from '../../hack/helm-chart.ts';
import * as marks from '../../src/api/marks.ts';
import { DEFAULT_CHOICES, filesOf } from '../../src/cli/installation.ts';
import { manifestObjects } from '../../src/cli/manifests.ts';

interface Expression {
  name: string;
  expression: string;
}
interface Policy {
  kind: string;
  metadata: { name: string };
  spec: { reinvocationPolicy?: string; matchConditions?: Expression[]; variables?: Expression[] };
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

test('the rule for taints of virtual nodes knows those of Spillway, all of them, wherever it names them', () => {
  const ours = Object.entries(marks).flatMap(([name, key]) =>
    name.endsWith('_TAINT') && typeof key === 'string' && key.startsWith(`${marks.GROUP}/`) ? [key] : [],
  );
  expect(ours).toContain(marks.DRAIN_TAINT);
  const { spec } = manifestObjects('admission/node-taints.yaml')[0] as unknown as Policy & {
    spec: { validations: { messageExpression?: string }[] };
  };
  const keysIn = (text = ''): string[] => [...new Set(text.match(/spillway\.dev\/[a-z-]+/g))].toSorted();
  const named = (list: readonly Expression[] | undefined, which: string): string[] =>
    keysIn(list?.find(({ name }) => name === which)?.expression);
  const told = spec.validations.map(({ messageExpression }) => keysIn(messageExpression));
  expect(named(spec.matchConditions, 'has-such-taints')).toEqual(ours.toSorted());
  expect(named(spec.variables, 'known')).toEqual(ours.toSorted());
  expect(told).toContainEqual(ours.toSorted());
});
