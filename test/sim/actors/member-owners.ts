import { CONFIRM_IDENTITY_ANNOTATION, GROUP, MIRRORED_CONDITION } from '../../../src/api/marks.ts';
import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { SAID_BY_MEMBER } from '../oracles.ts';
import { asPod } from '../pod-shapes.ts';
import type { Scene } from '../scene.ts';
import { podPath } from '../workload-controllers.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { podSpec } from './creations.ts';
import { deleted, someCopy } from './targets.ts';

const KUBE_SYSTEM = `${PATHS.namespaces}/kube-system`;

/** It was wiped, and no process knows yet that it is to be the member all the same. */
function isUnconfirmed({ world: { host, members } }: Scene, member: string): boolean {
  const { identity } = (host.get(`${PATHS.members}/${member}`)?.['status'] ?? {}) as { identity?: string };
  return identity !== members.get(member)?.get(KUBE_SYSTEM)?.metadata.uid;
}

/** Whom a member belongs to. */

export const MEMBER_OWNERS = {
  'owner-deletes': {
    weight: 2,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      return found === undefined ? undefined : deleted(scene, found.member, 'owner', found.path, {});
    },
  },
  'owner-forces': {
    weight: 1.5,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      return found && deleted(scene, found.member, 'owner', found.path, { gracePeriodSeconds: 0 });
    },
  },
  drain: {
    weight: 0.5,
    act: (scene, random) => {
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      if (cluster === undefined) return undefined;
      const pods = [...cluster.list('/api/v1/pods')].filter((pod) => pod.metadata.deletionTimestamp === undefined);
      for (const pod of pods) cluster.remove('owner', podPath(pod), {});
      return `owner drains ${member}: ${pods.length} pods`;
    },
  },
  restore: {
    weight: 0.2,
    act: (scene, random) => {
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      if (member === undefined || cluster === undefined) return undefined;
      const seconds = Math.round(random.between(2, 90));
      const saved = cluster.saved();
      scene.forAWhile(seconds, () => {
        // Of one that was wiped meanwhile nobody keeps a copy.
        if (saved.get(KUBE_SYSTEM)?.metadata.uid !== cluster.get(KUBE_SYSTEM)?.metadata.uid) return;
        cluster.restore(saved);
        scene.kubelets.get(member)?.restored();
      });
      return `in ${seconds} s the owner restores ${member} as it is now`;
    },
  },
  wipe: {
    weight: 0,
    act: (scene, random) => {
      const { host } = scene.world;
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      if (member === undefined || cluster === undefined || !scene.isPinned(member)) return undefined;
      if (scene.doors.get(member)?.instead !== undefined || isUnconfirmed(scene, member)) return undefined;
      cluster.wipe();
      const seconds = Math.round(random.between(1, random.chance(0.5) ? 30 : 300));
      scene.forAWhile(seconds, () => {
        const identity = cluster.get(KUBE_SYSTEM)?.metadata.uid ?? '';
        const annotations = { [CONFIRM_IDENTITY_ANNOTATION]: identity };
        host.patch('admin', `${PATHS.members}/${member}`, { metadata: { annotations } });
      });
      return `owner wipes ${member}; an admin says in ${seconds} s that it is still ${member}`;
    },
  },
  stranger: {
    weight: 0.5,
    act: (scene, random) => {
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      const namespace = random.pick(USER_NAMESPACES) ?? 'shop';
      const path = PATHS.pods(namespace);
      const name = `p${random.int(6)}`;
      if (cluster === undefined || cluster.get(`${path}/${name}`) !== undefined) return undefined;
      cluster.create('owner', path, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace },
        spec: podSpec('Always'),
      });
      scene.strangers.push({ member: cluster.name, path: `${path}/${name}` });
      return `owner runs a pod ${namespace}/${name} of their own in ${member}`;
    },
  },
  'own-condition': {
    weight: 1,
    act: (scene, random) => {
      const found = someCopy(scene, random);
      if (found === undefined) return undefined;
      const status = random.chance(0.5) ? 'True' : 'False';
      const type = random.chance(0.5) ? MIRRORED_CONDITION : `${GROUP}/Other`;
      const told = {
        type,
        status,
        message: SAID_BY_MEMBER,
        lastTransitionTime: null,
      };
      const conditions = [...(asPod(found.object).status?.conditions ?? []), told] as JsonObject[];
      scene.world.members.get(found.member)?.patch('owner', `${found.path}/status`, { status: { conditions } });
      return `owner sets ${type}=${status} on ${found.path} in ${found.member}`;
    },
  },
} satisfies Acts;
