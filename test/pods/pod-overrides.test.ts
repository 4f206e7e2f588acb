import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { findReferences } from '../../src/pods/references.ts';
import { APPLIED_OVERRIDES_ANNOTATION } from '../../src/overrides/override-record.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import type { OverrideSubject } from '../../src/overrides/selection.ts';
import { mirroredMessage, mirroredUid } from '../../src/pods/host-status.ts';
import { PodOverrides } from '../../src/pods/pod-overrides.ts';
import type { OverridesPort } from '../../src/pods/pod-ports.ts';
import { hostPod as bound } from '../fixtures/pods.ts';
import { eachInPodWorld, type PodWorld, WEB } from '../fixtures/pod-world.ts';
import { CONTEXT } from '../fixtures/translation.ts';
import { EAST, policy, rendered, webPod } from '../overrides/rendered-pod.ts';

const SIGNAL = new AbortController().signal;
const label = (value: string) => ({ overriders: { labelsOverrider: [{ operator: 'add', value: { seen: value } }] } });
const registry = (value: string) => ({
  overriders: { imageOverrider: [{ component: 'Registry', operator: 'replace', value }] },
});
const cluster = (name: string, applyTo: string, ...overrideRules: object[]) =>
  policy('ClusterOverridePolicy', name, { applyTo, overrideRules });
const ROLLOUTS = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' };
const BAD = { overriders: { plaintext: [{ path: '/spec/containers/9', operator: 'remove' }] } };

/** Policies and owners that tests change. */
class Host implements OverridesPort {
  list: readonly OverridePolicy[] = [];
  problem: { problem: string | undefined } | undefined;
  cluster = EAST;
  nodes: Record<string, string> = {};
  readable: OverrideSubject['identities'] | Error | undefined;
  reads = 0;
  #read: OverrideSubject['identities'] | undefined;

  unknown() {
    return this.problem;
  }
  policies() {
    return this.list;
  }
  owners() {
    return this.#read;
  }
  async readOwners(): Promise<OverrideSubject['identities']> {
    this.reads += 1;
    if (this.readable instanceof Error) throw this.readable;
    this.#read = this.readable ?? identitiesOfPod(webPod());
    return await Promise.resolve(this.#read);
  }
  member() {
    return this.cluster;
  }
  pool() {
    return this.nodes;
  }
}

function setup(...policies: OverridePolicy[]) {
  const host = new Host();
  host.list = policies;
  const events: string[] = [];
  const tracked: Pod[] = [];
  let now = 1_000;
  const overrides = new PodOverrides({
    port: host,
    translateContext: () => CONTEXT,
    monotonic: () => now,
    dependents: { track: (_, references) => void tracked.push(references) },
    events: {
      record: (object, type, reason, message) => void events.push(`${type} ${reason} ${object.name}: ${message}`),
    },
  });
  return { host, overrides, events, tracked, pass: (ms: number) => (now += ms) };
}
type Setup = ReturnType<typeof setup>;

async function make({ overrides }: Setup, hostPod = webPod()): Promise<Pod> {
  const made = await overrides.forNewPod(hostPod, rendered(hostPod), CONTEXT, SIGNAL);
  if (!('pod' in made)) throw new Error(`not made: ${JSON.stringify(made)}`);
  return { ...made.pod, metadata: { ...made.pod.metadata, uid: 'member-uid' } };
}
/** The member pod after the patches, as far as tests look at it. */
function patched(memberPod: Pod, { overrides }: Setup, hostPod: Pod): Pod {
  let after = memberPod;
  for (const { patch } of overrides.updates(hostPod, memberPod, CONTEXT)) {
    const { metadata = {}, spec = {} } = patch as { metadata?: Partial<Pod['metadata']>; spec?: Partial<Pod['spec']> };
    const merged = (map: object | undefined, more: object | undefined) =>
      Object.fromEntries(Object.entries({ ...map, ...more }).filter(([, value]) => value !== null)) as Record<
        string,
        string
      >;
    after = {
      ...after,
      metadata: {
        ...after.metadata,
        labels: merged(after.metadata.labels, metadata.labels),
        annotations: merged(after.metadata.annotations, metadata.annotations),
      },
      spec: {
        ...after.spec,
        containers: after.spec.containers.map((one) => ({
          ...one,
          ...spec.containers?.find(({ name }) => name === one.name),
        })),
      },
    };
  }
  return after;
}
const images = (pod: Pod) => pod.spec.containers.map(({ image }) => image);
const settled = ({ overrides }: Setup, hostPod: Pod, memberPod: Pod) => [
  overrides.isOutdated(hostPod, memberPod),
  overrides.isInSync(hostPod, memberPod),
];

describe('a new pod', () => {
  it('is the translated one, and refers to the same, where there are no policies', async () => {
    const hostPod = webPod();
    const translated = rendered(hostPod);
    expect(await setup().overrides.forNewPod(hostPod, translated, CONTEXT, SIGNAL)).toEqual({
      pod: translated,
      references: hostPod,
    });
    const without = new PodOverrides({ ...optionsWithoutPort(), port: undefined });
    expect(await without.forNewPod(hostPod, translated, CONTEXT, SIGNAL)).toEqual({
      pod: translated,
      references: hostPod,
    });
  });

  it('is changed, says by what, and has received everything', async () => {
    const world = setup(cluster('eu', 'NewPods', registry('eu.example'), label('x')));
    const hostPod = webPod();
    const memberPod = await make(world, hostPod);
    expect(images(memberPod)).toEqual(['eu.example/web:v1', 'eu.example/side:v2']);
    expect(memberPod.metadata.annotations?.['spillway.dev/copied-keys']).toBe('app,pod-template-hash,seen;note');
    expect(JSON.parse(memberPod.metadata.annotations?.[APPLIED_OVERRIDES_ANNOTATION] ?? '')).toMatchObject({
      rules: [{ policy: 'ClusterOverridePolicy eu', rule: 0 }, { rule: 1 }],
    });
    expect(settled(world, hostPod, memberPod)).toEqual([false, true]);
    expect(world.overrides.updates(hostPod, memberPod, CONTEXT)).toEqual([]);
  });

  it('shows on the host pod which policies changed it', async () => {
    const memberPod = await make(
      setup(
        cluster('eu', 'NewPods', label('x')),
        policy('OverridePolicy', 'own', { overrideRules: [label('y')] }),
        cluster('idle', 'NewPods'),
      ),
    );
    const message = mirroredMessage('east', memberPod);
    expect(message).toMatch(/ uid=member-uid overrides=ClusterOverridePolicy\/eu,OverridePolicy\/shop\/own$/);
    const status = { conditions: [{ type: 'spillway.dev/Mirrored', status: 'True' as const, message }] };
    expect(mirroredUid({ ...webPod(), status })).toBe('member-uid');
  });

  it('waits for policies that have not been read, and says what is in the way', async () => {
    const world = setup();
    world.host.problem = { problem: undefined };
    expect(await world.overrides.forNewPod(webPod(), rendered(), CONTEXT, SIGNAL)).toMatchObject({
      wait: expect.any(String) as string,
    });
    world.host.problem = { problem: 'overridepolicies.spillway.dev is forbidden (403 Forbidden)' };
    expect(await world.overrides.forNewPod(webPod(), rendered(), CONTEXT, SIGNAL)).toMatchObject({
      hold: { reason: 'OverridePoliciesNotRead', message: expect.stringContaining('403 Forbidden') as string },
    });
  });

  it('is held by a policy that cannot be applied, in its words', async () => {
    const world = setup(cluster('bad', 'NewPods', BAD));
    expect(await world.overrides.forNewPod(webPod(), rendered(), CONTEXT, SIGNAL)).toEqual({
      hold: {
        reason: 'OverrideRefused',
        message: expect.stringMatching(
          /^ClusterOverridePolicy bad, overrideRules\[0\]\.plaintext\[0\] at \/spec\/containers\/9: .* cluster "east"/,
        ) as string,
      },
    });
  });

  it('is held when what was changed is too long to write down', async () => {
    const long = {
      overriders: {
        annotationsOverrider: [
          { operator: 'add', value: { a: 'x'.repeat(65_000), b: 'y' } },
          { operator: 'add', value: { c: 'z'.repeat(5000) } },
        ],
      },
    };
    expect(
      await setup(cluster('long', 'NewPods', long)).overrides.forNewPod(webPod(), rendered(), CONTEXT, SIGNAL),
    ).toMatchObject({
      hold: { reason: 'OverrideRefused', message: expect.stringContaining('bytes to write down') as string },
    });
  });

  it('asks for owners only where a policy does', async () => {
    const world = setup(
      policy('ClusterOverridePolicy', 'pods', {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }],
        overrideRules: [label('x')],
      }),
    );
    await make(world);
    expect(world.host.reads).toBe(0);
    const byOwner = {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', labelSelector: { matchLabels: { team: 'a' } } }],
      overrideRules: [label('owner')],
    };
    world.host.list = [policy('ClusterOverridePolicy', 'owner', byOwner)];
    const [pod, replicaSet] = identitiesOfPod(webPod());
    world.host.readable = [pod, { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', labels: { team: 'a' } }];
    expect((await make(world)).metadata.labels?.['seen']).toBe('owner');
    expect(world.host.reads).toBe(1);
    world.host.readable = new Error('timeout');
    expect(await world.overrides.forNewPod(webPod(), rendered(), CONTEXT, SIGNAL)).toMatchObject({
      wait: expect.any(String) as string,
    });
    world.host.readable = [
      pod,
      replicaSet ?? pod,
      { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', labels: undefined },
    ];
    expect(await world.overrides.forNewPod(webPod(), rendered(), CONTEXT, SIGNAL)).toMatchObject({
      hold: { reason: 'OverrideRefused', message: expect.stringContaining('Deployment "web"') as string },
    });
  });

  it('says what its owners cannot be read for, if that lasts', async () => {
    const world = setup(policy('ClusterOverridePolicy', 'owner', { resourceSelectors: [ROLLOUTS] }));
    const made = async (hostPod = webPod()) =>
      await world.overrides.forNewPod(hostPod, rendered(hostPod), CONTEXT, SIGNAL);
    world.host.readable = new Error('Rollout (argoproj.io/v1alpha1): no answer in time');
    const waits = { wait: 'the owners of the pod cannot be read' };
    expect(await made()).toEqual(waits);
    world.pass(2_999);
    expect(await made()).toEqual(waits);
    world.pass(1);
    expect(await made()).toEqual({
      hold: {
        reason: 'OverrideRefused',
        message: expect.stringContaining(
          'cannot be read: Rollout (argoproj.io/v1alpha1): no answer in time. No pod is sent',
        ) as string,
      },
    });
    // Neither one that went on meanwhile nor another of that name has waited for so long.
    const failure = world.host.readable;
    world.host.readable = undefined;
    await made();
    world.host.readable = failure;
    world.pass(10_000);
    expect(await made()).toEqual(waits);
    world.pass(10_000);
    world.overrides.forget('shop/web-5d4f8-x2x2x');
    expect(await made()).toEqual(waits);
    world.pass(10_000);
    const other = webPod();
    expect(await made({ ...other, metadata: { ...other.metadata, uid: 'other' } })).toEqual(waits);
  });

  it('refers to what the policies add, as long as it is that pod', async () => {
    const add = {
      overriders: {
        imagePullSecretsOverrider: [{ operator: 'add', value: ['pull-${member.name}'] }],
        envOverrider: [
          {
            operator: 'add',
            containerName: 'app',
            value: [{ name: 'C', valueFrom: { configMapKeyRef: { name: 'regional', key: 'k' } } }],
          },
        ],
      },
    };
    const world = setup(cluster('eu', 'NewPods', add));
    const hostPod = webPod();
    const made = await world.overrides.forNewPod(hostPod, rendered(hostPod), CONTEXT, SIGNAL);
    const names = (pod: Pod) => findReferences(pod).map(({ kind, name }) => `${kind} ${name}`);
    expect('references' in made && names(made.references)).toEqual(['ConfigMap regional', 'Secret pull-east']);
    expect(names(world.overrides.referring(hostPod))).toEqual(['ConfigMap regional', 'Secret pull-east']);
    expect(world.overrides.referring(hostPod).metadata).toBe(hostPod.metadata);
    const other = { ...hostPod, metadata: { ...hostPod.metadata, uid: 'other' } };
    expect(world.overrides.referring(other)).toBe(other);
    world.overrides.forget('shop/web-5d4f8-x2x2x');
    expect(world.overrides.referring(hostPod)).toBe(hostPod);
  });
});

describe('a pod that runs', () => {
  async function running(...policies: OverridePolicy[]): Promise<{ world: Setup; hostPod: Pod; memberPod: Pod }> {
    const world = setup(...policies);
    const hostPod = webPod();
    return { world, hostPod, memberPod: await make(world, hostPod) };
  }

  it('stays as it is when a policy for new pods is edited, comes or goes', async () => {
    const { world, hostPod, memberPod } = await running(cluster('eu', 'NewPods', registry('eu.example')));
    for (const list of [
      [cluster('eu', 'NewPods', registry('us.example'))],
      [cluster('eu', 'NewPods', registry('eu.example')), cluster('more', 'NewPods', label('x'))],
      [],
      [cluster('bad', 'NewPods', BAD)],
    ]) {
      world.host.list = list;
      await world.overrides.prepare(hostPod, memberPod, SIGNAL);
      expect(settled(world, hostPod, memberPod)).toEqual([false, true]);
    }
    expect(world.events).toEqual([]);
  });

  it('gets what changed on its host pod with the overrides it was made with', async () => {
    const { world, hostPod, memberPod } = await running(cluster('eu', 'NewPods', registry('eu.example'), label('x')));
    world.host.list = [cluster('eu', 'NewPods', registry('us.example'), label('y'))];
    const edited = webPod(
      {
        containers: hostPod.spec.containers.map((one) =>
          one.name === 'app' ? { ...one, image: 'registry.example/web:v2' } : one,
        ),
      },
      { extra: '1' },
    );
    expect(settled(world, edited, memberPod)).toEqual([true, false]);
    const after = patched(memberPod, world, edited);
    expect(images(after)).toEqual(['eu.example/web:v2', 'eu.example/side:v2']);
    expect(after.metadata.labels).toMatchObject({ extra: '1', seen: 'x' });
    expect(settled(world, edited, after)).toEqual([false, true]);
  });

  it('gets what changed on its host pod also where a rule of it names the class that its MemberCluster gave it then', async () => {
    const rule = { overriders: { plaintext: [{ path: '/spec/priorityClassName', operator: 'remove' }] } };
    const world = setup(cluster('any', 'NewPods', rule));
    const hostPod = webPod();
    const context = { ...CONTEXT, podPriority: { classes: [], default: 'low' } };
    const translated = rendered(hostPod);
    const withClass = { ...translated, spec: { ...translated.spec, priorityClassName: 'low' } };
    const made = await world.overrides.forNewPod(hostPod, withClass, context, SIGNAL);
    if (!('pod' in made)) throw new Error(`not made: ${JSON.stringify(made)}`);
    const memberPod = { ...made.pod, metadata: { ...made.pod.metadata, uid: 'member-uid' } };
    expect(memberPod.spec.priorityClassName).toBeUndefined();
    // The mapping is gone by now.
    const edited = webPod({}, { extra: '1' });
    expect(settled(world, edited, memberPod)).toEqual([true, false]);
    expect(patched(memberPod, world, edited).metadata.labels).toMatchObject({ extra: '1' });
  });

  it('follows a policy for running pods: edited, new, gone', async () => {
    const { world, hostPod, memberPod } = await running(cluster('eu', 'RunningPods', registry('eu.example')));
    world.host.list = [
      cluster('eu', 'RunningPods', registry('us.example')),
      cluster('more', 'RunningPods', label('x')),
    ];
    await world.overrides.prepare(hostPod, memberPod, SIGNAL);
    expect(settled(world, hostPod, memberPod)).toEqual([true, false]);
    const edited = patched(memberPod, world, hostPod);
    expect(images(edited)).toEqual(['us.example/web:v1', 'us.example/side:v2']);
    expect(edited.metadata.labels?.['seen']).toBe('x');
    expect(settled(world, hostPod, edited)).toEqual([false, true]);
    world.host.list = [];
    const bare = patched(edited, world, hostPod);
    expect(images(bare)).toEqual(['registry.example/web:v1', 'side:v2']);
    expect(bare.metadata.labels?.['seen']).toBeUndefined();
    expect(bare.metadata.annotations?.[APPLIED_OVERRIDES_ANNOTATION]).toBeUndefined();
    expect(settled(world, hostPod, bare)).toEqual([false, true]);
  });

  it('follows one that comes to a pod which had none', async () => {
    const { world, hostPod, memberPod } = await running();
    world.host.list = [cluster('eu', 'RunningPods', label('x'))];
    const after = patched(memberPod, world, hostPod);
    expect(after.metadata.labels?.['seen']).toBe('x');
    expect(settled(world, hostPod, after)).toEqual([false, true]);
  });

  it('follows what a variable stands for', async () => {
    const { world, hostPod, memberPod } = await running(cluster('eu', 'RunningPods', label('${member.region}')));
    world.host.cluster = { ...EAST, region: 'us-9' };
    expect(patched(memberPod, world, hostPod).metadata.labels?.['seen']).toBe('us-9');
  });

  it('keeps running as it was when a policy for running pods cannot be applied, which is told once', async () => {
    const { world, hostPod, memberPod } = await running(cluster('eu', 'RunningPods', label('x')));
    world.host.list = [cluster('eu', 'RunningPods', label('x')), cluster('z-bad', 'RunningPods', BAD)];
    for (let round = 0; round < 3; round++) await world.overrides.prepare(hostPod, memberPod, SIGNAL);
    expect(settled(world, hostPod, memberPod)).toEqual([false, true]);
    expect(world.events).toEqual([
      expect.stringMatching(
        /^Warning OverrideRefused web-5d4f8-x2x2x: The pod keeps running as it is\. ClusterOverridePolicy z-bad, /,
      ),
    ]);
    world.host.list = [cluster('eu', 'RunningPods', label('${member.color}'))];
    await world.overrides.prepare(hostPod, memberPod, SIGNAL);
    expect(settled(world, hostPod, memberPod)).toEqual([false, true]);
    expect(world.events).toHaveLength(2);
  });

  it('is left alone while policies or owners are not known, and by records of other versions', async () => {
    const { world, hostPod, memberPod } = await running(cluster('eu', 'NewPods', label('x')));
    const edited = webPod({}, { extra: '1' });
    world.host.problem = { problem: undefined };
    expect(settled(world, edited, memberPod)).toEqual([false, false]);
    world.host.problem = undefined;
    const later = {
      ...memberPod,
      metadata: {
        ...memberPod.metadata,
        annotations: { ...memberPod.metadata.annotations, [APPLIED_OVERRIDES_ANNOTATION]: '{"v":2}' },
      },
    };
    expect(settled(world, edited, later)).toEqual([false, false]);
    expect(world.overrides.updates(edited, later, CONTEXT)).toEqual([]);
    world.host.list = [
      policy('ClusterOverridePolicy', 'owner', {
        applyTo: 'RunningPods',
        resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
        overrideRules: [label('y')],
      }),
    ];
    expect(settled(world, hostPod, memberPod)).toEqual([false, false]);
    await world.overrides.prepare(hostPod, memberPod, SIGNAL);
    expect(world.host.reads).toBe(1);
    expect(settled(world, hostPod, memberPod)).toEqual([true, false]);
  });

  it('is looked at again when its owners could not be read', async () => {
    const { world, hostPod, memberPod } = await running();
    const follows = { applyTo: 'RunningPods', resourceSelectors: [ROLLOUTS], overrideRules: [label('y')] };
    world.host.list = [policy('ClusterOverridePolicy', 'owner', follows)];
    world.host.readable = new Error('no answer in time');
    expect(await world.overrides.prepare(hostPod, memberPod, SIGNAL)).toEqual({ requeueAfterMs: 60_000 });
    world.host.readable = undefined;
    expect(await world.overrides.prepare(hostPod, memberPod, SIGNAL)).toBeUndefined();
  });

  it('stays as it is when a policy turns to new pods, needs no owners for that, and does not care when that is gone', async () => {
    const byOwner = (applyTo: string, value: string) =>
      policy('ClusterOverridePolicy', 'owner', {
        applyTo,
        resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
        overrideRules: [registry(value)],
      });
    const { world, hostPod, memberPod } = await running(byOwner('RunningPods', 'eu.example'));
    const fresh = setup(byOwner('NewPods', 'us.example'));
    await fresh.overrides.prepare(hostPod, memberPod, SIGNAL);
    expect(world.host.reads + fresh.host.reads).toBe(1);
    expect(settled(fresh, hostPod, memberPod)).toEqual([true, false]);
    const turned = patched(memberPod, fresh, hostPod);
    expect(images(turned)).toEqual(['eu.example/web:v1', 'eu.example/side:v2']);
    expect(settled(fresh, hostPod, turned)).toEqual([false, true]);
    fresh.host.list = [];
    expect(settled(fresh, hostPod, turned)).toEqual([false, true]);
  });

  it('keeps what it refers to after a restart of this program', async () => {
    const add = { overriders: { imagePullSecretsOverrider: [{ operator: 'add', value: ['pull'] }] } };
    const { world, hostPod, memberPod } = await running(cluster('eu', 'NewPods', add));
    const fresh = setup(...world.host.list);
    expect(fresh.overrides.referring(hostPod)).toBe(hostPod);
    await fresh.overrides.prepare(hostPod, memberPod, SIGNAL);
    await fresh.overrides.prepare(hostPod, memberPod, SIGNAL);
    expect(fresh.tracked.map((pod) => pod.spec.imagePullSecrets)).toEqual([[{ name: 'pull' }]]);
  });
});

describe('a pod that runs, of whose owner nothing can be read', () => {
  let world: PodWorld;
  eachInPodWorld((begun) => (world = begun));

  it('is given what policies change once the owner can be read, without anything else happening', async () => {
    const host = new Host();
    world.overrides = host;
    await world.stored(world.host, bound());
    await world.start();
    await world.follow(3_000);
    const follows = { applyTo: 'RunningPods', resourceSelectors: [ROLLOUTS], overrideRules: [label('y')] };
    host.list = [policy('ClusterOverridePolicy', 'owner', follows)];
    host.readable = new Error('no answer in time');
    world.host.edit(WEB, { metadata: { labels: { touched: 'yes' } } });
    await world.follow(3_000);
    expect(host.reads).toBeGreaterThan(0);
    const [pod] = identitiesOfPod(webPod());
    host.readable = [pod, { ...ROLLOUTS, name: 'web', labels: {} }];
    await world.follow(57_000);
    expect(world.podIn(world.member).metadata.labels).toMatchObject({ seen: 'y' });
  });
});

function optionsWithoutPort() {
  return {
    translateContext: () => CONTEXT,
    dependents: { track: () => undefined },
    events: { record: () => undefined },
  };
}
