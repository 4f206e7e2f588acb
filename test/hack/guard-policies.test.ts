import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import { GRANTS } from '../../hack/rights-page.ts';
import { rightsOf } from '../../hack/rights.ts';

interface Policy {
  kind: string;
  metadata: { name: string };
  spec: {
    failurePolicy?: string;
    policyName?: string;
    validationActions?: string[];
    matchConditions?: { expression: string }[];
    matchConstraints?: {
      resourceRules: { apiGroups: string[]; apiVersions: string[]; operations: string[]; resources: string[] }[];
    };
  };
}

const root = new URL('../../manifests/', import.meta.url);
const documents = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) => parseAllDocuments(readFileSync(new URL(file, root), 'utf8')))
  .map((document) => document.toJS() as Policy);
const guards = documents.filter(
  ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name.endsWith('-guard'),
);

/** Nothing that an object's owners, finalizers or labels could do harm by; each with the reason. */
const NOT_HELD: Record<string, string> = {
  'patch memberclusters/status': 'of a kind of ours nothing but the status can be changed by way of it',
  'patch placementpolicies/status': 'as above',
  'patch clusterplacementpolicies/status': 'as above',
  'patch workloadplacements/status': 'as above',
  'patch overridepolicies/status': 'as above',
  'patch clusteroverridepolicies/status': 'as above',
  'patch clustertaintpolicies/status': 'as above',
  'patch workloadrebalancers/status': 'as above',
  'patch workloadmigrations/status': 'as above',
  'patch serviceexports/status':
    'nothing but the status can be changed by way of it, of an object that has no use for it but to tell people',
  'delete workloadplacements': 'of our own; made anew from what is there',
  'create certificatesigningrequests/nodeclient': 'is asked about, and makes no object',
  'create tokenreviews': 'makes no object',
  'create subjectaccessreviews': 'makes no object',
};
const OPERATIONS: Record<string, string> = { create: 'CREATE', update: 'UPDATE', patch: 'UPDATE', delete: 'DELETE' };
const STREAMS = ['pods/exec', 'pods/attach', 'pods/portforward'];

/** Each `[account, verb, group, resource]` that changes something, of what the manifests grant our own program. */
const writes = GRANTS.filter(({ files }) => !files.includes('scheduler/second-scheduler.yaml')).flatMap(
  ({ files, roles }) =>
    rightsOf(files, roles).flatMap(({ account, verbs, apiGroups, resources }) =>
      verbs
        .filter((verb) => verb in OPERATIONS)
        .flatMap((verb) => apiGroups.flatMap((group) => resources.map((one) => [account, verb, group, one] as const))),
    ),
);

describe('every right to change something', () => {
  it.each(writes)('%s may %s %s %s, and a policy says what of it', (account, verb, group, resource) => {
    const operation = STREAMS.includes(resource) ? 'CONNECT' : (OPERATIONS[verb] ?? '');
    const user = `system:serviceaccount:${account.replace('/', ':')}`;
    const held = guards.some(
      ({ spec }) =>
        spec.matchConditions?.some(({ expression }) => expression.includes(`'${user}'`)) === true &&
        spec.matchConstraints?.resourceRules.some(
          (rule) =>
            rule.apiGroups.includes(group) && rule.operations.includes(operation) && rule.resources.includes(resource),
        ) === true,
    );
    expect(held).toBe(NOT_HELD[`${verb} ${resource}`] === undefined);
  });
});

it.each(guards.map((policy) => [policy.metadata.name, policy] as const))(
  '%s refuses, also what it cannot judge',
  (name, { spec }) => {
    expect(spec.failurePolicy).toBe('Fail');
    const bound = documents.filter((one) => one.spec?.policyName === name);
    expect(bound.map((one) => one.spec.validationActions)).toEqual([['Deny']]);
  },
);
