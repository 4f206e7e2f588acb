import { readdirSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { managerConfigSchema } from '../../src/config.ts';
import { identityOf } from '../../src/cli/apply.ts';
import { DEFAULT_CHOICES, filesOf, installation, type Choices } from '../../src/cli/installation.ts';
import { noLongerWanted } from '../../src/cli/inventory.ts';
import { nameOf, knownResource } from '../../src/cli/known-kinds.ts';
import { grantedObjects, optionalGrants } from '../../src/cli/member-grant.ts';
import { manifestObjects, type ManifestObject } from '../../src/cli/manifests.ts';

const named = (objects: readonly ManifestObject[]): string[] => objects.map(nameOf);
const rendered = (choices: Partial<Choices>): ManifestObject[] => installation({ ...DEFAULT_CHOICES, ...choices });
const found = (objects: readonly ManifestObject[], name: string): ManifestObject | undefined =>
  objects.find((object) => nameOf(object) === name);

function settingsIn(objects: readonly ManifestObject[]): unknown {
  const configMap = found(objects, 'configmap/spillway-manager') as unknown as { data: Record<string, string> };
  return parse(configMap.data['config.yaml'] ?? '');
}

/** Files that no installation of a host takes in, each with the reason. */
const ELSEWHERE = ['member/', 'samples/', 'monitoring/', 'scheduler/kube-scheduler.yaml', 'kustomization.yaml'];

/** Policies that give pods what they need. */
const PODS = [
  'spillway-node-constraints',
  'spillway-pod-defaults',
  'spillway-pods-by-node-name',
  'spillway-stay-on-host',
];

describe('an installation', () => {
  it('makes new pods of the manager when a choice changes what it reads at its start, and only then', () => {
    const marks = (choices: Partial<Choices>): unknown => {
      const manager = found(rendered(choices), 'deployment.apps/spillway-manager') as unknown as {
        spec: { template: { metadata: { annotations?: object } } };
      };
      return manager.spec.template.metadata.annotations;
    };
    expect(marks({})).toBeUndefined();
    expect(marks({ replicas: 5, scheduler: 'Own' })).toBeUndefined();
    const webhook = marks({ admission: 'Webhook' });
    expect(webhook).toEqual({ 'checksum/config': expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(marks({ admission: 'Webhook', replicas: 5 })).toEqual(webhook);
    expect(marks({ admission: 'Webhook', scheduler: 'Own' })).not.toEqual(webhook);
    expect(marks({ hostIdentity: 'ServiceAccount' })).not.toEqual(webhook);
  });

  it('takes in every file below manifests by some choice', () => {
    const taken = new Set<string>();
    for (const scheduler of ['Second', 'Own'] as const) {
      for (const admission of ['Policies', 'Webhook'] as const) {
        const chosen = { scheduler, admission, hostIdentity: 'ServiceAccount', multiCluster: 'Exchange' } as const;
        for (const file of filesOf(chosen)) taken.add(file);
      }
    }
    const all = readdirSync('manifests', { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.yaml'),
    );
    const expected = all.filter((file) => !ELSEWHERE.some((part) => file.startsWith(part) || file.endsWith(part)));
    expect([...taken].toSorted()).toEqual(expected.toSorted());
  });

  it('has each object once, of a kind that is known, and makes namespaces before what is in them', () => {
    for (const choices of [
      {},
      { scheduler: 'Own' },
      { admission: 'Webhook' },
      { hostIdentity: 'ServiceAccount' },
      { multiCluster: 'Exchange' },
    ] as const) {
      const objects = rendered(choices);
      const identities = objects.map(identityOf);
      expect(new Set(identities).size).toBe(identities.length);
      const first = objects.findIndex(({ kind }) => kind === 'Namespace');
      const inside = objects.findIndex(({ metadata }) => metadata.namespace === 'spillway-system');
      expect(first).toBeLessThan(inside);
      for (const object of objects)
        expect(knownResource(object).namespaced, nameOf(object)).toBe(object.metadata.namespace !== undefined);
    }
  });

  it('by default is as it is shipped', () => {
    expect(rendered({})).toEqual(filesOf(DEFAULT_CHOICES).flatMap(manifestObjects));
  });

  it('has the image, the replicas and the settings that are chosen, which the manager can read', () => {
    const objects = rendered({
      image: 'example.test/spillway:2',
      replicas: 3,
      admission: 'Webhook',
      hostIdentity: 'ServiceAccount',
    });
    expect(found(objects, 'deployment.apps/spillway-manager')).toMatchObject({
      spec: { replicas: 3, template: { spec: { containers: [{ image: 'example.test/spillway:2' }] } } },
    });
    const settings = managerConfigSchema.parse(settingsIn(objects));
    expect(settings).toMatchObject({
      hostIdentity: 'ServiceAccount',
      components: ['members', 'scheduler'],
      admission: { schedulerName: 'spillway-scheduler', splitNodeConstraints: true, webhook: { enabled: true } },
    });
    expect(managerConfigSchema.parse(settingsIn(rendered({}))).admission.webhook.enabled).toBe(false);
  });

  it.each([
    ['Second', 'Policies', true, [...PODS, 'spillway-scheduler-name']],
    ['Own', 'Policies', false, [...PODS, 'spillway-extender-pods']],
    ['Second', 'Webhook', true, []],
    ['Own', 'Webhook', false, []],
  ] as const)('with scheduler %s and admission by %s', (scheduler, admission, hasSecond, policies) => {
    const objects = rendered({ scheduler, admission });
    expect(named(objects).includes('deployment.apps/spillway-kube-scheduler')).toBe(hasSecond);
    // Where each scheduler asks, none has to be kept from pods that tolerate virtual nodes later.
    const guard = 'validatingadmissionpolicy.admissionregistration.k8s.io/spillway-scheduler-guard';
    expect(named(objects).includes(guard)).toBe(hasSecond);
    const mutating = objects
      .filter(({ kind }) => kind === 'MutatingAdmissionPolicy')
      .map(({ metadata }) => metadata.name);
    expect(mutating.toSorted()).toEqual(policies.toSorted());
    expect(objects.some(({ kind }) => kind === 'MutatingWebhookConfiguration')).toBe(admission === 'Webhook');
  });
});

describe('what is not chosen any more', () => {
  it('goes, but for kinds, which are remembered', () => {
    const before = rendered({ multiCluster: 'Exchange', admission: 'Webhook' });
    const { goes, stays } = noLongerWanted(before, rendered({}));
    expect(named(goes)).toContain('clusterrole.rbac.authorization.k8s.io/spillway-multi-cluster');
    expect(goes.map(({ kind }) => kind)).toContain('MutatingWebhookConfiguration');
    expect(stays.map(({ metadata }) => metadata.name)).toEqual([
      'serviceexports.multicluster.x-k8s.io',
      'serviceimports.multicluster.x-k8s.io',
    ]);
    expect(noLongerWanted(before, before)).toEqual({ goes: [], stays: [] });
  });

  it('keeps a kind that a former version does not know', () => {
    const today = rendered({});
    const former = today.filter(({ metadata }) => metadata.name !== 'workloadmigrations.spillway.dev');
    expect(noLongerWanted(today, former)).toMatchObject({ goes: [], stays: [{ kind: 'CustomResourceDefinition' }] });
  });
});

describe('what a member grants', () => {
  const NO_MORE = optionalGrants(() => false);

  it.each([
    ['privileged', ['clusterrole.rbac.authorization.k8s.io/spillway-privileged']],
    ['services', ['clusterrole.rbac.authorization.k8s.io/spillway-read-services']],
    [
      'multiCluster',
      [
        'clusterrole.rbac.authorization.k8s.io/spillway-imports',
        'customresourcedefinition.apiextensions.k8s.io/serviceexports.multicluster.x-k8s.io',
      ],
    ],
  ] as const)('has %s only if that is asked for', (grant, brings) => {
    const usual = named(grantedObjects({ lend: [], ...NO_MORE, quota: {}, networkPolicy: false }, 'abc'));
    const more = named(grantedObjects({ lend: [], ...NO_MORE, [grant]: true, quota: {}, networkPolicy: false }, 'abc'));
    for (const name of brings) expect([usual.includes(name), more.includes(name)]).toEqual([false, true]);
    expect(more).toEqual(expect.arrayContaining(usual));
  });

  it('is all of it by default, or the namespaces that are lent, to this host only', () => {
    const all = grantedObjects({ lend: [], ...NO_MORE, quota: {}, networkPolicy: false }, 'abc');
    expect(named(all)).toContain('clusterrolebinding.rbac.authorization.k8s.io/spillway-namespaces');
    const lent = grantedObjects(
      { lend: ['shop', 'bakery'], ...NO_MORE, quota: { pods: '5' }, networkPolicy: true },
      'abc',
    );
    expect(named(lent)).not.toContain('clusterrolebinding.rbac.authorization.k8s.io/spillway-namespaces');
    expect(named(lent)).not.toContain('clusterrolebinding.rbac.authorization.k8s.io/spillway-node-metrics');
    for (const namespace of ['shop', 'bakery']) {
      expect(lent.find(({ kind, metadata }) => kind === 'Namespace' && metadata.name === namespace)).toMatchObject({
        metadata: { labels: { 'spillway.dev/allow-host': 'abc', 'pod-security.kubernetes.io/enforce': 'baseline' } },
      });
      expect(
        lent.find(({ kind, metadata }) => kind === 'ResourceQuota' && metadata.namespace === namespace),
      ).toMatchObject({
        spec: { hard: { pods: '5' } },
      });
      expect(lent.some(({ kind, metadata }) => kind === 'RoleBinding' && metadata.namespace === namespace)).toBe(true);
    }
  });

  it('has no quota unless one is asked for', () => {
    const lent = grantedObjects(
      { lend: ['bakery'], ...NO_MORE, nodeMetrics: true, quota: {}, networkPolicy: false },
      'abc',
    );
    expect(lent.some(({ kind }) => kind === 'ResourceQuota')).toBe(false);
    expect(named(lent)).toContain('clusterrolebinding.rbac.authorization.k8s.io/spillway-node-metrics');
  });
});
