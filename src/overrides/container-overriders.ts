import type { Overrider } from '../api/overriders.ts';
import { type JsonRecord, listOf, recordOf, textOf, without } from '../kube/json-fields.ts';
import { editContainers, editPodSpec, NAMED_CONTAINERS } from './edit-containers.ts';
import { withEntries, withList } from './list-fields.ts';

/** Elements are added at the end, or taken out wherever they are. A container that had no list gets one. */
export function overrideWords(
  object: JsonRecord,
  field: 'command' | 'args',
  overrider: Overrider<'commandOverrider'>,
): JsonRecord {
  const { containerName, operator, value: words = [] } = overrider;
  return editContainers(object, NAMED_CONTAINERS, containerName, (container) =>
    withList(container, field, changedWords(listOf(container[field]), operator, words)),
  );
}

function changedWords(
  before: readonly unknown[],
  operator: Overrider<'commandOverrider'>['operator'],
  words: readonly string[],
): readonly unknown[] {
  switch (operator) {
    case 'add':
      return [...before, ...words];
    case 'remove':
      return before.filter((word) => typeof word !== 'string' || !words.includes(word));
    case 'replace':
      return words;
  }
}

/**
 * Variables by name, in one container or in all. One that is there keeps its place, which matters to those that refer to
 * it; of several of one name the last one counts, as in a container, and the others go.
 */
export function overrideEnv(object: JsonRecord, overrider: Overrider<'envOverrider'>): JsonRecord {
  const { containerName, operator, value: variables } = overrider;
  return editContainers(object, NAMED_CONTAINERS, containerName, (container) =>
    withList(container, 'env', withNamed(listOf(container['env']), operator, variables, 'Last')),
  );
}

export function overrideInitContainers(
  object: JsonRecord,
  overrider: Overrider<'initContainersOverrider'>,
): JsonRecord {
  const { operator, position, value: containers } = overrider;
  return editPodSpec(object, (spec) =>
    withList(spec, 'initContainers', withNamed(listOf(spec['initContainers']), operator, containers, position)),
  );
}

/** The list with items of those names set or taken out. */
function withNamed(
  list: readonly unknown[],
  operator: 'add' | 'remove' | 'replace',
  items: readonly { readonly name: string }[],
  position: 'First' | 'Last',
): readonly unknown[] {
  const names = list.map((item) => textOf(recordOf(item)?.['name']));
  if (operator === 'remove') {
    const gone = new Set<string | undefined>(items.map(({ name }) => name));
    return list.filter((_, index) => !gone.has(names[index]));
  }
  const wanted = new Map(items.map((item) => [item.name, item]));
  const kept = list.flatMap((item, index) => {
    const replacement = wanted.get(names[index] ?? '');
    if (replacement === undefined) return [item];
    return names.lastIndexOf(replacement.name) === index ? [replacement] : [];
  });
  const missing = operator === 'add' ? [...wanted.values()].filter(({ name }) => !names.includes(name)) : [];
  return position === 'First' ? [...missing, ...kept] : [...kept, ...missing];
}

/** Amounts by resource name, in one container or in all. */
export function overrideResources(object: JsonRecord, overrider: Overrider<'resourcesOverrider'>): JsonRecord {
  const { containerName, operator } = overrider;
  return editContainers(object, NAMED_CONTAINERS, containerName, (container) => {
    const before = recordOf(container['resources']) ?? {};
    let after = before;
    for (const kind of ['requests', 'limits'] as const) {
      const amounts = overrider[kind];
      if (amounts !== undefined) after = withEntries(after, kind, operator, amounts);
    }
    if (after === before) return container;
    return Object.keys(after).length === 0 ? without(container, ['resources']) : { ...container, resources: after };
  });
}
