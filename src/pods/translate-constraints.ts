import { MEMBER_CONSTRAINTS_ANNOTATION } from '../api/marks.ts';
import type { Pod, Toleration } from '../kube/core-v1.ts';
import { parseJson } from '../kube/json.ts';
import { entryOf, type JsonRecord, listOf, recordOf, without } from '../kube/json-fields.ts';
import { holdsHere, isHostOnlyKey, type NodeChoice } from './translate-node-affinity.ts';

/** Parts of the annotation; each takes the place of the pod's own when it is there. */
const PARTS = ['nodeSelector', 'nodeAffinity', 'tolerations'];
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
/** Of a toleration in a message. */
const MOST_SHOWN = 200;
const AFFINITY_PARTS = [REQUIRED, 'preferredDuringSchedulingIgnoredDuringExecution'];

/**
 * What a pod asks of nodes in a member, where an annotation says so apart from what it asks of nodes of the host. What of it
 * speaks of virtual nodes is then left out as always.
 */
type Constraints = JsonRecord;

const cache = new WeakMap<Pod, { constraints: Constraints | undefined; problem: string | undefined }>();

function read(hostPod: Pod): { constraints: Constraints | undefined; problem: string | undefined } {
  let known = cache.get(hostPod);
  if (known === undefined) {
    const text = entryOf(recordOf(hostPod.metadata.annotations), MEMBER_CONSTRAINTS_ANNOTATION);
    known = typeof text === 'string' ? parse(text, hostPod) : { constraints: undefined, problem: undefined };
    cache.set(hostPod, known);
  }
  return known;
}

function parse(text: string, { spec }: Pod): { constraints: Constraints | undefined; problem: string | undefined } {
  const wrong = (problem: string) => ({ constraints: undefined, problem });
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return wrong('it is not JSON');
  }
  const record = recordOf(value);
  if (record === undefined) return wrong('it is not an object');
  const stranger = Object.keys(record).find((key) => !PARTS.includes(key));
  if (stranger !== undefined) return wrong(`it has ${JSON.stringify(stranger)}, which is none of ${PARTS.join(', ')}`);
  const { nodeSelector, nodeAffinity, tolerations } = record;
  if (nodeSelector !== undefined) {
    const labels = recordOf(nodeSelector);
    if (labels === undefined || !Object.values(labels).every((label) => typeof label === 'string'))
      return wrong('nodeSelector is not a map of texts');
  }
  if (tolerations !== undefined && !isListOfObjects(tolerations)) return wrong('tolerations is not a list of objects');
  const more = listOf(tolerations).find((one) => !isWithin(one as Toleration, spec.tolerations ?? []));
  if (more !== undefined) {
    const what = JSON.stringify(more).slice(0, MOST_SHOWN);
    return wrong(`tolerations has ${what}, which goes beyond the tolerations of the pod itself; add it there`);
  }
  return nodeAffinity === undefined || isNodeAffinity(nodeAffinity)
    ? { constraints: record, problem: undefined }
    : wrong('nodeAffinity is not that of a pod');
}

/** What a pod tolerates the policies of the host have judged; what an annotation says they do not know. */
function isWithin(wanted: Toleration, own: readonly Toleration[]): boolean {
  const { key = '', operator, value = '', effect = '', tolerationSeconds: seconds } = wanted;
  return own.some((one) => {
    if ((one.key ?? '') !== '' && one.key !== key) return false;
    if ((one.effect ?? '') !== '' && one.effect !== effect) return false;
    const most = one.tolerationSeconds;
    if (most !== undefined && (seconds === undefined || seconds > most)) return false;
    return one.operator === 'Exists' || (isEqual(one.operator) && isEqual(operator) && (one.value ?? '') === value);
  });
}

function isEqual(operator: unknown): boolean {
  return operator === undefined || operator === '' || operator === 'Equal';
}

function isListOfObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => recordOf(item) !== undefined);
}

function isNodeAffinity(value: unknown): boolean {
  const affinity = recordOf(value);
  if (affinity === undefined || !Object.keys(affinity).every((key) => AFFINITY_PARTS.includes(key))) return false;
  const [required, preferred] = AFFINITY_PARTS.map((key) => affinity[key] ?? undefined);
  if (preferred !== undefined && !isListOfObjects(preferred)) return false;
  return required === undefined || isListOfObjects(recordOf(required)?.['nodeSelectorTerms']);
}

/** What is wrong with the annotation, for people; undefined when it is not there or right. */
export function constraintsProblem(hostPod: Pod): string | undefined {
  return read(hostPod).problem;
}

/** The spec with what the annotation says in the place of the pod's own; the same spec where it says nothing. */
export function withMemberConstraints(spec: JsonRecord, hostPod: Pod): JsonRecord {
  const { constraints } = read(hostPod);
  if (constraints === undefined) return spec;
  const { nodeSelector, nodeAffinity, tolerations } = constraints;
  let after = spec;
  const selector = recordOf(nodeSelector);
  if (selector !== undefined) {
    after = Object.keys(selector).length === 0 ? without(after, ['nodeSelector']) : { ...after, nodeSelector };
  }
  if (tolerations !== undefined) after = { ...after, tolerations };
  const given = recordOf(nodeAffinity);
  if (given === undefined) return after;
  const affinity = recordOf(after['affinity']) ?? {};
  let own: JsonRecord = recordOf(affinity['nodeAffinity']) ?? {};
  for (const [part, value] of Object.entries(given)) {
    own = value === null ? without(own, [part]) : { ...own, [part]: value };
  }
  const rest = Object.keys(own).length === 0 ? without(affinity, ['nodeAffinity']) : { ...affinity, nodeAffinity: own };
  return Object.keys(rest).length === 0 ? without(after, ['affinity']) : { ...after, affinity: rest };
}

/** The tolerations that count in the member, those that stay on the host included. */
export function tolerationsForMember(hostPod: Pod): unknown {
  return read(hostPod).constraints?.['tolerations'] ?? hostPod.spec.tolerations;
}

/**
 * What the annotation asks for that this virtual node is known not to have, in words; undefined when nothing stands
 * against it. The pod's own words need no such look: the host's scheduler has held it to them.
 */
export function whyConstraintsLeaveOut(hostPod: Pod, choice: NodeChoice): string | undefined {
  const { constraints } = read(hostPod);
  if (constraints === undefined) return undefined;
  for (const [key, value] of Object.entries(recordOf(constraints['nodeSelector']) ?? {})) {
    if (!isHostOnlyKey(key, choice)) continue;
    if (!holdsHere({ matchExpressions: [{ key, operator: 'In', values: [value] }] }, choice)) {
      return `label ${key}=${String(value)}`;
    }
  }
  const required = recordOf(recordOf(constraints['nodeAffinity'])?.[REQUIRED]);
  const terms = listOf(required?.['nodeSelectorTerms']);
  if (terms.length === 0 || terms.some((term) => holdsHere(term, choice))) return undefined;
  return 'node labels by its node affinity';
}
