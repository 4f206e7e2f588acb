import { listOf } from '../kube/json-fields.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { isJsonObject, type JsonObject } from '../kube/json-equal.ts';
import type { KubeObject } from '../kube/object.ts';
import { FIELD_MANAGER } from './apply.ts';
import type { ManifestObject } from './manifests.ts';
import type { Grant } from './member-grant.ts';

/** A MemberCluster as the host has it. */
export type KnownMember = KubeObject & Pick<MemberCluster, 'status'>;

interface JoinedMember {
  readonly object: ManifestObject;
  /** Fields that an earlier join has set, and this one was not told of: `spec.services.mode: Mirror`. */
  readonly kept: readonly string[];
}

/** The MemberCluster as join applies it; `known`: as it is there already. */
export function joinedMember(
  name: string,
  secretRef: { namespace: string; name: string },
  grant: Grant,
  known?: KnownMember,
): JoinedMember {
  const isLent = grant.lend.length > 0;
  const told = {
    namespaces: {
      ...(isLent ? { create: false } : {}),
      ...(grant.privileged ? { podSecurity: 'privileged' } : {}),
    },
    services: {
      ...(grant.services ? { mode: 'Mirror' } : {}),
      ...(grant.multiCluster ? { multiCluster: 'Exchange' } : {}),
    },
  };
  // Namespaces that are lent have a level of their own.
  const { podSecurity, ...others } = setBefore('namespaces', known);
  const before = {
    namespaces: isLent || podSecurity === undefined ? others : { ...others, podSecurity },
    services: setBefore('services', known),
  };
  const spec = (['namespaces', 'services'] as const).flatMap((section) => {
    const fields = { ...before[section], ...told[section] };
    return Object.keys(fields).length === 0 ? [] : [[section, fields] as const];
  });
  return {
    object: {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name },
      spec: { credentials: { secretRef }, ...Object.fromEntries(spec) },
    } as ManifestObject,
    kept: (['namespaces', 'services'] as const).flatMap((section) =>
      Object.entries(before[section])
        .filter(([field]) => !(field in told[section]))
        .map(([field, value]) => `spec.${section}.${field}: ${String(value)}`),
    ),
  };
}

/**
 * What an earlier join has set there, and nobody has changed since: server-side apply takes a field off that was applied once in the
 * same name, and is left out later. Fields of others are theirs, and stay without being applied here.
 */
function setBefore(section: 'namespaces' | 'services', known: KnownMember | undefined): JsonObject {
  if (known === undefined) return {};
  const { managedFields } = known.metadata as { managedFields?: unknown };
  const ours = listOf(managedFields).find(
    (one) => isJsonObject(one) && one['manager'] === FIELD_MANAGER && one['operation'] === 'Apply',
  );
  const fields = at(ours, 'fieldsV1', 'f:spec', `f:${section}`);
  return Object.fromEntries(Object.entries(at(known, 'spec', section)).filter(([field]) => `f:${field}` in fields));
}

/** The object at a path; an empty one where there is none. */
function at(object: unknown, ...path: readonly string[]): JsonObject {
  const found = path.reduce<unknown>((one, key) => (isJsonObject(one) ? one[key] : undefined), object);
  return isJsonObject(found) ? found : {};
}
