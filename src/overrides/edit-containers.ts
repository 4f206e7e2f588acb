import { type JsonRecord, recordOf, rewriteField, rewriteItems } from '../kube/json-fields.ts';

export const MAIN_CONTAINERS = ['containers'] as const;
export const NAMED_CONTAINERS = ['containers', 'initContainers'] as const;
export const ALL_CONTAINERS = ['containers', 'initContainers', 'ephemeralContainers'] as const;

export function isPod(object: JsonRecord): boolean {
  return object['kind'] === 'Pod' && object['apiVersion'] === 'v1';
}

/** The object with its spec rewritten if it is a pod; any other is left alone. */
export function editPodSpec(object: JsonRecord, edit: (spec: JsonRecord) => JsonRecord): JsonRecord {
  if (!isPod(object)) return object;
  return rewriteField(object, 'spec', (value) => {
    const spec = recordOf(value);
    return spec === undefined ? value : edit(spec);
  });
}

/**
 * The pod with each container of the lists rewritten, or only those called `name`. `where` names the container in
 * messages. An object that is no pod is left alone.
 */
export function editContainers(
  object: JsonRecord,
  lists: readonly string[],
  name: string | undefined,
  edit: (container: JsonRecord, where: string) => JsonRecord,
): JsonRecord {
  return editPodSpec(object, (spec) =>
    lists.reduce(
      (after, list) =>
        rewriteField(after, list, (items) =>
          rewriteItems(items, (container) => {
            const own = container['name'];
            if (name !== undefined && own !== name) return container;
            return edit(container, `container "${typeof own === 'string' ? own : ''}"`);
          }),
        ),
      spec,
    ),
  );
}
