import type { JsonObject } from '../../../src/kube/json-equal.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import { USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { barePod, create, podSpec } from './creations.ts';
import { deleted } from './targets.ts';

/** ConfigMaps and Secrets that pods of the host refer to. */

const PLURALS = { ConfigMap: 'configmaps', Secret: 'secrets' } as const;
type Kind = keyof typeof PLURALS;

interface Place {
  kind: Kind;
  namespace: string;
  name: string;
  path: string;
}

/** Of few names, so that they are used again. The third Secret is the token of a service account. */
function somePlace(random: Random): Place {
  const kind = random.chance(0.5) ? 'ConfigMap' : 'Secret';
  const namespace = random.pick(USER_NAMESPACES) ?? 'shop';
  const name = `${kind === 'Secret' ? 'key' : 'conf'}-${random.int(3)}`;
  return { kind, namespace, name, path: `/api/v1/namespaces/${namespace}/${PLURALS[kind]}/${name}` };
}

function make(scene: Scene, { kind, namespace, name, path }: Place, more: JsonObject): string {
  const value = Buffer.from(`v${scene.nextNumber()}`).toString('base64');
  const isToken = name === 'key-2';
  const typeOfSecret = isToken ? 'kubernetes.io/service-account-token' : 'Opaque';
  scene.world.host.create('user', path.slice(0, path.lastIndexOf('/')), {
    apiVersion: 'v1',
    kind,
    metadata: { name, namespace, annotations: { note: 'of the host' } },
    data: { value },
    ...(kind === 'Secret' ? { type: typeOfSecret } : {}),
    ...more,
  });
  return `user creates ${kind} ${namespace}/${name} ${JSON.stringify({ value, ...more })}`;
}

/** The part of a pod's spec that refers to one or two of them. */
function referring(random: Random): JsonObject {
  const optional = random.chance(0.3);
  const volumes = [
    { name: 'conf', configMap: { name: `conf-${random.int(3)}`, optional } },
    { name: 'key', secret: { secretName: `key-${random.int(random.chance(0.2) ? 3 : 2)}`, optional } },
  ].filter(() => random.chance(0.7));
  const envFrom = random.chance(0.4) ? [{ configMapRef: { name: `conf-${random.int(3)}`, optional: true } }] : [];
  return {
    volumes,
    containers: [{ name: 'main', image: 'busybox', envFrom }],
    ...(random.chance(0.2) ? { imagePullSecrets: [{ name: `key-${random.int(2)}` }] } : {}),
  };
}

export const DEPENDENTS = {
  'create-dependent': {
    weight: 2,
    act: (scene, random) => {
      const place = somePlace(random);
      if (scene.world.host.get(place.path) !== undefined) return undefined;
      return make(scene, place, random.chance(0.2) ? { immutable: true } : {});
    },
  },
  'edit-dependent': {
    weight: 2,
    act: (scene, random) => {
      const { path, name } = somePlace(random);
      const found = scene.world.host.get(path);
      if (found === undefined || found['immutable'] === true) return undefined;
      const value = Buffer.from(`v${scene.nextNumber()}`).toString('base64');
      scene.world.host.patch('user', path, { data: { value } });
      return `user sets ${name} to ${value} at ${path}`;
    },
  },
  'delete-dependent': {
    weight: 1,
    act: (scene, random) => {
      const place = somePlace(random);
      const did = deleted(scene, 'host', 'user', place.path, {});
      if (did === '' || random.chance(0.2)) return did;
      const seconds = Math.round(random.between(0, 60));
      scene.forAWhile(seconds, () => {
        if (scene.world.host.get(place.path) === undefined) make(scene, place, {});
      });
      return `${did}, for ${seconds} s`;
    },
  },
  'create-referring': {
    weight: 3,
    act: (scene, random) => {
      const spec = referring(random);
      const restartPolicy = random.chance(0.5) ? 'Never' : 'Always';
      if (random.chance(0.6)) return barePod(scene, random, restartPolicy, spec);
      if (restartPolicy === 'Never') {
        return create(scene, random, 'Job', { completions: 1, template: { spec: { ...podSpec('Never'), ...spec } } });
      }
      const template = { spec: { ...podSpec('Always'), ...spec } };
      return create(scene, random, random.chance(0.5) ? 'ReplicaSet' : 'StatefulSet', { replicas: 2, template });
    },
  },
  'stranger-dependent': {
    weight: 0.4,
    act: (scene, random) => {
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      const { kind, namespace, name, path } = somePlace(random);
      if (member === undefined || cluster === undefined || cluster.get(path) !== undefined) return undefined;
      const body = { apiVersion: 'v1', kind, metadata: { name, namespace }, data: {} };
      cluster.create('owner', path.slice(0, path.lastIndexOf('/')), body);
      scene.strangers.push({ member, path });
      return `owner makes ${path} of their own in ${member}`;
    },
  },
  'owner-deletes-dependent': {
    weight: 0.5,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]) ?? '';
      return deleted(scene, member, 'owner', somePlace(random).path, {});
    },
  },
} satisfies Acts;
