import { canonicalJson } from '../kube/canonical-json.ts';
import { type JsonRecord, listOf, recordOf, textOf } from '../kube/json-fields.ts';
import { isPod } from './edit-containers.ts';
import { securedContainers } from './effective-security.ts';

/**
 * What a pod may do to its node or as somebody, beyond an ordinary one: what the Baseline level of Pod Security forbids, volumes
 * that Restricted forbids, a view of the processes of its other containers, devices, a priority, and identities. The host's admission has judged the pod as it was, so a policy that everybody in a namespace may write
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
  const volumes = extraordinaryVolumes(spec);
  for (const { name, container, security } of securedContainers(spec)) {
    const found = new Set<string>();
    addContainer(container, found);
    addMounts(container, volumes, found);
    addSecurity(security, found);
    note(name, found);
  }
  return all;
}

function ofPod(spec: JsonRecord, metadata: JsonRecord | undefined): Set<string> {
  const found = new Set<string>();
  for (const flag of ['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace'])
    if (spec[flag] === true) found.add(flag);
  for (const field of ['serviceAccountName', 'serviceAccount', 'priorityClassName']) {
    const name = textOf(spec[field]);
    if (name !== undefined && name !== '') found.add(`${field} "${name}"`);
  }
  if (isThere(spec['priority'])) found.add(`priority ${canonicalJson(spec['priority'])}`);
  for (const claim of listOf(spec['resourceClaims'])) found.add(`resourceClaims ${canonicalJson(claim)}`);
  if (spec['automountServiceAccountToken'] !== false) found.add('automountServiceAccountToken');
  const security = recordOf(spec['securityContext']);
  for (const item of listOf(security?.['sysctls'])) found.add(`sysctl ${textOf(recordOf(item)?.['name']) ?? ''}`);
  const groups = [...listOf(security?.['supplementalGroups']), security?.['fsGroup']];
  if (groups.includes(0)) found.add('group 0');
  addAnnotations(recordOf(metadata?.['annotations']), found);
  for (const sources of extraordinaryVolumes(spec).values()) for (const source of sources) found.add(source);
  for (const volume of listOf(spec['volumes'])) addTokens(recordOf(volume), found);
  return found;
}

/** Older API servers take profiles from annotations, too. */
const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

function addAnnotations(annotations: JsonRecord | undefined, found: Set<string>): void {
  for (const [key, value] of Object.entries(annotations ?? {})) {
    if (key.startsWith(APPARMOR_ANNOTATION) && value === 'unconfined') found.add(`annotation ${key}`);
  }
}

/** Of the Restricted level; and images, as whoever writes a policy may have any image run. */
const ORDINARY_VOLUMES: ReadonlySet<string> = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
]);

/** What volumes of other types show, in words, by the names of the volumes. */
function extraordinaryVolumes(spec: JsonRecord): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const item of listOf(spec['volumes'])) {
    const volume = recordOf(item) ?? {};
    const sources = Object.entries(volume).filter(
      ([type, source]) => type !== 'name' && !ORDINARY_VOLUMES.has(type) && isThere(source),
    );
    const name = textOf(volume['name']) ?? '';
    const words = sources.map(([type, source]) => sourceInWords(type, source));
    if (words.length > 0) found.set(name, [...(found.get(name) ?? []), ...words]);
  }
  return found;
}

function sourceInWords(type: string, source: unknown): string {
  const record = recordOf(source);
  const { path, type: kind = '', ...others } = record ?? {};
  const isPlain = type === 'hostPath' && typeof path === 'string' && kind === '' && Object.keys(others).length === 0;
  return isPlain ? `hostPath "${path}"` : `${type} ${canonicalJson(source)}`;
}

/** Another container than before, more of the volume, or the right to write there. */
function addMounts(container: JsonRecord, volumes: ReadonlyMap<string, string[]>, found: Set<string>): void {
  for (const item of listOf(container['volumeMounts'])) {
    const mount = recordOf(item) ?? {};
    const path = textOf(mount['subPath']) ?? textOf(mount['subPathExpr']) ?? '';
    for (const source of volumes.get(textOf(mount['name']) ?? '') ?? []) {
      const mounted = `a mount of ${source}${path === '' ? '' : ` at "${path}"`}`;
      found.add(mounted);
      if (mount['readOnly'] !== true) found.add(`${mounted} to write to`);
    }
  }
}

function addTokens(volume: JsonRecord | undefined, found: Set<string>): void {
  for (const item of listOf(recordOf(volume?.['projected'])?.['sources'])) {
    const token = recordOf(item)?.['serviceAccountToken'];
    const audience = textOf(recordOf(token)?.['audience']) ?? '';
    if (isThere(token)) found.add(`serviceAccountToken${audience === '' ? '' : ` for "${audience}"`}`);
    const certificate = recordOf(item)?.['podCertificate'];
    const signer = textOf(recordOf(certificate)?.['signerName']) ?? '';
    if (isThere(certificate)) found.add(`podCertificate of "${signer}"`);
  }
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function addContainer(container: JsonRecord, found: Set<string>): void {
  for (const port of listOf(container['ports'])) {
    const { hostPort: number, protocol = 'TCP' } = recordOf(port) ?? {};
    if (typeof number === 'number' && number > 0)
      found.add(`hostPort ${number}${protocol === 'TCP' ? '' : `/${String(protocol)}`}`);
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
  for (const field of ['runAsUser', 'runAsGroup']) if (context[field] === 0) found.add(`${field} 0`);
  for (const capability of listOf(recordOf(context['capabilities'])?.['add'])) {
    found.add(`capability ${String(capability)}`);
  }
  for (const profile of ['seccompProfile', 'appArmorProfile']) {
    if (recordOf(context[profile])?.['type'] === 'Unconfined') found.add(`${profile} Unconfined`);
  }
  if (context['procMount'] === 'Unmasked') found.add('procMount Unmasked');
  addWindows(recordOf(context['windowsOptions']) ?? {}, found);
  if (context['seLinuxOptions'] !== undefined) found.add('seLinuxOptions');
}

/** What a container of Windows runs as where nothing else is said; it may not administer even that container. */
const ORDINARY_WINDOWS_USER = 'containeruser';

function addWindows(options: JsonRecord, found: Set<string>): void {
  if (options['hostProcess'] === true) found.add('hostProcess');
  for (const field of ['gmsaCredentialSpecName', 'gmsaCredentialSpec', 'runAsUserName']) {
    const text = textOf(options[field]) ?? '';
    const isOrdinary = field === 'runAsUserName' && text.toLowerCase() === ORDINARY_WINDOWS_USER;
    if (text !== '' && !isOrdinary) found.add(`${field} ${canonicalJson(text)}`);
  }
}
