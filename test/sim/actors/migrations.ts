import type { JsonObject } from '../../../src/kube/json-equal.ts';
import type { Acts } from './act.ts';
import { someWorkload } from './targets.ts';

const MIGRATIONS_OF = (namespace: string): string =>
  `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/workloadmigrations`;

/** Users of the host have workloads moved out of members, and think better of it. */
export const MIGRATIONS = {
  migrate: {
    weight: 0,
    act: (scene, random) => {
      const { world } = scene;
      const found = someWorkload(scene, random);
      if (found === undefined) return undefined;
      const { apiVersion, kind, metadata } = found.object;
      const { name, namespace = '' } = metadata;
      const members = [...world.members.keys()];
      const from = random.pick(members) ?? '';
      const to = members.find((one) => one !== from) ?? '';
      const isAll = random.chance(0.3);
      const spec: JsonObject = {
        from,
        ...(isAll ? { all: true } : { workloads: [{ apiVersion: String(apiVersion), kind: String(kind), name }] }),
        ...(random.chance(0.5) ? { to } : {}),
        unmovable: random.chance(0.7) ? 'Leave' : 'Refuse',
        ...(random.chance(0.3) ? { ttlSecondsAfterFinished: random.int(60) } : {}),
      };
      world.host.create('user', MIGRATIONS_OF(namespace), {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'WorkloadMigration',
        metadata: { name: `move${scene.nextNumber()}`, namespace, generation: 1 },
        spec,
      });
      return `user has ${isAll ? `all of ${namespace}` : found.path} moved ${JSON.stringify(spec)}`;
    },
  },
  'end-migration': {
    weight: 0,
    act: ({ world: { host } }, random) => {
      const found = random.pick([...host.list('/apis/spillway.dev/v1alpha1/workloadmigrations')]);
      if (found === undefined) return undefined;
      const { name, namespace = '' } = found.metadata;
      const path = `${MIGRATIONS_OF(namespace)}/${name}`;
      if (random.chance(0.5)) {
        host.remove('user', path);
        return `user deletes migration ${name}`;
      }
      const isSuspended = (found['spec'] as { suspend?: boolean }).suspend === true;
      const generation = Number(found.metadata['generation'] ?? 1) + 1;
      host.patch('user', path, { metadata: { generation }, spec: { suspend: !isSuspended } });
      return `user ${isSuspended ? 'lets migration go on:' : 'suspends migration'} ${name}`;
    },
  },
} satisfies Acts;
