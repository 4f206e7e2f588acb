import { MEMBER_LABEL, OUT_OF_SERVICE_TAINT } from '../../../src/api/marks.ts';
import { NO_TROUBLE, type Trouble } from '../network.ts';
import type { Scene } from '../scene.ts';
import type { SimObject } from '../sim-cluster.ts';
import { PATHS } from '../world.ts';
import type { Acts } from './act.ts';

/** All of it is gone at once: nothing runs there, and nothing answers. */
const GONE: Partial<Trouble> = { cutToServer: true, cutToClient: true };
const BACK: Partial<Trouble> = { cutToServer: false, cutToClient: false };

/** Who goes to a member that is lost, looks, and says so. */
export const FENCING = {
  'power-failure': {
    weight: 0.6,
    act: (scene, random) => {
      const [member, kubelets] = random.pick([...scene.kubelets]) ?? [];
      const cluster = scene.world.members.get(member ?? '');
      if (member === undefined || kubelets === undefined || cluster === undefined || kubelets.isOff) return undefined;
      const { troubles } = scene.world.network;
      const set = (which: Partial<Trouble>): void => {
        troubles.set(cluster.origin, { ...(troubles.get(cluster.origin) ?? NO_TROUBLE), ...which });
      };
      const [said, seconds] = [random.between(15, 90), Math.round(random.between(60, 300))];
      const effect = random.chance(0.3) ? 'NoExecute' : 'NoSchedule';
      set(GONE);
      kubelets.powerOff();
      // Only what is so is said: the machines are off, and the member is seen to be lost.
      scene.world.loop.later(said * 1_000, () => {
        if (kubelets.isOff && isLost(scene, member)) taint(scene, member, effect);
      });
      scene.forAWhile(seconds, () => {
        set(BACK);
        kubelets.powerOn();
      });
      // It is forgotten for a while that the taint is there.
      scene.forAWhile(seconds + random.between(0, 120), () => untaint(scene, member));
      return `for ${seconds} s ${member} is without power; whoever has looked says so (${effect})`;
    },
  },
  'wrong-word': {
    weight: 0.2,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      if (member === undefined || isLost(scene, member) || scene.kubelets.get(member)?.isOff === true) return undefined;
      const seconds = Math.round(random.between(5, 120));
      taint(scene, member, 'NoSchedule');
      scene.forAWhile(seconds, () => untaint(scene, member));
      return `for ${seconds} s somebody says that nothing runs in ${member}, which answers`;
    },
  },
} satisfies Acts;

function isLost({ world }: Scene, member: string): boolean {
  const { conditions = [] } = (world.host.get(`${PATHS.members}/${member}`)?.['status'] ?? {}) as {
    conditions?: { type: string; status: string }[];
  };
  return conditions.some(({ type, status }) => type === 'Reachable' && status === 'False');
}

function nodesOf({ world }: Scene, member: string): SimObject[] {
  return [...world.host.list(PATHS.nodes)].filter(({ metadata }) => metadata.labels?.[MEMBER_LABEL] === member);
}

function taint(scene: Scene, member: string, effect: string): void {
  for (const node of nodesOf(scene, member)) {
    const taints = othersOf(node['spec']);
    const added = { key: OUT_OF_SERVICE_TAINT, value: 'nodeshutdown', effect };
    scene.world.host.patch('admin', `${PATHS.nodes}/${node.metadata.name}`, { spec: { taints: [...taints, added] } });
  }
}

function untaint(scene: Scene, member: string): void {
  for (const node of nodesOf(scene, member)) {
    const taints = othersOf(node['spec']);
    scene.world.host.patch('admin', `${PATHS.nodes}/${node.metadata.name}`, { spec: { taints } });
  }
}

function othersOf(spec: unknown): { key: string; effect: string }[] {
  const { taints = [] } = (spec ?? {}) as { taints?: { key: string; effect: string }[] };
  return taints.filter(({ key }) => key !== OUT_OF_SERVICE_TAINT);
}
