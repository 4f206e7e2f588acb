import { asPod, isFinal } from '../pod-shapes.ts';
import { podPath } from '../workload-controllers.ts';
import type { Acts } from './act.ts';
import { someCopy } from './targets.ts';

/** Nodes of members and what runs on them. */

export const MACHINES = {
  'member-evicts': {
    weight: 1,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      if (found === undefined || isFinal(found.object) || asPod(found.object).spec.nodeName === undefined)
        return undefined;
      const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' }];
      scene.kubelets.get(found.member)?.evict(found.path, conditions);
      return `kubelet evicts ${found.path} in ${found.member}`;
    },
  },
  'container-ends': {
    weight: 4,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      if (found === undefined) return undefined;
      const exitCode = random.int(2);
      scene.kubelets.get(found.member)?.finish(found.path, exitCode);
      return `container of ${found.path} in ${found.member} exits with ${exitCode}`;
    },
  },
  'pods-fall-ill': {
    weight: 2,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      const kubelets = scene.kubelets.get(found?.member ?? '');
      if (found === undefined || kubelets === undefined) return undefined;
      const app = found.object.metadata.labels?.['app'];
      const alike = [...(scene.world.members.get(found.member)?.list('/api/v1/pods') ?? [])].filter(
        ({ metadata }) => app !== undefined && metadata.labels?.['app'] === app,
      );
      const paths = random.chance(0.5) ? [found.path] : alike.map((pod) => podPath(pod));
      const ill = paths.flatMap((path) => {
        const uid = kubelets.sicken(path);
        return uid === undefined ? [] : [{ path, uid }];
      });
      const seconds = Math.round(random.between(5, random.chance(0.5) ? 60 : 900));
      scene.forAWhile(seconds, () => {
        for (const { path, uid } of ill) kubelets.recover(path, uid);
      });
      return ill.length === 0
        ? undefined
        : `for ${seconds} s ${ill.map(({ path }) => path).join(', ')} in ${found.member} crash over and over`;
    },
  },
  'machines-off': {
    weight: 1,
    act: (scene, random) => {
      const [member, kubelets] = random.pick([...scene.kubelets]) ?? [];
      if (kubelets === undefined) return undefined;
      const seconds = Math.round(random.between(2, 60));
      kubelets.asleep = true;
      scene.world.loop.later(seconds * 1_000, () => {
        kubelets.asleep = false;
      });
      return `machines of ${member} are off for ${seconds} s`;
    },
  },
} satisfies Acts;
