import { type JsonRecord, listOf, recordOf, textOf } from '../kube/json-fields.ts';
import { isPod } from './edit-containers.ts';
import { securedContainers } from './effective-security.ts';

/**
 * What a pod may do to its node or as somebody, beyond an ordinary one: what the Baseline level of Pod Security forbids,
 * and identities. The host's admission has judged the pod as it was, so a policy that everybody in a namespace may write
 * must not add any of these. Words for people, by keys that say of which container they are: what one has, another has not.
 */
export function privilegesOf(object: JsonRecord): ReadonlyMap<string, string> {
  const all = new Map<string, string>();
  const spec = recordOf(object['spec']);
  if (spec === undefined || !isPod(object)) return all;
  const note = (where: string, found: ReadonlySet<string>): void => {
    for (const words of found) all.set(`${where}/${words}`, words);
  };
  note('', ofPod(spec, recordOf(object['metadata'])));
  for (const { name, container, security } of securedContainers(spec)) {
    const found = new Set<string>();
    addContainer(container, found);
    addSecurity(security, found);
    note(name, found);
  }
  return all;
}

function ofPod(spec: JsonRecord, metadata: JsonRecord | undefined): Set<string> {
  const found = new Set<string>();
  for (const flag of ['hostNetwork', 'hostPID', 'hostIPC']) if (spec[flag] === true) found.add(flag);
  for (const field of ['serviceAccountName', 'serviceAccount', 'priorityClassName']) {
    const name = textOf(spec[field]);
    if (name !== undefined && name !== '') found.add(`${field} "${name}"`);
  }
  if (spec['automountServiceAccountToken'] !== false) found.add('automountServiceAccountToken');
  const security = recordOf(spec['securityContext']);
  for (const item of listOf(security?.['sysctls'])) found.add(`sysctl ${textOf(recordOf(item)?.['name']) ?? ''}`);
  const groups = [...listOf(security?.['supplementalGroups']), security?.['fsGroup']];
  if (groups.includes(0)) found.add('group 0');
  addAnnotations(recordOf(metadata?.['annotations']), found);
  for (const volume of listOf(spec['volumes'])) addVolume(recordOf(volume), found);
  return found;
}

/** Older API servers take profiles from annotations, too. */
const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

function addAnnotations(annotations: JsonRecord | undefined, found: Set<string>): void {
  for (const [key, value] of Object.entries(annotations ?? {})) {
    if (key.startsWith(APPARMOR_ANNOTATION) && value === 'unconfined') found.add(`annotation ${key}`);
  }
}

function addVolume(volume: JsonRecord | undefined, found: Set<string>): void {
  const path = textOf(recordOf(volume?.['hostPath'])?.['path']);
  if (volume?.['hostPath'] !== undefined) found.add(`hostPath "${path ?? ''}"`);
  for (const item of listOf(recordOf(volume?.['projected'])?.['sources'])) {
    for (const identity of ['serviceAccountToken', 'podCertificate']) {
      if (recordOf(item)?.[identity] !== undefined) found.add(identity);
    }
  }
}

function addContainer(container: JsonRecord, found: Set<string>): void {
  for (const port of listOf(container['ports'])) {
    const number = recordOf(port)?.['hostPort'];
    if (typeof number === 'number' && number > 0) found.add(`hostPort ${number}`);
  }
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) addHost(recordOf(container[probe]), found);
  for (const hook of ['postStart', 'preStop']) addHost(recordOf(recordOf(container['lifecycle'])?.[hook]), found);
}

/** A probe or hook that makes the node call another address than the pod's. */
function addHost(handler: JsonRecord | undefined, found: Set<string>): void {
  for (const action of ['httpGet', 'tcpSocket']) {
    const host = textOf(recordOf(handler?.[action])?.['host']);
    if (host !== undefined && host !== '') found.add(`${action} host "${host}"`);
  }
}

/** As it is for a container. */
function addSecurity(context: JsonRecord, found: Set<string>): void {
  if (context['privileged'] === true) found.add('privileged');
  if (context['allowPrivilegeEscalation'] === true) found.add('allowPrivilegeEscalation');
  if (context['runAsUser'] === 0) found.add('runAsUser 0');
  for (const capability of listOf(recordOf(context['capabilities'])?.['add'])) {
    found.add(`capability ${String(capability)}`);
  }
  for (const profile of ['seccompProfile', 'appArmorProfile']) {
    if (recordOf(context[profile])?.['type'] === 'Unconfined') found.add(`${profile} Unconfined`);
  }
  if (context['procMount'] === 'Unmasked') found.add('procMount Unmasked');
  if (recordOf(context['windowsOptions'])?.['hostProcess'] === true) found.add('hostProcess');
  if (context['seLinuxOptions'] !== undefined) found.add('seLinuxOptions');
}
