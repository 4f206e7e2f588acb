import { canonicalJson } from '../kube/canonical-json.ts';
import { type JsonRecord, listOf, recordOf } from '../kube/json-fields.ts';
import { isPod } from './edit-containers.ts';
import { securedContainers } from './effective-security.ts';

/** What keeps a container from something, in words, by its name. */
export interface Restrictions {
  readonly pod: ReadonlySet<string>;
  readonly containers: ReadonlyMap<string, ReadonlySet<string>>;
}

/**
 * What a pod may not do although an ordinary one may: what the Restricted level of Pod Security demands, and users, groups,
 * labels and a PriorityClass that were chosen for it. The host's admission, or the MemberCluster, may have demanded any of it, so a
 * policy that everybody in a namespace may write must not take it away.
 */
export function restrictionsOf(object: JsonRecord): Restrictions {
  const spec = recordOf(object['spec']);
  if (spec === undefined || !isPod(object)) return { pod: new Set(), containers: new Map() };
  return {
    pod: ofPod(spec, recordOf(object['metadata'])),
    containers: new Map(securedContainers(spec).map(({ name, security }) => [name, ofContainer(security)])),
  };
}

/**
 * A restriction of `before` that `after` is without, for people; undefined when there is none. A container that is new must have
 * those of the Restricted level that all others had.
 */
export function lostRestriction(before: Restrictions, after: Restrictions): string | undefined {
  const lost = firstLost(before.pod, after.pod);
  if (lost !== undefined) return lost;
  const [first, ...others] = before.containers.values();
  const common = new Set(
    [...(first ?? [])].filter((one) => !isChoice(one) && others.every((other) => isKept(one, other))),
  );
  for (const [name, has] of after.containers) {
    const missing = firstLost(before.containers.get(name) ?? common, has);
    if (missing !== undefined) return `${missing} of container "${name}"`;
  }
  return undefined;
}

const DROPS = 'dropped capability ';
const DROPS_ALL = `${DROPS}ALL`;
/** Beginnings of those that are right for one container only. */
const CHOICES = ['runAsUser', 'runAsGroup', 'runAsUserName', 'seLinuxOptions'];

function isChoice(restriction: string): boolean {
  return CHOICES.some((choice) => restriction.startsWith(`${choice} `));
}

function firstLost(had: ReadonlySet<string>, has: ReadonlySet<string>): string | undefined {
  return [...had].find((one) => !isKept(one, has));
}

function isKept(one: string, has: ReadonlySet<string>): boolean {
  return has.has(one) || (one.startsWith(DROPS) && has.has(DROPS_ALL));
}

const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

function ofPod(spec: JsonRecord, metadata: JsonRecord | undefined): Set<string> {
  const found = new Set<string>();
  if (spec['hostUsers'] === false) found.add('hostUsers false');
  for (const field of ['runtimeClassName', 'priorityClassName']) {
    if (typeof spec[field] === 'string') found.add(`${field} "${spec[field]}"`);
  }
  const security = recordOf(spec['securityContext']) ?? {};
  for (const field of ['fsGroup', 'supplementalGroups', 'supplementalGroupsPolicy', 'sysctls']) {
    if (security[field] !== undefined && security[field] !== null)
      found.add(`${field} ${canonicalJson(security[field])}`);
  }
  for (const [key, value] of Object.entries(recordOf(metadata?.['annotations']) ?? {})) {
    if (key.startsWith(APPARMOR_ANNOTATION) && value !== 'unconfined')
      found.add(`annotation ${key}=${canonicalJson(value)}`);
  }
  return found;
}

function ofContainer(security: JsonRecord): Set<string> {
  const found = new Set<string>();
  if (security['runAsNonRoot'] === true) found.add('runAsNonRoot');
  if (security['allowPrivilegeEscalation'] === false) found.add('allowPrivilegeEscalation false');
  if (security['readOnlyRootFilesystem'] === true) found.add('readOnlyRootFilesystem');
  // Root is none, and its own matter.
  if (typeof security['runAsUser'] === 'number' && security['runAsUser'] !== 0)
    found.add(`runAsUser ${security['runAsUser']}`);
  if (typeof security['runAsGroup'] === 'number' && security['runAsGroup'] !== 0)
    found.add(`runAsGroup ${security['runAsGroup']}`);
  const userName = recordOf(security['windowsOptions'])?.['runAsUserName'];
  if (typeof userName === 'string') found.add(`runAsUserName "${userName}"`);
  if (security['seLinuxOptions'] !== undefined)
    found.add(`seLinuxOptions ${canonicalJson(security['seLinuxOptions'])}`);
  for (const capability of listOf(recordOf(security['capabilities'])?.['drop'])) {
    found.add(`${DROPS}${String(capability)}`);
  }
  for (const field of ['seccompProfile', 'appArmorProfile']) {
    const profile = recordOf(security[field]);
    const type = profile?.['type'];
    if (typeof type !== 'string' || type === 'Unconfined') continue;
    const name = profile?.['localhostProfile'];
    found.add(`${field} ${type}${typeof name === 'string' ? ` "${name}"` : ''}`);
  }
  return found;
}
