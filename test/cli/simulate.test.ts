import { describe, expect, it } from 'vitest';
import { parseMemberCluster, type MemberCluster } from '../../src/api/member-cluster.ts';
import { parsePlacementPolicy } from '../../src/api/placement-policy.ts';
import { CliError } from '../../src/cli/cli-error.ts';
import { addressesNotKnown, memberPod, type HostFacts } from '../../src/cli/simulate/member-pod.ts';
import { placesByRules, placesWithoutRules } from '../../src/cli/simulate/places.ts';
import { roomsFor } from '../../src/cli/simulate/rooms.ts';
import { simulationText } from '../../src/cli/simulate/simulation-text.ts';
import { wantedPods } from '../../src/cli/simulate/workload-pods.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { clusterOf, localCluster } from '../../src/api/cluster.ts';
import { compilePolicy, selectPolicy, type Rules } from '../../src/placement/policy-selection.ts';
import { hostPod } from '../fixtures/pods.ts';

function member(name: string, status: object = {}, spec: object = {}): MemberCluster {
  const raw: KubeObject & { spec: object; status: object } = {
    metadata: { name },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...spec },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
      ...status,
    },
  };
  const parsed = parseMemberCluster(raw);
  if (!('member' in parsed)) throw new Error(parsed.problems.join());
  return parsed.member;
}

function node(name: string, cpu: string, of?: string): Node {
  return {
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    spec: of === undefined ? {} : { providerID: `spillway://${of}/${name}` },
    status: { allocatable: { cpu, memory: '64Gi', pods: '110' }, conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

const asks = (cpu: string, more: Partial<Pod['spec']> = {}): Pod =>
  hostPod({ spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }], ...more } });

function rulesOf(pod: Pod, placement: object): Rules {
  const raw: KubeObject & { spec: object } = {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }], placement },
  };
  const parsed = parsePlacementPolicy(raw);
  const policy = 'policy' in parsed ? compilePolicy(parsed.policy) : parsed;
  if ('problems' in policy) throw new Error(policy.problems.join());
  const { chosen } = selectPolicy([{ ...pod, apiVersion: 'v1', kind: 'Pod' }], [policy], {});
  if (chosen === undefined) throw new Error('the policy does not choose the pod');
  return chosen;
}

describe('pods of a manifest', () => {
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'web:1' }] } };
  const manifest = (kind: string, apiVersion: string, spec: object): string =>
    JSON.stringify({ apiVersion, kind, metadata: { name: 'web' }, spec });

  it.each([
    ['Deployment', 'apps/v1', { replicas: 3, template }, 3, 'web-simulated-simulated', ['ReplicaSet', 'Deployment']],
    ['StatefulSet', 'apps/v1', { template, serviceName: 'web' }, 1, 'web-0', ['StatefulSet']],
    ['Job', 'batch/v1', { parallelism: 5, completions: 2, template }, 2, 'web-simulated', ['Job']],
    ['CronJob', 'batch/v1', { jobTemplate: { spec: { template } } }, 1, 'web-simulated-simulated', ['Job', 'CronJob']],
    ['ReplicationController', 'v1', { replicas: 2, template }, 2, 'web-simulated', ['ReplicationController']],
    ['Pod', 'v1', template.spec, 1, 'web', []],
  ])('of a %s', (kind, apiVersion, spec, replicas, name, owners) => {
    const { wanted } = wantedPods(manifest(kind, apiVersion, spec), 'shop');
    expect(wanted).toHaveLength(1);
    expect(wanted[0]).toMatchObject({ of: `${kind}/web`, replicas, pod: { metadata: { name, namespace: 'shop' } } });
    expect(wanted[0]?.owners.map((one) => one.kind)).toEqual(owners);
    expect(wanted[0]?.pod.spec.containers).toEqual(template.spec.containers);
  });

  it('of several documents and lists, in their own namespaces', () => {
    const one = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', namespace: 'other' },
      spec: { containers: [] },
    };
    const text = `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [one] })}\n---\n${manifest('DaemonSet', 'apps/v1', { template })}\n---\n`;
    const { wanted, passedOver } = wantedPods(text, 'shop');
    expect(wanted.map(({ pod }) => pod.metadata.namespace)).toEqual(['other']);
    expect(passedOver).toEqual(['DaemonSet/web']);
  });

  it('as YAML is read by kubectl', () => {
    const text =
      'apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {at: 2026-01-01}}\n' +
      'spec:\n  containers: [{name: a, args: [8080:80]}]\n  volumes: [{name: s, secret: {secretName: s, defaultMode: 0400}}]\n';
    const { metadata, spec } = wantedPods(text, 'shop').wanted[0]?.pod ?? hostPod();
    expect(metadata.annotations).toEqual({ at: '2026-01-01' });
    expect(spec.containers).toEqual([{ name: 'a', args: ['8080:80'] }]);
    expect(spec.volumes).toEqual([{ name: 's', secret: { secretName: 's', defaultMode: 0o400 } }]);
  });

  it('with what their controllers add: claims and names of a StatefulSet, the index of an Indexed Job', () => {
    const volumes = [
      { name: 'data', emptyDir: {} },
      { name: 'more', emptyDir: {} },
    ];
    const set = manifest('StatefulSet', 'apps/v1', {
      template: { ...template, spec: { ...template.spec, volumes } },
      serviceName: 'db',
      ordinals: { start: 5 },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
    });
    expect(wantedPods(set, 'shop').wanted[0]?.pod).toMatchObject({
      metadata: { name: 'web-5', labels: { 'apps.kubernetes.io/pod-index': '5' } },
      spec: {
        hostname: 'web-5',
        subdomain: 'db',
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data-web-5' } }, { name: 'more' }],
      },
    });
    const job = manifest('Job', 'batch/v1', { completionMode: 'Indexed', completions: 3, parallelism: 3, template });
    expect(wantedPods(job, 'shop').wanted[0]).toMatchObject({
      replicas: 3,
      pod: {
        metadata: { annotations: { 'batch.kubernetes.io/job-completion-index': '0' } },
        spec: { hostname: 'web-0', containers: [{ env: [{ name: 'JOB_COMPLETION_INDEX' }] }] },
      },
    });
  });

  it('of kinds without pods are passed over, whatever their spec is', () => {
    const text = [
      manifest('SealedSecret', 'bitnami.com/v1', { template: 'any', replicas: 'many' }),
      manifest('ConfigMap', 'v1', {}),
    ];
    expect(wantedPods(text.join('\n---\n'), 'shop')).toEqual({
      wanted: [],
      passedOver: ['SealedSecret/web', 'ConfigMap/web'],
    });
  });

  it.each([
    ['no YAML', 'a: [', /not valid YAML/],
    ['aliases', 'apiVersion: &a v1\nkind: *a\n', /aliases/],
    ['no kind', 'apiVersion: v1\n', /^a document: kind: /],
    ['no object', 'text', /^a document: .*expected object/],
    ['nothing in a List', '{"apiVersion": "v1", "kind": "List", "items": [null]}', /^a document: .*expected object/],
    ['no name', 'apiVersion: v1\nkind: Pod\nmetadata: {}\n', /^Pod: metadata.name: /],
    [
      'labels that are no text',
      'apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {on: 1}}\n',
      /^Pod a: metadata.labels.true: /,
    ],
    ['no template', manifest('Deployment', 'apps/v1', {}), /^Deployment\/web: spec.template is missing/],
    [
      'replicas in words',
      manifest('Deployment', 'apps/v1', { replicas: 'two', template }),
      /^Deployment web: spec.replicas: /,
    ],
    [
      'no containers',
      manifest('Job', 'batch/v1', { template: { spec: {} } }),
      /^Job web: spec.template.spec.containers: /,
    ],
    ['no template of Jobs', manifest('CronJob', 'batch/v1', {}), /^CronJob web: spec.jobTemplate: /],
    [
      'a pod of another shape',
      manifest('Pod', 'v1', { containers: [{ name: 'a', command: 'run' }] }),
      /command is not a list/,
    ],
  ])('are refused: %s', (_what, text, reason) => {
    const run = (): unknown => wantedPods(text, 'shop');
    expect(run).toThrow(CliError);
    try {
      run();
    } catch (error) {
      expect((error as CliError).reason).toMatch(reason);
    }
  });
});

describe('where they would go', () => {
  const east = member('east', {
    allocatable: { cpu: '16', memory: '64Gi', pods: '100' },
    largestFreeSlot: { cpu: '8' },
  });
  const west = member('west', {
    allocatable: { cpu: '4', memory: '64Gi', pods: '100' },
    largestFreeSlot: { cpu: '4' },
  });
  const nodes = [node('local-1', '4'), node('local-2', '2'), node('east', '16', 'east'), node('west', '4', 'west')];
  const world = { members: [east, west], nodes, pods: [] };

  it('room is that of nodes here, and what members show', () => {
    const rooms = roomsFor(asks('1'), {
      ...world,
      pods: [{ ...asks('1'), spec: { ...asks('1').spec, nodeName: 'local-1' } }],
    });
    expect([...rooms].map(([cluster, { fits }]) => [cluster, fits])).toEqual([
      ['local', 5],
      ['east', 16],
      ['west', 4],
    ]);
    const large = roomsFor(asks('6'), world);
    expect(large.get('local')?.why).toBe('no node has 6 cpu free (largest free slot 4 cpu)');
    expect(large.get('east')?.fits).toBe(2);
    expect(large.get('west')?.why).toBe('no node has 6 cpu free (largest free slot 4 cpu)');
    expect(roomsFor(asks('1'), { ...world, nodes: undefined }).get('local')).toEqual({ fits: undefined });
    expect(roomsFor(asks('1', { nodeSelector: { disk: 'ssd' } }), world).get('east')?.impossible).toMatch(
      /leaves it out/,
    );
  });

  it('by rules, one after the other, until there is no room', () => {
    const pod = asks('2');
    const clusters = [localCluster(), clusterOf(east), clusterOf(west)];
    const placement = {
      clusterAffinity: {
        clusterNames: ['local'],
        overflowAffinities: [{ affinityName: 'more', clusterNames: ['east'] }],
      },
    };
    const places = placesByRules({
      rules: rulesOf(pod, placement),
      clusters,
      rooms: roomsFor(pod, world),
      replicas: 14,
      now: 0,
    });
    expect([...places.counts]).toEqual([
      ['local', 3],
      ['east', 8],
    ]);
    expect(places.waiting).toBe(3);
    expect(places.why.get('west')).toBe('the policy does not name it');
  });

  it('as a division says', () => {
    const pod = asks('1');
    const weights = [1, 3].map((weight, index) => ({
      weight,
      targetCluster: { clusterNames: [['east', 'west'][index]] },
    }));
    const placement = {
      clusterAffinity: { clusterNames: ['east', 'west'] },
      replicaScheduling: {
        replicaSchedulingType: 'Divided',
        replicaDivisionPreference: 'Weighted',
        weightPreference: { staticWeightList: weights },
      },
    };
    const clusters = [localCluster(), clusterOf(east), clusterOf(west)];
    const places = placesByRules({
      rules: rulesOf(pod, placement),
      clusters,
      rooms: roomsFor(pod, world),
      replicas: 4,
      now: 0,
    });
    expect(Object.fromEntries(places.counts)).toEqual({ east: 1, west: 3 });
  });

  it('without rules where there is room and they ask for it', () => {
    const places = placesWithoutRules(roomsFor(asks('2'), world), 5, (name) =>
      name === 'west' ? 'nothing says so' : undefined,
    );
    expect([...places.counts]).toEqual([
      ['local', 3],
      ['east', 2],
    ]);
    expect(places.why.get('west')).toBe('nothing says so');
  });
});

describe('what they would become', () => {
  const host: HostFacts = {
    hostId: 'abcdef0123456789',
    namespaceLabels: {},
    services: [],
    apiServer: undefined,
    policies: [],
    environmentKeys: () => [],
    nodes: undefined,
    copiesTopology: true,
  };
  const become = async (pod: Pod, of: MemberCluster) =>
    await memberPod(
      pod,
      [{ apiVersion: 'v1', kind: 'Pod', name: pod.metadata.name, labels: {} }],
      of,
      of.metadata.name,
      host,
      new AbortController().signal,
    );

  it('is the pod of the manager, or its refusal', async () => {
    const made = await become(asks('1'), member('east', {}, { namespaces: { mapping: 'Prefixed', prefix: 'h-' } }));
    expect(made).toMatchObject({ pod: { metadata: { namespace: 'h-shop', labels: { 'spillway.dev/node': 'east' } } } });
    const inRegion = await become(asks('1'), member('east', {}, { region: 'eu' }));
    expect(inRegion).toMatchObject({ pod: { metadata: { labels: { 'topology.kubernetes.io/region': 'eu' } } } });
    const refused = await become(asks('1', { resourceClaims: [{ name: 'gpu' }] }), member('east'));
    expect(refused).toEqual({ refused: expect.stringMatching(/^ResourceClaimsNotSupported: /) });
    const mapped = member('east', {}, { namespaces: { mapping: 'Explicit', explicit: [{ host: 'a', member: 'b' }] } });
    expect(await become(asks('1'), mapped)).toEqual({
      refused: expect.stringMatching(/^NamespaceNotAllowed: Cluster "east": .* not listed/),
    });
    const token = asks('1');
    token.metadata.annotations = { 'spillway.dev/service-account-mode': 'Host' };
    expect(await become(token, member('east'))).toEqual({
      refused: expect.stringMatching(/^ServiceAccountModeNotAllowed: .*does not admit/),
    });
  });

  it('has the PriorityClass that the MemberCluster maps', async () => {
    const podPriority = { classes: [{ host: 'critical', member: 'burst-high' }] };
    const made = await become(asks('1', { priorityClassName: 'critical' }), member('east', {}, { podPriority }));
    expect(made).toMatchObject({ pod: { spec: { priorityClassName: 'burst-high' } } });
    expect(await become(asks('1', { priorityClassName: 'critical' }), member('east'))).not.toHaveProperty(
      'pod.spec.priorityClassName',
    );
  });

  it('names the members whose addresses of Services it cannot know', () => {
    const web = { metadata: { name: 'web' }, spec: { clusterIP: '10.0.0.1' } };
    const headless = { metadata: { name: 'db' }, spec: { clusterIP: 'None' } };
    const members = [member('east'), member('west', {}, { services: { mode: 'Mirror' } })];
    expect(addressesNotKnown(asks('1'), [web], members)).toMatch(/^in west, Services have addresses of their own/);
    expect(addressesNotKnown(asks('1'), [web], [member('east')])).toBeUndefined();
    expect(addressesNotKnown(asks('1'), [headless], members)).toBeUndefined();
    expect(addressesNotKnown(asks('1', { enableServiceLinks: false }), [web], members)).toBeUndefined();
  });
});

it('is told in a table for each object', () => {
  const ranked = { ...hostPod(), spec: { ...hostPod().spec, priorityClassName: 'burst-high' } };
  const text = simulationText([
    {
      object: 'Deployment/web',
      namespace: 'shop',
      replicas: 2,
      rules: 'PlacementPolicy web',
      waiting: 1,
      places: [
        { cluster: 'local', pods: 0, says: 'the policy excludes it', becomes: [] },
        { cluster: 'east', pods: 1, says: 'score 50', becomes: [{ node: 'east', pod: ranked, refused: null }] },
        {
          cluster: 'west',
          pods: 0,
          says: 'no room',
          becomes: [{ node: 'west', pod: null, refused: 'InvalidPod: no' }],
        },
      ],
      notes: ['its claims were not looked at'],
    },
  ]);
  expect(text).toBe(`Deployment/web in shop: 2 pods, by PlacementPolicy web
  CLUSTER   PODS   WHY                      BECOMES
  local     0      the policy excludes it   <none>
  east      1      score 50                 east: shop/web-0 with PriorityClass burst-high
  west      0      no room                  west: refused: InvalidPod: no
  1 pod would wait: no cluster takes it now
  note: its claims were not looked at
`);
});
