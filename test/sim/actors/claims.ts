import { HOST_LABEL } from '../../../src/api/marks.ts';
import { MEMBER_STORAGE } from '../../../src/api/storage.ts';
import { CLAIMS as ALL_CLAIMS, claimPath, PROTECTION } from '../host-volumes.ts';
import type { Random } from '../random.ts';
import type { Scene } from '../scene.ts';
import { pathOf } from '../workload-controllers.ts';
import { PATHS, USER_NAMESPACES } from '../world.ts';
import type { Acts } from './act.ts';
import { barePod } from './creations.ts';

const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
/** What becomes of the data of a claim that goes. */
const POLICIES = { spillway: 'Delete', kept: 'Retain' } as const;

/** As administrators set it up before anybody uses it. */
function haveClasses({ world: { host, members } }: Scene): void {
  if (host.get(`${CLASSES}/spillway`) !== undefined) return;
  for (const [name, reclaimPolicy] of Object.entries(POLICIES)) {
    host.create('admin', CLASSES, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: MEMBER_STORAGE,
      volumeBindingMode: 'WaitForFirstConsumer',
      reclaimPolicy,
    });
  }
  const classes = Object.keys(POLICIES).map((name) => ({ host: name }));
  for (const member of members.keys())
    host.patch('admin', `${PATHS.members}/${member}`, { spec: { storage: { classes } } });
}

/** Of few names, so that they are used again. */
function someName(random: Random): { namespace: string; name: string } {
  return { namespace: random.pick(USER_NAMESPACES) ?? 'shop', name: `db${random.int(4)}` };
}

/** Claims of users, and the data in members that they stand for. */
export const CLAIMS = {
  'create-claiming': {
    weight: 0,
    act: (scene, random) => {
      haveClasses(scene);
      const { host } = scene.world;
      const { namespace, name } = someName(random);
      const at = claimPath(namespace, name);
      const storageClassName = random.chance(0.7) ? 'spillway' : 'kept';
      const isNew = host.get(at) === undefined;
      if (isNew) {
        host.create('user', at.slice(0, at.lastIndexOf('/')), {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name, namespace, finalizers: [PROTECTION] },
          spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
        });
      }
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: name } }];
      const restartPolicy = random.chance(0.5) ? 'Never' : 'Always';
      const did = barePod(scene, random, restartPolicy, { volumes }, `${PATHS.pods(namespace)}/${name}`);
      return `${did}${isNew ? `, with a new claim of class ${storageClassName}` : ''}`;
    },
  },
  'delete-claim': {
    weight: 0,
    act: (scene, random) => {
      const { host } = scene.world;
      const claim = random.pick(host.list(ALL_CLAIMS));
      if (claim === undefined) return undefined;
      const { namespace = '', name } = claim.metadata;
      const withPod = random.chance(0.7);
      if (withPod) host.remove('user', `${PATHS.pods(namespace)}/${name}`);
      host.remove('user', pathOf(claim, ALL_CLAIMS));
      return `user deletes claim ${namespace}/${name}${withPod ? ' and its pod' : ''}`;
    },
  },
  'owner-deletes-claim': {
    weight: 0,
    act: (scene, random) => {
      const [member, cluster] = random.pick([...scene.world.members]) ?? [];
      const ours =
        cluster?.list(ALL_CLAIMS).filter(({ metadata }) => metadata.labels?.[HOST_LABEL] !== undefined) ?? [];
      const claim = random.pick(ours);
      if (cluster === undefined || claim === undefined || random.chance(0.7)) return undefined;
      cluster.remove('owner', pathOf(claim, ALL_CLAIMS));
      return `owner deletes claim ${claim.metadata.name} in ${member}`;
    },
  },
} satisfies Acts;
