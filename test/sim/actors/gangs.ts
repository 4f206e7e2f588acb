import {
  GANG_GATE,
  GANG_LABEL,
  GANG_SIZE_ANNOTATION,
  GANG_TIMEOUT_ANNOTATION,
  MEMBER_LABEL,
} from '../../../src/api/marks.ts';
import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { asPod, phaseOf } from '../pod-shapes.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import type { SimObject } from '../sim-cluster.ts';
import { podPath } from '../workload-controllers.ts';
import type { Acts } from './act.ts';
import { create, podSpec } from './creations.ts';

/** The host's own nodes have no room. */
const IN_MEMBERS: JsonObject = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: MEMBER_LABEL, operator: 'Exists' }] }],
    },
  },
};

/** A template of pods that wait at the gate of their gang. */
function gangTemplate(scene: Scene, random: Random, size: number, restartPolicy: string): JsonObject {
  return {
    metadata: {
      labels: { [GANG_LABEL]: `gang${scene.nextNumber()}` },
      annotations: {
        [GANG_SIZE_ANNOTATION]: String(size),
        [GANG_TIMEOUT_ANNOTATION]: String(random.pick([5, 20, 60]) ?? 20),
      },
    },
    spec: { ...podSpec(restartPolicy), schedulingGates: [{ name: GANG_GATE }], affinity: IN_MEMBERS },
  };
}

/** Users of the host make gangs: groups of pods that go where all of them fit, or nowhere. */
export const GANGS = {
  'create-gang': {
    weight: 0,
    act: (scene, random) => {
      const replicas = 2 + random.int(3);
      return create(scene, random, 'ReplicaSet', {
        replicas,
        template: gangTemplate(scene, random, replicas, 'Always'),
      });
    },
  },
  'create-gang-job': {
    weight: 0,
    act: (scene, random) => {
      const size = 2 + random.int(2);
      const template = gangTemplate(scene, random, size, 'Never');
      return create(scene, random, 'Job', { completions: size, parallelism: size, template });
    },
  },
  'gang-and-outage': {
    weight: 0,
    act: async (scene, random) => {
      const { loop } = scene.world;
      if (scene.isFull() || scene.doors.get('host')?.instead !== undefined) return undefined;
      const replicas = 2 + random.int(3);
      const template = gangTemplate(scene, random, replicas, 'Always');
      const did = create(scene, random, 'ReplicaSet', { replicas, template });
      await loop.runUntil(loop.now + random.between(500, 12_000));
      for (const replica of scene.replicas) replica.crash();
      const seconds = Math.round(random.between(20, 300));
      await loop.runUntil(loop.now + seconds * 1_000);
      await scene.replicas[0]?.start();
      return `${did}, and soon no replica runs for ${seconds} s`;
    },
  },
  'last-of-gang-fails': {
    weight: 0,
    act: (scene, random) => {
      const found = random.pick([...scene.kubelets].flatMap(([member]) => jobsThatRun(scene, member)));
      if (found === undefined) return undefined;
      const { member, gang } = found;
      const last = random.int(gang.length);
      for (const [index, path] of gang.entries()) scene.kubelets.get(member)?.finish(path, index === last ? 1 : 0);
      return `containers of ${gang.join(', ')} in ${member} exit with 0, but for that of ${gang[last] ?? ''}: 1`;
    },
  },
} satisfies Acts;

/** Gangs in a member of which every pod runs, and none to run for ever: the paths of their copies. */
function jobsThatRun(scene: Scene, member: string): { member: string; gang: string[] }[] {
  const gangs = new Map<string, SimObject[]>();
  for (const pod of scene.world.members.get(member)?.list('/api/v1/pods') ?? []) {
    const gang = pod.metadata.labels?.[GANG_LABEL];
    const runs = asPod(pod).spec.restartPolicy === 'Never' && phaseOf(pod) === 'Running';
    if (gang !== undefined && runs) gangs.set(gang, [...(gangs.get(gang) ?? []), pod]);
  }
  return [...gangs.values()]
    .filter((pods) => pods.length === Number(pods[0]?.metadata.annotations?.[GANG_SIZE_ANNOTATION]))
    .map((pods) => ({ member, gang: pods.map((pod) => podPath(pod)) }));
}
