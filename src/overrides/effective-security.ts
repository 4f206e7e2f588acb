import { type JsonRecord, listOf, recordOf, textOf } from '../kube/json-fields.ts';
import { ALL_CONTAINERS } from './edit-containers.ts';

/** A container and the security context that it really has. */
export interface SecuredContainer {
  /** Unique in its pod. */
  readonly name: string;
  readonly container: JsonRecord;
  /** Its own context, and what it has of the pod's where it says nothing itself. */
  readonly security: JsonRecord;
}

/** Fields of a pod's security context that containers have, too; theirs win. */
const INHERITED = [
  'runAsNonRoot',
  'runAsUser',
  'runAsGroup',
  'seccompProfile',
  'appArmorProfile',
  'seLinuxOptions',
] as const;

/** All containers of a pod, those that start or look into it included. */
export function securedContainers(spec: JsonRecord): SecuredContainer[] {
  const ofPod = recordOf(spec['securityContext']) ?? {};
  const inherited = present(Object.fromEntries(INHERITED.map((field) => [field, ofPod[field]])));
  // Windows options are inherited one by one.
  const windows = recordOf(ofPod['windowsOptions']);
  return ALL_CONTAINERS.flatMap((list) =>
    listOf(spec[list]).map((item) => {
      const container = recordOf(item) ?? {};
      const own = present(recordOf(container['securityContext']) ?? {});
      const windowsOptions = { ...windows, ...recordOf(own['windowsOptions']) };
      const security = { ...inherited, ...own, windowsOptions };
      return { name: textOf(container['name']) ?? '', container, security };
    }),
  );
}

function present(record: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined && value !== null));
}
