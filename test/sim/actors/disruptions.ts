import { podPath } from '../workload-controllers.ts';
import { PATHS } from '../world.ts';
import type { Acts } from './act.ts';
import { someCopy, someHostPod, someWorkload } from './targets.ts';

function eviction(name: string, namespace: string): Record<string, unknown> & { metadata: Record<string, string> } {
  return { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
}

/** Budgets, and those who have to keep to them. */
export const DISRUPTIONS = {
  budget: {
    weight: 0.5,
    act: (scene, random) => {
      const found = someWorkload(scene, random);
      if (found === undefined) return undefined;
      const { name, namespace = '' } = found.object.metadata;
      scene.world.host.create('user', `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`, {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name, namespace },
        spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } },
      });
      return `user lets one pod of ${namespace}/${name} be away at a time`;
    },
  },
  evict: {
    weight: 1,
    act: (scene, random) => {
      const pod = someHostPod(scene, random);
      if (pod === undefined) return undefined;
      const { name, namespace = '' } = pod.metadata;
      const answer = scene.world.host.create('drainer', `${podPath(pod)}/eviction`, eviction(name, namespace));
      return `somebody evicts ${namespace}/${name}${answer === undefined ? ', in vain' : ''}`;
    },
  },
  'owner-evicts': {
    weight: 1,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      if (found === undefined) return undefined;
      const { name, namespace = '' } = found.object.metadata;
      const path = `${PATHS.pods(namespace)}/${name}/eviction`;
      scene.world.members.get(found.member)?.create('owner', path, eviction(name, namespace));
      return `owner evicts ${found.path} in ${found.member}`;
    },
  },
} satisfies Acts;
