import { pathOf } from '../workload-controllers.ts';
import type { Acts } from './act.ts';

const KINDS = '/apis/spillway.dev/v1alpha1';
const FOR_ALL = `${KINDS}/clusterplacementpolicies`;

/** Those who write policies. */
export const POLICIES = {
  rehearse: {
    weight: 0,
    act: (scene, random) => {
      const { host } = scene.world;
      const ofNamespaces = [...host.list(`${KINDS}/placementpolicies`)].map((one) =>
        pathOf(one, `${KINDS}/placementpolicies`),
      );
      const ofAll = [...host.list(FOR_ALL)].map(({ metadata }) => `${FOR_ALL}/${metadata.name}`);
      const all = [...ofNamespaces, ...ofAll];
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
} satisfies Acts;
