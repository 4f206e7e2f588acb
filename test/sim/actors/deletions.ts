import { podPath } from '../workload-controllers.ts';
import type { Acts } from './act.ts';
import { deleted, deletedWorkload, someHostPod } from './targets.ts';

/** Users of the host delete what is theirs. */

export const DELETIONS = {
  'delete-workload': {
    weight: 2,
    act: (scene, random) => deletedWorkload(scene, random),
  },
  'delete-pod': {
    weight: 6,
    act: (scene, random) => {
      const pod = someHostPod(scene, random);
      return pod === undefined ? undefined : deleted(scene, 'host', 'user', podPath(pod), {});
    },
  },
  'delete-pods': {
    weight: 2,
    act: (scene, random) => {
      const pods = [someHostPod(scene, random), someHostPod(scene, random), someHostPod(scene, random)];
      return pods.map((pod) => (pod === undefined ? '' : deleted(scene, 'host', 'user', podPath(pod), {}))).join('; ');
    },
  },
  'force-delete': {
    weight: 2,
    act: (scene, random) => {
      const pod = someHostPod(scene, random);
      return pod === undefined ? undefined : deleted(scene, 'host', 'user', podPath(pod), { gracePeriodSeconds: 0 });
    },
  },
  vanish: {
    weight: 0.2,
    act: (scene) => {
      const { host } = scene.world;
      const pods = [...host.list('/api/v1/pods')];
      for (const pod of pods) host.remove('user', podPath(pod), { gracePeriodSeconds: 0 });
      return `user deletes all ${pods.length} pods by force`;
    },
  },
} satisfies Acts;
