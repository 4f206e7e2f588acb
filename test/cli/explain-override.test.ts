import { describe, expect, it } from 'vitest';
import { parseMemberCluster, type MemberCluster } from '../../src/api/member-cluster.ts';
import type { OverridePolicyKind } from '../../src/api/override-policy.ts';
import { changedPaths } from '../../src/cli/explain-policy/changed-paths.ts';
import { explainOverride } from '../../src/cli/explain-policy/explain-override.ts';
import type { ExplainedOverride } from '../../src/cli/explain-policy/explained-override.ts';
import { explainedOverrideText } from '../../src/cli/explain-policy/explained-override-text.ts';
import { hostWorkloads, type HostWorkload } from '../../src/cli/explain-policy/live-workloads.ts';
import { hostData } from '../../src/cli/explain-policy/overridden-data.ts';
import { readableOverrides } from '../../src/cli/override-policies.ts';
import type { KubeObject } from '../../src/kube/object.ts';

function member(name: string, spec: object = {}): MemberCluster {
  const raw: KubeObject & { spec: object } = {
    metadata: { name },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...spec },
  };
  const parsed = parseMemberCluster(raw);
  if (!('member' in parsed)) throw new Error(parsed.problems.join());
  return parsed.member;
}

const FLEET = [member('east', { region: 'eu-1' }), member('west', { region: 'us-1' })];
const IN_EAST = { clusterNames: ['east'] };

const raw = (name: string, overrideRules: object[], more: object = {}): KubeObject =>
  ({ metadata: { name, namespace: 'shop' }, spec: { overrideRules, ...more } }) as KubeObject;
const wide = (name: string, overrideRules: object[], more: object = {}): KubeObject =>
  ({ metadata: { name }, spec: { overrideRules, ...more } }) as KubeObject;
const labels = (value: Record<string, string>, targetCluster?: object): object => ({
  ...(targetCluster === undefined ? {} : { targetCluster }),
  overriders: { labelsOverrider: [{ operator: 'add', value }] },
});
const patch = (path: string, value: unknown): object => ({
  overriders: { plaintext: [{ path, operator: 'add', value }] },
});

async function deployment(name: string, namespace = 'shop', args: string[] = []): Promise<HostWorkload> {
  const template = {
    metadata: { labels: { app: name } },
    spec: { containers: [{ name: 'app', image: 'web:1', args }] },
  };
  const object = { metadata: { name, namespace }, spec: { replicas: 2, template } } as KubeObject;
  const [found] = await hostWorkloads(({ kind }) => Promise.resolve(kind === 'Deployment' ? [object] : []));
  if (found === undefined) throw new Error('there is no workload');
  return found;
}

type Listed = Record<string, KubeObject[]>;

async function explained(
  policy: KubeObject,
  o: { others?: KubeObject[]; workloads?: HostWorkload[]; members?: MemberCluster[]; data?: Listed } = {},
): Promise<ExplainedOverride> {
  const kindOf = ({ metadata }: KubeObject): OverridePolicyKind =>
    metadata.namespace === undefined ? 'ClusterOverridePolicy' : 'OverridePolicy';
  return await explainOverride(
    {
      kind: kindOf(policy),
      policy,
      others: (o.others ?? []).flatMap((other) => readableOverrides(kindOf(other), [other])),
      members: o.members ?? FLEET,
      workloads: o.workloads ?? [await deployment('web')],
      data: async (usable) => await hostData(usable, async ({ kind }) => await Promise.resolve(o.data?.[kind] ?? [])),
      namespaceLabels: new Map(),
    },
    AbortSignal.timeout(5_000),
  );
}

describe('explain-policy of ConfigMaps and claims', () => {
  const object = (name: string, more: object): KubeObject => ({ metadata: { name, namespace: 'shop' }, ...more });
  const config = object('settings', { data: { 'app.yaml': 'level: info\n', other: 'x' } });
  const claim = object('data', { spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'standard' } });
  const here: Listed = { ConfigMap: [config, object('others', {})], PersistentVolumeClaim: [claim] };
  const only = (kind: string, name: string): object => ({ resourceSelectors: [{ apiVersion: 'v1', kind, name }] });
  const level = (value: string, targetCluster: object = IN_EAST): object => ({
    targetCluster,
    overriders: {
      fieldOverrider: [{ fieldPath: '/data/app.yaml', yaml: [{ subPath: '/level', operator: 'replace', value }] }],
    },
  });
  const storage = (value: string): object => ({
    targetCluster: IN_EAST,
    overriders: { storageClassOverrider: [{ operator: 'replace', from: 'standard', value }] },
  });

  it('that its selectors are for, and of no others', async () => {
    const { workloads, notes } = await explained(raw('p', [level('debug')], only('ConfigMap', 'settings')), {
      data: here,
    });
    const fields = [{ path: '/data/app.yaml', overruledBy: null, changedAgainBy: null }];
    expect(workloads).toEqual([
      {
        namespace: 'shop',
        workload: 'ConfigMap/settings',
        cluster: 'east',
        changes: [{ rule: 0, fields }],
        refused: null,
      },
    ]);
    expect(notes).toEqual(['ConfigMaps come to a member with the first pod there that refers to them']);
    expect((await explained(raw('p', [level('debug')]), { data: here })).workloads).toHaveLength(1);
  });

  it('tells of a later rule that wins, of the class of a claim, and of what cannot be made', async () => {
    const later = raw('z', [level('trace')], only('ConfigMap', 'settings'));
    const overruled = await explained(raw('p', [level('debug')], only('ConfigMap', 'settings')), {
      data: here,
      others: [later],
    });
    expect(explainedOverrideText(overruled)).toMatch(
      /ConfigMap\/settings +east +\/data\/app\.yaml: OverridePolicy shop\/z, overrideRules\[0\] comes later and wins/,
    );
    const ofClaim = await explained(raw('p', [storage('fast')], only('PersistentVolumeClaim', 'data')), { data: here });
    expect(explainedOverrideText(ofClaim)).toMatch(
      /PersistentVolumeClaim\/data +east +changes \/spec\/storageClassName\nnote: the class of a claim is set when/,
    );
    const missing = { ...here, ConfigMap: [object('settings', { data: {} })] };
    const refused = await explained(raw('p', [level('debug')], only('ConfigMap', 'settings')), { data: missing });
    expect(explainedOverrideText(refused)).toMatch(/ConfigMap\/settings +east +pods that need it wait: .*app\.yaml/);
  });
});

describe('explain-policy of an override policy', () => {
  it('tells which rules are for which member, and why the others are not', async () => {
    const region = { fieldSelector: { matchExpressions: [{ key: 'region', operator: 'In', values: ['us-1'] }] } };
    const { clusters } = await explained(raw('p', [labels({ a: '1' }, IN_EAST), labels({ b: '2' })]));
    expect(clusters).toEqual([
      { cluster: 'east', rules: [0, 1], says: 'overrideRules[0], overrideRules[1] are for it' },
      { cluster: 'west', rules: [1], says: 'overrideRules[1] is for it' },
    ]);
    const none = await explained(raw('p', [labels({ a: '1' }, region), labels({ a: '1' }, { exclude: ['east'] })]));
    expect(none.clusters[0]).toEqual({
      cluster: 'east',
      rules: [],
      says: 'the policy asks for region us-1, its region is eu-1; the policy excludes it',
    });
    expect((await explained(raw('p', []))).clusters[0]?.says).toBe('it has no rules');
  });

  it('tells which fields of the next pod change where, with variables resolved, and of which workloads', async () => {
    const workloads = [await deployment('web'), await deployment('api'), await deployment('web', 'elsewhere')];
    const selector = { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }] };
    const rule = {
      overriders: { imageOverrider: [{ component: 'Tag', operator: 'replace', value: '${member.region}' }] },
    };
    const found = await explained(raw('p', [rule, labels({ tier: 'gold' }, IN_EAST)], selector), { workloads });
    const image = { rule: 0, fields: [{ path: '/spec/containers/0/image', overruledBy: null, changedAgainBy: null }] };
    const label = { rule: 1, fields: [{ path: '/metadata/labels/tier', overruledBy: null, changedAgainBy: null }] };
    const web = { namespace: 'shop', workload: 'Deployment/web', refused: null };
    expect(found.workloads).toEqual([
      { ...web, cluster: 'east', changes: [image, label] },
      { ...web, cluster: 'west', changes: [image] },
    ]);
    const everywhere = await explained(wide('p', [rule], selector), { workloads });
    expect(new Set(everywhere.workloads.map((one) => one.namespace))).toEqual(new Set(['shop', 'elsewhere']));
  });

  it.each([
    ['of the namespace', raw('z', [labels({ tier: 'silver' })]), 'OverridePolicy shop/z, overrideRules[0]'],
    ['cluster-wide, which comes before it', wide('z', [labels({ tier: 'silver' })]), null],
    ['for another field', raw('z', [labels({ other: 'silver' })]), null],
    [
      'that is refused itself',
      raw('z', [
        {
          overriders: {
            plaintext: [{ path: '/metadata/labels', operator: 'replace', value: { 'spillway.dev/x': '' } }],
          },
        },
      ]),
      null,
    ],
  ])('tells which rule wins against a policy %s', async (_, other, overruledBy) => {
    const { workloads } = await explained(raw('p', [labels({ tier: 'gold' }, IN_EAST)]), { others: [other] });
    const field = { path: '/metadata/labels/tier', overruledBy, changedAgainBy: null };
    expect(workloads[0]?.changes).toEqual([{ rule: 0, fields: [field] }]);
  });

  const args = (operator: string, ...value: string[]): object => ({
    overriders: { argsOverrider: [{ containerName: 'app', operator, value }] },
  });
  const later = 'OverridePolicy shop/p, overrideRules[1]';
  it.each<[string, [object, object], string | null, string | null]>([
    ['adds to the same list', [args('add', '--one'), args('add', '--two')], null, later],
    ['takes away what was added', [args('add', '--one'), args('remove', '--one')], later, null],
    ['makes the list anew', [args('add', '--one'), patch('/spec/containers/0/args', ['--two'])], later, null],
    ['puts back what was taken away', [args('remove', '--given'), args('add', '--given')], later, null],
    [
      'adds in front of an item that was changed',
      [patch('/spec/containers/0/args/0', '--one'), patch('/spec/containers/0/args/0', '--two')],
      null,
      later,
    ],
    [
      'changes an item that was added',
      [
        patch('/spec/tolerations', [{ key: 'a', operator: 'Exists' }]),
        { overriders: { plaintext: [{ path: '/spec/tolerations/0/key', operator: 'replace', value: 'b' }] } },
      ],
      later,
      null,
    ],
  ])('tells of lists what a later rule does that %s', async (_, rules, overruledBy, changedAgainBy) => {
    const web = await deployment('web', 'shop', ['--given']);
    const { workloads } = await explained(raw('p', rules), { workloads: [web] });
    expect(workloads[0]?.changes[0]?.fields).toMatchObject([{ overruledBy, changedAgainBy }]);
  });

  it('tells which of its own rules wins', async () => {
    const { workloads } = await explained(raw('p', [labels({ tier: 'gold' }), labels({ tier: 'silver' }, IN_EAST)]));
    expect(workloads.map(({ cluster, changes }) => [cluster, changes[0]?.fields[0]?.overruledBy])).toEqual([
      ['east', 'OverridePolicy shop/p, overrideRules[1]'],
      ['west', null],
    ]);
  });

  it('tells what is refused: mistakes, and what only an administrator may do', async () => {
    const privileged = patch('/spec/containers/0/securityContext', { privileged: true });
    const refused = async (policy: KubeObject): Promise<string | null | undefined> =>
      (await explained(policy, { members: [FLEET[0] as MemberCluster] })).workloads[0]?.refused;
    expect(await refused(raw('p', [privileged]))).toMatch(
      /^OverrideRefused: OverridePolicy shop\/p, overrideRules\[0\]\.overriders: only a ClusterOverridePolicy may give a pod privileged/,
    );
    expect(await refused(wide('p', [privileged]))).toBeNull();
    expect(await refused(wide('p', [patch('/spec/containers/7/image', 'x')]))).toMatch(/there is nothing at that path/);
    expect(await refused(wide('p', [patch('/spec/volumes', [{ name: 'v', hostPath: { path: '/' } }])]))).toMatch(
      /^HostPathNotAllowed: /,
    );
    expect(await refused(wide('p', [labels({ a: '${member.unheard}' })]))).toMatch(/^OverrideRefused: /);
  });

  it('says where no pod would be made for another reason', async () => {
    const only = { namespaces: { mapping: 'Explicit', explicit: [{ host: 'bank', member: 'bank' }] } };
    const { workloads } = await explained(raw('p', [labels({ a: '1' })]), { members: [member('east', only)] });
    expect(workloads).toMatchObject([{ changes: [], refused: expect.stringMatching(/^NamespaceNotAllowed: /) }]);
  });

  it('says of one that cannot be used why, of members that are not there, and of what was not looked at', async () => {
    const broken = await explained({
      metadata: { name: 'p', namespace: 'shop' },
      spec: { overrideRules: 1 },
    } as KubeObject);
    expect(broken).toMatchObject({ applyTo: null, clusters: [], workloads: [] });
    expect(explainedOverrideText(broken)).toMatch(
      /^OverridePolicy p in shop cannot be used as it is, and is not followed:\n {2}spec\.overrideRules: /,
    );
    const found = await explained(raw('p', [labels({ a: '1' }, { clusterNames: ['moon'] })]));
    expect(found.warnings).toEqual(['spec.overrideRules[0].targetCluster: there is no member moon']);
    const env = (containerName: string): object => ({
      overriders: { envOverrider: [{ containerName, operator: 'add', value: [{ name: 'A', value: 'b' }] }] },
    });
    const unnamed = await explained(raw('p', [env('app'), env('ap')]));
    expect(unnamed.warnings).toEqual([
      'spec.overrideRules[1].overriders.envOverrider[0].containerName: no pod that it is for has a container "ap", there are app',
    ]);
    expect(explainedOverrideText(unnamed)).toContain(
      'Not consistent:\n  spec.overrideRules[1].overriders.envOverrider',
    );
    const bank = [await deployment('web', 'bank')];
    expect((await explained(raw('p', [env('ap')]), { workloads: bank })).warnings).toEqual([]);
    expect(found.notes).toEqual([
      expect.stringMatching(/^it is for everything, so for ConfigMaps, .*: those were not/),
    ]);
    const pods = { resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }] };
    expect((await explained(raw('p', [], pods))).notes).toEqual([]);
  });

  it('is read by people: members where the same becomes of a workload together, and many fields counted', async () => {
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`l${String(index)}`, 'x']));
    const later = raw('z', [labels({ tier: 'silver' }, IN_EAST)]);
    const policy = raw('p', [labels({ tier: 'gold' }), labels(many, { clusterNames: ['west'] })]);
    const text = explainedOverrideText(
      await explained(policy, { others: [later], workloads: [await deployment('web'), await deployment('api')] }),
    );
    expect(text).toMatch(
      /^OverridePolicy p in shop\nIt is for pods that come from now on; .*\n\nCLUSTER +RULES\neast +overrideRules\[0\] is for it\n/,
    );
    expect(text).toMatch(
      /^shop +Deployment\/web +east +\/metadata\/labels\/tier: OverridePolicy shop\/z, overrideRules\[0\] comes later and wins$/m,
    );
    expect(text).toMatch(
      /^shop +Deployment\/api +west +changes \/metadata\/labels\/tier, \/metadata\/labels\/l0, .* and 4 more$/m,
    );
    const both = explainedOverrideText(await explained(raw('p', [args('add', '--one'), args('add', '--two')])));
    expect(both).toMatch(
      /changes \/spec\/containers\/0\/args; \/spec\/containers\/0\/args: changed again by OverridePolicy shop\/p, overrideRules\[1\]$/m,
    );
    const same = explainedOverrideText(await explained(raw('p', [labels({ a: '1' })], { applyTo: 'RunningPods' })));
    expect(same).toMatch(/follow it, too/);
    expect(same).toMatch(/^shop +Deployment\/web +east,west +changes \/metadata\/labels\/a$/m);
    expect(explainedOverrideText(await explained(raw('p', []), { workloads: [] }))).toContain('It matches no workload');
  });
});

describe('changedPaths', () => {
  it.each<[string, unknown, unknown, string[]]>([
    ['nothing', { a: [1] }, { a: [1] }, []],
    ['deep fields', { a: { b: 1, c: 2 } }, { a: { b: 1, c: 3, d: 4 } }, ['/a/c', '/a/d']],
    ['a field that goes', { a: 1, b: 1 }, { a: 1 }, ['/b']],
    ['items of a list', { a: [{ b: 1 }, 2] }, { a: [{ b: 2 }, 2] }, ['/a/0/b']],
    ['a list that is longer', { a: [1] }, { a: [1, 2] }, ['/a']],
    ['another type', { a: [] }, { a: {} }, ['/a']],
    ['names with slashes and tildes', {}, { 'x/y~z': 1 }, ['/x~1y~0z']],
    [
      'names of what every object has',
      {},
      JSON.parse('{"__proto__":1,"constructor":2}'),
      ['/__proto__', '/constructor'],
    ],
  ])('finds %s', (_, before, after, paths) => {
    expect(changedPaths(before, after)).toEqual(paths);
  });
});
