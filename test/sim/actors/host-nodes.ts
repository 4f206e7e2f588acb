import { MEMBER_LABEL } from '../../../src/api/marks.ts';
import type { SimObject } from '../sim-cluster.ts';
import type { Scene } from '../scene.ts';
import { PATHS } from '../world.ts';
import type { Acts } from './act.ts';
import { barePod } from './creations.ts';

/** Pools that members have at times; their virtual nodes are called `MEMBER-POOL`. */
export const POOLS = ['x', 'y'] as const;

function realNodes(scene: Scene): SimObject[] {
  return [...scene.world.host.list(PATHS.nodes)].filter(
    ({ metadata }) => metadata.labels?.[MEMBER_LABEL] === undefined,
  );
}

/** Real nodes of the host, which may have the name of a virtual one. */
export const HOST_NODES = {
  'real-node': {
    weight: 0.7,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      const name = `${member}-${random.pick(POOLS)}`;
      const path = `${PATHS.nodes}/${name}`;
      if (scene.world.host.get(path) !== undefined) return undefined;
      const [model] = realNodes(scene);
      if (model === undefined) return undefined;
      const { spec, status } = model;
      const labels = { ...model.metadata.labels, 'kubernetes.io/hostname': name };
      scene.world.host.create('kubelet', PATHS.nodes, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels },
        spec: spec ?? {},
      });
      scene.world.host.patch('kubelet', `${path}/status`, { status: status ?? {} });
      barePod(scene, random, 'Always', { nodeName: name });
      barePod(scene, random, 'Never', { nodeName: name });
      return `real node ${name} joins the host, and runs pods`;
    },
  },
  'pod-on-real-node': {
    weight: 0.5,
    act: (scene, random) => {
      const nodeName = random.pick(realNodes(scene))?.metadata.name;
      if (nodeName === undefined) return undefined;
      return barePod(scene, random, random.chance(0.5) ? 'Always' : 'Never', { nodeName });
    },
  },
  'node-deleted': {
    weight: 0.4,
    act: (scene, random) => {
      const virtual = [...scene.world.host.list(PATHS.nodes)].filter(
        ({ metadata }) => metadata.labels?.[MEMBER_LABEL] !== undefined,
      );
      const name = random.pick(virtual)?.metadata.name;
      if (name === undefined) return undefined;
      scene.world.host.remove('admin', `${PATHS.nodes}/${name}`);
      return `admin deletes Node ${name}`;
    },
  },
} satisfies Acts;
