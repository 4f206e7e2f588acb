import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { edited } from '../placement-rules.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import type { SimObject } from '../sim-cluster.ts';
import { pathOf } from '../workload-controllers.ts';
import type { Acts } from './act.ts';

const KINDS = '/apis/spillway.dev/v1alpha1';
const FOR_ALL = `${KINDS}/clusterplacementpolicies`;

function allPolicies({ world: { host } }: Scene): string[] {
  const ofNamespaces = host.list(`${KINDS}/placementpolicies`).map((one) => pathOf(one, `${KINDS}/placementpolicies`));
  return [...ofNamespaces, ...host.list(FOR_ALL).map(({ metadata }) => `${FOR_ALL}/${metadata.name}`)];
}

function onePolicy(scene: Scene, random: Random): { path: string; policy: SimObject } | undefined {
  const path = random.pick(allPolicies(scene));
  const policy = path === undefined ? undefined : scene.world.host.get(path);
  return path === undefined || policy === undefined ? undefined : { path, policy };
}

/** Those who write policies. */
export const POLICIES = {
  rehearse: {
    weight: 0,
    act: (scene, random) => {
      const { host } = scene.world;
      const all = allPolicies(scene);
      const paths = random.chance(0.8) ? all : all.filter(() => random.chance(0.5));
      const isSaid = (path: string): boolean =>
        (host.get(path)?.['spec'] as { failover?: { dryRun?: boolean } } | undefined)?.failover?.dryRun === true;
      if (paths.length === 0 || all.some(isSaid)) return undefined;
      const say = (dryRun: boolean | null): void => {
        for (const path of paths) {
          if (host.get(path) !== undefined) host.patch('admin', path, { spec: { failover: { dryRun } } });
        }
      };
      const seconds = Math.round(random.between(5, random.chance(0.3) ? 60 : 1_500));
      say(true);
      scene.forAWhile(seconds, () => say(random.chance(0.5) ? false : null));
      return `for ${seconds} s admin has moves rehearsed only by ${paths.join(', ')}`;
    },
  },
  'edit-policy': {
    weight: 0,
    act: (scene, random) => {
      const { host } = scene.world;
      const found = onePolicy(scene, random);
      if (found === undefined) return undefined;
      const { path, policy } = found;
      const now = edited(policy, random);
      host.replace('admin', path, now);
      return `admin edits ${path}: ${JSON.stringify((now['spec'] as JsonObject)['placement'])}`;
    },
  },
  'delete-policy': {
    weight: 0,
    act: (scene, random) => {
      const { host } = scene.world;
      const found = onePolicy(scene, random);
      if (found === undefined) return undefined;
      const { path, policy } = found;
      host.remove('admin', path);
      const { apiVersion, kind, spec } = policy;
      const { name, namespace } = policy.metadata;
      const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
      const seconds = Math.round(random.between(0, 120));
      scene.forAWhile(seconds, () => {
        host.create('admin', path.slice(0, path.lastIndexOf('/')), { apiVersion, kind, metadata, spec });
      });
      return `for ${seconds} s admin does without ${path}`;
    },
  },
} satisfies Acts;
