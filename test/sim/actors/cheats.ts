import { MEMBER_CONSTRAINTS_ANNOTATION } from '../../../src/api/marks.ts';
import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { DIVIDED, DIVISION_NAMES, QUOTA } from '../divisions.ts';
import { OPTED_OUT } from '../opted-out.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import { DEDICATED, LOOSENINGS, strictSpec } from '../strict-pods.ts';
import { pathOf, selectorOf, WORKLOADS } from '../workload-controllers.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { podSpec } from './creations.ts';

/** The largest that an API server takes. */
const MOST_REPLICAS = 2 ** 31 - 1;

function someNamespace(random: Random): string {
  return random.pick(USER_NAMESPACES) ?? 'shop';
}

/** For a while only, as it may be that nobody runs it. Returns its name. */
function makePod(scene: Scene, seconds: number, namespace: string, metadata: JsonObject, spec: JsonObject): string {
  const name = `cheat${scene.nextNumber()}`;
  const { host } = scene.world;
  const path = PATHS.pods(namespace);
  host.create('tenant', path, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, ...metadata }, spec });
  scene.forAWhile(seconds, () => host.remove('tenant', `${path}/${name}`));
  return `pod ${namespace}/${name} for ${seconds} s`;
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
  'take-restrictions-away': {
    weight: 0,
    act: (scene, random) => {
      const { host } = scene.world;
      const namespace = someNamespace(random);
      const seconds = Math.round(random.between(5, 60));
      const loosening = random.pick(LOOSENINGS) ?? {};
      const name = `loose${scene.nextNumber()}`;
      const labels = { 'example.com/strict': name };
      const apiVersion = 'spillway.dev/v1alpha1';
      const path = `/apis/${apiVersion}/namespaces/${namespace}/overridepolicies`;
      host.create('tenant', path, {
        apiVersion,
        kind: 'OverridePolicy',
        metadata: { name, namespace },
        spec: {
          resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', labelSelector: { matchLabels: labels } }],
          overrideRules: [{ overriders: { plaintext: [loosening] } }],
        },
      });
      scene.forAWhile(seconds, () => host.remove('tenant', `${path}/${name}`));
      const made = makePod(scene, seconds, namespace, { labels }, strictSpec());
      return `tenant makes ${made}, and overrides it by ${JSON.stringify(loosening)}`;
    },
  },
  'tolerate-more': {
    weight: 0,
    act: (scene, random) => {
      const seconds = Math.round(random.between(5, 60));
      const spec = podSpec('Always');
      const tolerations = [...(spec['tolerations'] as JsonObject[]), DEDICATED];
      const annotations = { [MEMBER_CONSTRAINTS_ANNOTATION]: JSON.stringify({ tolerations }) };
      const made = makePod(scene, seconds, someNamespace(random), { annotations }, spec);
      return `tenant makes ${made}, which is to tolerate ${DEDICATED.key} in members only`;
    },
  },
  'tolerate-everything': {
    weight: 0,
    act: (scene, random) => {
      const seconds = Math.round(random.between(5, 60));
      const spec = { ...podSpec('Always'), tolerations: [{ operator: 'Exists' }] };
      return `tenant makes ${makePod(scene, seconds, OPTED_OUT, {}, spec)}, which tolerates everything`;
    },
  },
} satisfies Acts;
