import { DIVIDED, DIVISION_NAMES, QUOTA } from '../divisions.ts';
import type { Random } from '../random.ts';
import { pathOf, selectorOf, WORKLOADS } from '../workload-controllers.ts';
import { USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { podSpec } from './creations.ts';

/** The largest that an API server takes. */
const MOST_REPLICAS = 2 ** 31 - 1;

function someNamespace(random: Random): string {
  return random.pick(USER_NAMESPACES) ?? 'shop';
}

/** Tenants who ask for more than there is, or want to do more than they may. */
export const CHEATS = {
  'scale-without-end': {
    weight: 0,
    act: async (scene, random) => {
      const { host, loop } = scene.world;
      const old = host.list(WORKLOADS.ReplicaSet).filter(({ metadata }) => metadata.labels?.[DIVIDED] !== undefined);
      for (const one of old) host.remove('tenant', pathOf(one, WORKLOADS.ReplicaSet));
      const namespace = someNamespace(random);
      const name = `more${scene.nextNumber()}`;
      const labels = { [DIVIDED]: random.pick(DIVISION_NAMES) ?? '', [QUOTA]: '4' };
      const path = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
      host.create('tenant', path, {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: { name, namespace, labels },
        spec: { replicas: 1 + random.int(3), selector: selectorOf(name), template: { spec: podSpec('Always') } },
      });
      await loop.runUntil(loop.now + random.between(0, 6_000));
      const seconds = Math.round(random.between(1, 30));
      host.patch('tenant', `${path}/${name}`, { spec: { replicas: MOST_REPLICAS } });
      scene.forAWhile(seconds, () => host.patch('tenant', `${path}/${name}`, { spec: { replicas: 1 } }));
      const did = `makes ReplicaSet ${namespace}/${name} ${JSON.stringify(labels)}`;
      return `tenant ${did}, scales it to ${MOST_REPLICAS}, and after ${seconds} s to 1`;
    },
  },
} satisfies Acts;
