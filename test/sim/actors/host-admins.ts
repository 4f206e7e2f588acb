import { PATHS } from '../world.ts';
import { kubeconfig } from '../certificate.ts';
import type { Acts } from './act.ts';
import { POOLS } from './host-nodes.ts';

/** Whoever administers the host. */
export const HOST_ADMINS = {
  cordon: {
    weight: 0.5,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      const unschedulable = random.chance(0.5);
      scene.world.host.patch('admin', `${PATHS.members}/${member}`, { spec: { unschedulable } });
      return `admin sets unschedulable of ${member} to ${unschedulable}`;
    },
  },
  'edit-pools': {
    weight: 0.8,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      const names = POOLS.filter(() => random.chance(0.5));
      const virtualNodes = names.map((name) => ({ name }));
      scene.world.host.patch('admin', `${PATHS.members}/${member}`, { spec: { virtualNodes } });
      return `admin gives ${member} the pools [${names.join(', ')}]`;
    },
  },
  'edit-mapping': {
    weight: 0.6,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      const prefix = random.pick(['', 'h-', 'g-']) ?? '';
      const namespaces = prefix === '' ? { mapping: 'Same', prefix: null } : { mapping: 'Prefixed', prefix };
      scene.world.host.patch('admin', `${PATHS.members}/${member}`, { spec: { namespaces } });
      return `admin maps namespaces of ${member} with prefix "${prefix}"`;
    },
  },
  'taint-member': {
    weight: 0.5,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      const path = `${PATHS.members}/${member}`;
      const seconds = Math.round(random.between(5, 120));
      const taint = { key: 'lent', effect: 'NoExecute' };
      if (scene.world.host.get(path) === undefined) return undefined;
      scene.world.host.patch('admin', path, { spec: { clusterTaints: [taint] } });
      scene.forAWhile(seconds, () => {
        if (scene.world.host.get(path) !== undefined) {
          scene.world.host.patch('admin', path, { spec: { clusterTaints: null } });
        }
      });
      return `for ${seconds} s admin wants everything out of ${member}`;
    },
  },
  'taint-by-policy': {
    weight: 0.3,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      const name = `drain-${member}`;
      const path = `${PATHS.taintPolicies}/${name}`;
      const seconds = Math.round(random.between(5, 120));
      if (scene.world.host.get(path) !== undefined) return undefined;
      const statusValues = ['True', 'False', 'Unknown'];
      scene.world.host.create('admin', PATHS.taintPolicies, {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'ClusterTaintPolicy',
        metadata: { name },
        spec: {
          targetClusters: { clusterNames: [member] },
          addOnConditions: [{ conditionType: 'Ready', operator: 'In', statusValues }],
          taints: [{ key: 'by-policy', effect: 'NoExecute' }],
        },
      });
      scene.forAWhile(seconds, () => {
        scene.world.host.remove('admin', path);
      });
      return `for ${seconds} s admin has a policy that wants everything out of ${member}`;
    },
  },
  'delete-member': {
    weight: 0.2,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]);
      const path = `${PATHS.members}/${member}`;
      const object = scene.world.host.get(path);
      if (object?.metadata.deletionTimestamp !== undefined || object === undefined) return undefined;
      // Nobody registers a cluster anew while another one answers under its address.
      if (scene.doors.get(object.metadata.name)?.instead !== undefined) return undefined;
      scene.world.host.remove('admin', path);
      const { apiVersion, kind, spec } = object;
      const again = { apiVersion, kind, metadata: { name: object.metadata.name }, spec };
      // It may have left by then; if not, it is let go without.
      const letGo = (): void => {
        if (scene.world.host.get(path) === undefined) return;
        scene.world.host.patch('admin', path, { metadata: { finalizers: null } });
      };
      const leaves = random.chance(0.7);
      if (!leaves) letGo();
      const seconds = Math.round(leaves ? random.between(1, 240) : random.between(1, 60));
      scene.forAWhile(seconds, () => {
        letGo();
        scene.world.host.create('admin', PATHS.members, again);
      });
      return `admin deletes MemberCluster ${member}${leaves ? '' : ' by force'}, for ${seconds} s`;
    },
  },
  rotate: {
    weight: 0.5,
    act: (scene, random) => {
      const member = random.pick([...scene.world.members.keys()]) ?? '';
      const door = scene.doors.get(member);
      if (door === undefined) return undefined;
      const token = `spillway-${scene.nextNumber()}`;
      const former = scene.tokens.get(member) ?? 'spillway';
      scene.tokens.set(member, token);
      const config = kubeconfig(door.cluster.origin, scene.ca, token);
      scene.world.host.patch('admin', `${PATHS.secrets('spillway-system')}/${member}`, {
        data: { kubeconfig: Buffer.from(config).toString('base64') },
      });
      const seconds = Math.round(random.between(0, 30));
      scene.world.loop.later(seconds * 1_000, () => door.revoked.add(former));
      return `admin gives the manager another token for ${member}; the former one ends in ${seconds} s`;
    },
  },
} satisfies Acts;
