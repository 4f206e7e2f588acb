import { madeInMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import {
  fieldsOf,
  type JsonRecord,
  listOf,
  recordOf,
  rewriteField,
  rewriteItems,
  rewriteObject,
  textOf,
} from '../kube/json-fields.ts';
import { injectedTokenVolumes } from './translate-volumes.ts';

const CONTAINER_LISTS = ['initContainers', 'containers'] as const;
/** Published by OpenShift alone: a pod of such a host must not wait for it in a cluster of another kind. */
const OF_SOME_CLUSTERS = 'openshift-service-ca.crt';

/**
 * A new pod of the member with the files that are beside the token on a kubelet, in service account mode None: the member's CA and the name of
 * the namespace there, where the host's admission has put the host's. Both are about the cluster that the pod runs in, as in mode Member.
 *
 * They come after override policies, as there, where the member's own admission adds them: policies see pods without them in both modes. One that
 * has the member mount a token leaves the files to the member, which mounts nothing where something is mounted.
 */
export function withAccountFiles(memberPod: Pod, hostPod: Pod): Pod {
  const spec = fieldsOf(memberPod.spec);
  const isMembers = spec['automountServiceAccountToken'] !== false;
  if (isMembers || madeInMode(memberPod) !== 'None' || !isList(spec['volumes'])) return memberPod;
  const host = fieldsOf(hostPod.spec);
  const volumes = accountVolumes(host);
  if (volumes.length === 0) return memberPod;
  const names = new Set(volumes.map(({ name }) => name));
  return rewriteObject(memberPod, (own) => {
    let after: JsonRecord = { ...spec, volumes: [...listOf(spec['volumes']), ...volumes] };
    for (const list of CONTAINER_LISTS) {
      const mounts = mountsOf(host[list], names);
      after = rewriteField(after, list, (containers) =>
        rewriteItems(containers, (container) => withMounts(container, mounts.get(container['name']) ?? [])),
      );
    }
    return { ...own, spec: after };
  });
}

/** Only the member's API server says what is wrong with anything else. */
function isList(value: unknown): boolean {
  return value === undefined || value === null || Array.isArray(value);
}

/** The volumes that the host's admission added, without the tokens in them. */
function accountVolumes(host: JsonRecord): JsonRecord[] {
  const injected = injectedTokenVolumes(host);
  return listOf(host['volumes']).flatMap((item) => {
    const volume = recordOf(item) ?? {};
    if (!injected.has(textOf(volume['name']) ?? '')) return [];
    const projected = recordOf(volume['projected']) ?? {};
    const sources = listOf(projected['sources']).flatMap((source) => memberSource(recordOf(source) ?? {}));
    return sources.length === 0 ? [] : [{ ...volume, projected: { ...projected, sources } }];
  });
}

function memberSource(source: JsonRecord): JsonRecord[] {
  if (source['serviceAccountToken'] !== undefined) return [];
  const configMap = recordOf(source['configMap']);
  if (configMap?.['name'] !== OF_SOME_CLUSTERS) return [source];
  return [{ ...source, configMap: { ...configMap, optional: true } }];
}

/** Mounts of these volumes, by name of the container. */
function mountsOf(containers: unknown, volumes: ReadonlySet<unknown>): Map<unknown, JsonRecord[]> {
  const entries = listOf(containers).map((item): [unknown, JsonRecord[]] => {
    const container = recordOf(item) ?? {};
    const mounts = listOf(container['volumeMounts']).map((mount) => recordOf(mount) ?? {});
    return [container['name'], mounts.filter(({ name }) => volumes.has(name))];
  });
  return new Map(entries);
}

/** What a policy has mounted at such a place stays. */
function withMounts(container: JsonRecord, mounts: readonly JsonRecord[]): JsonRecord {
  if (!isList(container['volumeMounts'])) return container;
  const present = listOf(container['volumeMounts']);
  const taken = new Set(present.map((mount) => recordOf(mount)?.['mountPath']));
  const missing = mounts.filter(({ mountPath }) => !taken.has(mountPath));
  return missing.length === 0 ? container : { ...container, volumeMounts: [...present, ...missing] };
}
