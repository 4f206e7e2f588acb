import { expect, it } from 'vitest';
import { whyNeverChosen } from '../../src/api/choosable-kinds.ts';
import { OWNER_KINDS } from '../../src/kube/owner-kinds.ts';
import { apiVersionOf } from '../../src/kube/resource.ts';

const DATA = ['ConfigMap', 'Secret'];

it('nothing is said of pods, of what makes them, and of kinds that are not of Kubernetes', () => {
  for (const resource of OWNER_KINDS)
    expect(whyNeverChosen({ apiVersion: apiVersionOf(resource), kind: resource.kind })).toBeUndefined();
  for (const [apiVersion, kind] of [
    ['v1', 'Pod'],
    ['argoproj.io/v1alpha1', 'Rollout'],
    ['batch.example.com/v1', 'Jbo'],
  ] as const)
    expect(whyNeverChosen({ apiVersion, kind }), kind).toBeUndefined();
  expect(whyNeverChosen({ apiVersion: 'v1', kind: 'Secret' }, DATA)).toBeUndefined();
});

it.each([
  ['apps/v1', 'Deploymnet'],
  ['apps/v1', 'deployment'],
  ['apps/v1beta1', 'Deployment'],
  ['apps', 'Deployment'],
  ['v1', 'Deployment'],
  ['v1', 'Secret'],
  ['networking.k8s.io/v1', 'Ingress'],
  ['spillway.dev/v1alpha1', 'MemberCluster'],
])('%s %s chooses nothing, and the kinds that do are named', (apiVersion, kind) => {
  expect(whyNeverChosen({ apiVersion, kind })).toBe(
    `nothing is chosen by ${kind} (${apiVersion}); of Kubernetes' own kinds these can be: Pod, ReplicationController (v1), ` +
      'ReplicaSet, Deployment, StatefulSet, DaemonSet (apps/v1), Job, CronJob (batch/v1)',
  );
});

it('names what else a policy chooses by', () => {
  expect(whyNeverChosen({ apiVersion: 'v1', kind: 'Service' }, DATA)).toContain(
    'Pod, ReplicationController, ConfigMap, Secret (v1)',
  );
});
