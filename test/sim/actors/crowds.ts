import { EXTENDER_RESOURCE } from '../../../src/api/marks.ts';
import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { BY_ROOM, GPU, GPU_TOLERATION, HERE, RULE, SHRINKS } from '../crowded.ts';
import { ruleByRoom } from '../crowded-rules.ts';
import { isGated } from '../host-scheduler.ts';
import { asPod } from '../pod-shapes.ts';
import type { Random } from '../random.ts';
import { freeOn, memberOf } from '../room.ts';
import type { Scene } from '../scene.ts';
import type { SimObject } from '../sim-cluster.ts';
import { pathOf, podPath, selectorOf, WORKLOADS } from '../workload-controllers.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { podSpec } from './creations.ts';

/** Of workloads that grow and shrink. */
const LARGE = 'large';
/** In histories of so many pods there is one. */
const LARGE_AND_OTHERS = 40;
const GATE = 'example.com/quota';

/** As manifests/scheduler/extender-pods.yaml marks them. */
function markedSpec(requests: JsonObject): JsonObject {
  const mark = { [EXTENDER_RESOURCE]: '0' };
  const resources = { requests: { ...requests, ...mark }, limits: mark };
  return { ...podSpec('Always'), containers: [{ name: 'main', image: 'busybox', resources }] };
}

/** Pods that ask for room, and of which some are more important than others. */
function sizedSpec(random: Random, requests: JsonObject): JsonObject {
  const hasLargeStart = random.chance(0.15);
  const initContainers = [{ name: 'first', image: 'busybox', resources: { requests: { cpu: '3' } } }];
  return {
    ...markedSpec(requests),
    ...(hasLargeStart ? { initContainers } : {}),
    priority: random.pick([0, 0, 0, 100, 1_000]) ?? 0,
  };
}

function cpu(random: Random): JsonObject {
  return { cpu: random.pick(['1', '1', '2', '2', '3']) ?? '1' };
}

interface Wanted {
  readonly replicas: number;
  readonly rule: string;
  readonly spec: JsonObject;
  readonly prefix?: string;
  readonly shrinks?: boolean;
}

function replicaSet(scene: Scene, { replicas, rule, spec, prefix = 'crowd', shrinks = false }: Wanted): string {
  const namespace = USER_NAMESPACES[0];
  const name = `${prefix}${String(scene.nextNumber())}`;
  scene.world.host.create('user', `/apis/apps/v1/namespaces/${namespace}/replicasets`, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name, namespace, labels: { [RULE]: rule } },
    spec: {
      replicas,
      selector: selectorOf(name),
      template: { ...(shrinks ? { metadata: { labels: { [SHRINKS]: 'yes' } } } : {}), spec },
    },
  });
  const how = `${shrinks ? 'shrinking ' : ''}rule ${rule}, priority ${String(spec['priority'])}`;
  return `user creates ReplicaSet ${name} of ${String(replicas)}, ${how} ${JSON.stringify(spec['containers'])}`;
}

/** Time for schedulers and kubelets to do what is to be done, mostly. */
async function goOn({ world: { loop } }: Scene, random: Random): Promise<void> {
  await loop.runUntil(loop.now + (random.pick([0, 500, 3_000, 6_000, 15_000]) ?? 0));
}

function largeSet(scene: Scene): SimObject | undefined {
  return scene.world.host.list(WORKLOADS.ReplicaSet).find(({ metadata }) => metadata.name.startsWith(LARGE));
}

/** Whatever is free on nodes of a member without GPUs its owner uses. Returns the paths of the pods that do. */
function takeAll(scene: Scene, member: string): string[] {
  const cluster = scene.world.members.get(member);
  const nodes = cluster?.list(PATHS.nodes) ?? [];
  return nodes.flatMap((node) => {
    const free = cluster === undefined ? { cpu: 0, gpu: 0 } : freeOn(cluster, node);
    if (cluster === undefined || free.cpu <= 0 || free.gpu > 0) return [];
    const name = `own${String(scene.nextNumber())}`;
    const resources = { requests: { cpu: String(free.cpu) } };
    cluster.create('owner', PATHS.pods('default'), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: {
        containers: [{ name: 'main', image: 'busybox', resources }],
        restartPolicy: 'Always',
        nodeName: node.metadata.name,
      },
    });
    return [`${PATHS.pods('default')}/${name}`];
  });
}

/** Waits until some pod that waits has a node for which others leave; returns it. */
async function untilNominated({ world: { host, loop } }: Scene): Promise<string | undefined> {
  for (let look = 0; look < 100; look += 1) {
    await loop.runUntil(loop.now + 100);
    for (const pod of host.list('/api/v1/pods')) {
      const { spec, status } = asPod(pod);
      if (spec.nodeName === undefined && status?.nominatedNodeName !== undefined) return status.nominatedNodeName;
    }
  }
  return undefined;
}

/** Users of the host want more than there is. */
export const CROWDS = {
  crowd: {
    weight: 0,
    act: async (scene, random) => {
      if (scene.isFull()) return undefined;
      const rule = random.pick(['any', 'now', 'now', 'later', HERE]) ?? 'any';
      const replicas = 1 + random.int(3);
      const spec = sizedSpec(random, cpu(random));
      const did = replicaSet(scene, { replicas, rule, spec, shrinks: rule === 'any' && random.chance(0.5) });
      await goOn(scene, random);
      return did;
    },
  },
  'crowd-with-gates': {
    weight: 0,
    act: async (scene, random) => {
      if (scene.isFull()) return undefined;
      const namespace = USER_NAMESPACES[0];
      const name = `gated${String(scene.nextNumber())}`;
      const path = `${PATHS.pods(namespace)}/${name}`;
      const { host } = scene.world;
      host.create('user', PATHS.pods(namespace), {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace, labels: { [RULE]: 'later' } },
        spec: { ...sizedSpec(random, cpu(random)), schedulingGates: [{ name: GATE }] },
      });
      const seconds = Math.round(random.between(1, 150));
      scene.forAWhile(seconds, () => {
        const pod = host.get(path);
        if (pod !== undefined && isGated(pod)) host.patch('user', path, { spec: { schedulingGates: null } });
      });
      await goOn(scene, random);
      return `user creates pod ${name}, behind a gate for ${String(seconds)} s`;
    },
  },
  'crowd-with-gpus': {
    weight: 0,
    act: async (scene, random) => {
      if (scene.isFull()) return undefined;
      const spec = sizedSpec(random, { cpu: '1', [GPU]: '1' });
      const { initContainers: _none, ...own } = spec;
      const tolerations = [...(own['tolerations'] as JsonObject[]), GPU_TOLERATION];
      const limits = { [GPU]: '1', [EXTENDER_RESOURCE]: '0' };
      const containers = (own['containers'] as JsonObject[]).map((one) => ({
        ...one,
        resources: { ...(one['resources'] as JsonObject), limits },
      }));
      const did = replicaSet(scene, {
        replicas: 1,
        rule: 'any',
        spec: { ...own, containers, tolerations },
        prefix: 'gpu',
      });
      await goOn(scene, random);
      return did;
    },
  },
  'grow-and-shrink': {
    weight: 0,
    act: async (scene, random) => {
      const { host } = scene.world;
      const found = largeSet(scene);
      if (found === undefined) {
        if (scene.isFull() || scene.mostPods < LARGE_AND_OTHERS) return undefined;
        const did = replicaSet(scene, {
          replicas: 22 + random.int(6),
          rule: 'weights',
          spec: markedSpec({}),
          prefix: LARGE,
        });
        await goOn(scene, random);
        return did;
      }
      const path = pathOf(found, WORKLOADS.ReplicaSet);
      const before = (found['spec'] as { replicas?: number }).replicas ?? 22;
      const sizes = [before + 1, before, before + (random.chance(0.5) ? 1 : -1)].map((size) =>
        Math.max(20, Math.min(30, size)),
      );
      for (const replicas of sizes) {
        host.patch('autoscaler', path, { spec: { replicas } });
        await scene.world.loop.runUntil(scene.world.loop.now + random.between(1_000, 5_000));
      }
      return `an autoscaler takes ${found.metadata.name} to ${sizes.join(', ')}`;
    },
  },
  'owner-takes-room': {
    weight: 0,
    act: async (scene, random) => {
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      if (member === undefined || cluster === undefined) return undefined;
      const namespace = 'default';
      const name = `own${String(scene.nextNumber())}`;
      const path = `${PATHS.pods(namespace)}/${name}`;
      const requests = { cpu: random.pick(['1', '2']) ?? '1' };
      cluster.create('owner', PATHS.pods(namespace), {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace },
        spec: { containers: [{ name: 'main', image: 'busybox', resources: { requests } }], restartPolicy: 'Always' },
      });
      const seconds = Math.round(random.between(10, 120));
      scene.forAWhile(seconds, () => cluster.remove('owner', path, { gracePeriodSeconds: 0 }));
      await goOn(scene, random);
      return `owner of ${member} takes ${requests.cpu} CPUs for ${String(seconds)} s`;
    },
  },
  'free-elsewhere': {
    weight: 0,
    act: async (scene, random) => {
      const { host, loop } = scene.world;
      const { path, policy } = ruleByRoom();
      host.create('admin', path, policy);
      const taken = new Map([...scene.world.members.keys()].map((member) => [member, takeAll(scene, member)]));
      const free = (member: string): void => {
        for (const pod of taken.get(member) ?? []) {
          scene.world.members.get(member)?.remove('owner', pod, { gracePeriodSeconds: 0 });
        }
      };
      for (const member of taken.keys()) scene.forAWhile(60, () => free(member));
      await loop.runUntil(loop.now + random.between(4_000, 12_000));
      const spec = { ...markedSpec({ cpu: '1' }), priority: 2_000 };
      const did = replicaSet(scene, { replicas: 1, rule: BY_ROOM, spec, prefix: 'first' });
      const node = await untilNominated(scene);
      const others = [...taken.keys()].filter((member) => member !== memberOf(scene.world, node ?? ''));
      if (node !== undefined) for (const member of others) free(member);
      await loop.runUntil(loop.now + random.between(0, 12_000));
      const then = node === undefined ? '' : `, and leave it in ${others.join()} once the pod is nominated to ${node}`;
      return `owners take all room there is, ${did}${then}`;
    },
  },
  'let-go': {
    weight: 0,
    act: async (scene, random) => {
      const { host } = scene.world;
      const sets = host.list(WORKLOADS.ReplicaSet).filter(({ metadata }) => !metadata.name.startsWith(LARGE));
      const gated = host.list('/api/v1/pods').filter(({ metadata }) => metadata.ownerReferences === undefined);
      const paths = [...sets.map((one) => pathOf(one, WORKLOADS.ReplicaSet)), ...gated.map((one) => podPath(one))];
      const path = random.pick(paths);
      if (path === undefined || paths.length < 5) return undefined;
      host.remove('user', path);
      await goOn(scene, random);
      return `user deletes ${path}`;
    },
  },
} satisfies Acts;
