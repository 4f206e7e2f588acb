import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { hostUidOf } from '../pod-shapes.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import type { SimObject } from '../sim-cluster.ts';
import { pathOf, podPath, WORKLOADS } from '../workload-controllers.ts';

/** What something is done to: chosen by chance. */
export function someWorkload(scene: Scene, random: Random): { object: SimObject; path: string } | undefined {
  const all = Object.values(WORKLOADS).flatMap((kind) =>
    [...scene.world.host.list(kind)].map((object) => ({ object, path: pathOf(object, kind) })),
  );
  return random.pick(all);
}

export function someHostPod(scene: Scene, random: Random): SimObject | undefined {
  return random.pick([...scene.world.host.list('/api/v1/pods')]);
}

/** One of the program's pods in a member. */
export function someCopy(
  scene: Scene,
  random: Random,
): { member: string; object: SimObject; path: string } | undefined {
  const all = [...scene.world.members].flatMap(([member, cluster]) =>
    [...cluster.list('/api/v1/pods')]
      .filter((object) => hostUidOf(object) !== undefined)
      .map((object) => ({ member, object, path: podPath(object) })),
  );
  return random.pick(all);
}

/** Deletes it if it is there, and says so. */
export function deleted(scene: Scene, cluster: string, by: string, path: string, options: JsonObject): string {
  const at = cluster === 'host' ? scene.world.host : scene.world.members.get(cluster);
  if (at?.get(path) === undefined) return '';
  at.remove(by, path, options);
  return `${by} deletes ${path} in ${cluster} ${JSON.stringify(options)}`;
}

/** Some workload; undefined: there is none. */
export function deletedWorkload(scene: Scene, random: Random): string | undefined {
  const found = someWorkload(scene, random);
  return found === undefined ? undefined : deleted(scene, 'host', 'user', found.path, {});
}
