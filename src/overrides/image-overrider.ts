import type { Overrider } from '../api/overriders.ts';
import type { JsonRecord } from '../kube/json-fields.ts';
import { formatImage, type ImageReference, isDigest, isTag, parseImage } from '../kube/image-reference.ts';
import { applyPatchOperation } from './json-patch.ts';
import { parsePointer, valueAt } from './json-pointer.ts';
import { ALL_CONTAINERS, editContainers, MAIN_CONTAINERS } from './edit-containers.ts';
import { OverrideError } from './override-error.ts';
import { objectPath } from './object-path.ts';

type ImageOverrider = Overrider<'imageOverrider'>;

/** Images of a pod, or the one image that the predicate points at in an object of any kind. */
export function overrideImages(object: JsonRecord, overrider: ImageOverrider): JsonRecord {
  if (overrider.predicate !== undefined) return imageAt(object, overrider.predicate.path, overrider);
  const lists = overrider.scope === 'AllContainers' ? ALL_CONTAINERS : MAIN_CONTAINERS;
  return editContainers(object, lists, undefined, (container, where) => {
    const image = container['image'];
    // A container without an image is for the API server to refuse.
    if (typeof image !== 'string') return container;
    const after = overriddenImage(image, overrider, `the image of ${where}`);
    return after === image ? container : { ...container, image: after };
  });
}

function imageAt(object: JsonRecord, pointer: string, overrider: ImageOverrider): JsonRecord {
  const path = objectPath(object, pointer);
  const image = valueAt(object, parsePointer(path) ?? []);
  if (typeof image !== 'string') throw new OverrideError(path, 'there is no text at that path');
  const value = overriddenImage(image, overrider, path);
  return applyPatchOperation(object, { operator: 'replace', path, value }) as JsonRecord;
}

/**
 * The image with one of its parts changed. Tag stands for tag and digest: a tag takes the place of a digest and the other
 * way round, and adding what makes neither changes nothing.
 *
 * @throws OverrideError when the text is no image, or no longer one afterwards.
 */
export function overriddenImage(
  image: string,
  overrider: Pick<ImageOverrider, 'component' | 'operator' | 'value'>,
  where: string,
): string {
  const before = parseImage(image);
  if (before === undefined) throw new OverrideError(where, 'it is not an image reference');
  const after = formatImage(withComponent(before, overrider, where));
  if (parseImage(after) === undefined) {
    throw new OverrideError(where, `with the ${overrider.component} changed, it would not be an image reference`);
  }
  return after;
}

function withComponent(
  image: ImageReference,
  { component, operator, value = '' }: Pick<ImageOverrider, 'component' | 'operator' | 'value'>,
  where: string,
): ImageReference {
  const changed = (part: string): string => {
    if (operator === 'remove') return '';
    return operator === 'add' ? part + value : value;
  };
  if (component === 'Registry') return { ...image, registry: changed(image.registry) };
  if (component === 'Repository') return { ...image, repository: changed(image.repository) };
  if (operator === 'remove') return { ...image, tag: '', digest: '' };
  const wanted = changed(image.tag === '' ? image.digest : image.tag).replace(/^@/, '');
  if (isTag(wanted)) return { ...image, tag: wanted, digest: '' };
  if (isDigest(wanted)) return { ...image, tag: '', digest: wanted };
  if (operator === 'replace') throw new OverrideError(where, 'the value is neither a tag nor a digest');
  return image;
}
