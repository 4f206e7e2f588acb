import { type JsonRecord, listOf, recordOf, textOf } from '../pods/translate-json.ts';
import { ALL_CONTAINERS, isPod } from './edit-containers.ts';

/**
 * What a pod may do to its node or as somebody, beyond an ordinary one: what the Baseline level of Pod Security forbids,
 * and identities. The host's admission has judged the pod as it was, so a policy that everybody in a namespace may write
 * must not add any of these.
 */
export function privilegesOf(object: JsonRecord): ReadonlySet<string> {
  const found = new Set<string>();
  const spec = recordOf(object['spec']);
  if (spec === undefined || !isPod(object)) return found;
  for (const flag of ['hostNetwork', 'hostPID', 'hostIPC']) if (spec[flag] === true) found.add(flag);
  for (const field of ['serviceAccountName', 'serviceAccount', 'priorityClassName']) {
    const name = textOf(spec[field]);
    if (name !== undefined && name !== '') found.add(`${field} "${name}"`);
  }
  if (spec['automountServiceAccountToken'] !== false) found.add('automountServiceAccountToken');
  addSecurity(recordOf(spec['securityContext']), found);
  addAnnotations(recordOf(recordOf(object['metadata'])?.['annotations']), found);
  for (const volume of listOf(spec['volumes'])) addVolume(recordOf(volume), found);
  for (const list of ALL_CONTAINERS) {
    for (const container of listOf(spec[list])) addContainer(recordOf(container), found);
  }
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

function addContainer(container: JsonRecord | undefined, found: Set<string>): void {
  for (const port of listOf(container?.['ports'])) {
    const number = recordOf(port)?.['hostPort'];
    if (typeof number === 'number' && number > 0) found.add(`hostPort ${number}`);
  }
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) addHost(recordOf(container?.[probe]), found);
  for (const hook of ['postStart', 'preStop']) addHost(recordOf(recordOf(container?.['lifecycle'])?.[hook]), found);
  addSecurity(recordOf(container?.['securityContext']), found);
}

/** A probe or hook that makes the node call another address than the pod's. */
function addHost(handler: JsonRecord | undefined, found: Set<string>): void {
  for (const action of ['httpGet', 'tcpSocket']) {
    const host = textOf(recordOf(handler?.[action])?.['host']);
    if (host !== undefined && host !== '') found.add(`${action} host "${host}"`);
  }
}

/** Of a pod or a container. */
function addSecurity(context: JsonRecord | undefined, found: Set<string>): void {
  if (context === undefined) return;
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
  for (const item of listOf(context['sysctls'])) found.add(`sysctl ${textOf(recordOf(item)?.['name']) ?? ''}`);
  if (context['seLinuxOptions'] !== undefined) found.add('seLinuxOptions');
}
