import { GROUP } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import { type JsonRecord, listOf, recordOf } from '../kube/json-fields.ts';
import { copiedAnnotations, copiedLabels } from './translate-metadata.ts';
import { tolerationsForMember } from './translate-constraints.ts';
import { memberTolerations } from './translate-scheduling.ts';

/**
 * Annotation of a member pod: which state of the host pod's changeable parts it has received. A member may change its
 * copy (a webhook that rewrites images, say), so what has to be sent is told by comparing the host pod with what it was,
 * never with the copy. The value is a version and one short hash for each part, so that a new label sends no image.
 */
export const APPLIED_ANNOTATION = `${GROUP}/applied`;

/** What the hashes mean. A change here would make every running pod look outdated: old versions have to stay readable. */
const VERSION = 'v1';
const HASH_LENGTH = 9;

/** The changeable parts of a pod, each as a hash. */
export interface AppliedParts {
  /** Labels and annotations that are copied. */
  metadata: string;
  /** activeDeadlineSeconds and the tolerations that go down. */
  spec: string;
  /** Resources of the pod as a whole. */
  resources: string;
  ephemeral: string;
  /** Init containers, then containers, in their order (which never changes). */
  containers: readonly { image: string; resources: string }[];
}

const cache = new WeakMap<Pod, string>();

/** The value of {@link APPLIED_ANNOTATION} for a member pod that has received everything. Objects from caches are not hashed twice. */
export function appliedHash(hostPod: Pod): string {
  let text = cache.get(hostPod);
  if (text === undefined) {
    text = write(partsOf(hostPod));
    cache.set(hostPod, text);
  }
  return text;
}

/** The same for a member pod that was just created: ephemeral containers cannot be part of that. */
export function appliedAtCreation(hostPod: Pod): string {
  if (listOf(hostPod.spec.ephemeralContainers).length === 0) return appliedHash(hostPod);
  return write({ ...partsOf(hostPod), ephemeral: hashOf([]) });
}

/**
 * True when nothing has to be sent to the member pod. That includes a copy which another version of this program marked
 * in a way we cannot read: changing a running pod on a guess would be worse than a change that waits for that version.
 */
export function isApplied(hostPod: Pod, memberPod: Pod): boolean {
  const mark = memberPod.metadata.annotations?.[APPLIED_ANNOTATION];
  return mark !== undefined && (mark === appliedHash(hostPod) || !mark.startsWith(`${VERSION}:`));
}

/** What a member pod has received; undefined when its annotation is missing or damaged. */
export function appliedParts(memberPod: Pod): AppliedParts | undefined {
  const [version, ...rest] = (memberPod.metadata.annotations?.[APPLIED_ANNOTATION] ?? '').split(/[:.]/);
  const [metadata, spec, resources, ephemeral, ...containers] = rest;
  if (version !== VERSION || ephemeral === undefined) return undefined;
  if (metadata === undefined || spec === undefined || resources === undefined) return undefined;
  return {
    metadata,
    spec,
    resources,
    ephemeral,
    containers: containers.map((text) => ({ image: text.slice(0, HASH_LENGTH), resources: text.slice(HASH_LENGTH) })),
  };
}

export function partsOf(hostPod: Pod): AppliedParts {
  const spec = recordOf(hostPod.spec) ?? {};
  return {
    metadata: hashOf([copiedLabels(hostPod), copiedAnnotations(hostPod)]),
    spec: hashOf([spec['activeDeadlineSeconds'], memberTolerations(tolerationsForMember(hostPod))]),
    resources: hashOf(spec['resources']),
    ephemeral: hashOf(listOf(spec['ephemeralContainers'])),
    containers: containersOf(spec).map((container) => ({
      image: hashOf(container['image']),
      resources: hashOf(container['resources']),
    })),
  };
}

/** Init containers, then containers. */
export function containersOf(spec: JsonRecord): JsonRecord[] {
  return [...listOf(spec['initContainers']), ...listOf(spec['containers'])].map((item) => recordOf(item) ?? {});
}

function write(parts: AppliedParts): string {
  const { metadata, spec, resources, ephemeral, containers } = parts;
  const each = containers.map((container) => container.image + container.resources);
  return `${VERSION}:${[metadata, spec, resources, ephemeral, ...each].join('.')}`;
}

/**
 * 46 bits in base 36: two multiplicative 32-bit hashes (MurmurHash3's constants) over the canonical text. Every change of
 * a cached pod is hashed, so it has to be cheap; a collision would cost one missed update, nothing else.
 */
function hashOf(value: unknown): string {
  const text = canonicalJson(value);
  let [low, high] = [0xdeadbeef, 0x41c6ce57];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    low = Math.imul(low ^ code, 0x9e3779b1);
    high = Math.imul(high ^ code, 0x5f356495);
  }
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
  const bits = (high & 0x3fff) * 2 ** 32 + (low >>> 0);
  return bits.toString(36).padStart(HASH_LENGTH, '0');
}
