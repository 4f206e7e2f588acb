import PQueue from 'p-queue';
import { ApiError, isConflict, isNotFound } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyFor, type KubeObject } from '../kube/object.ts';
import { get, patch, remove } from '../kube/verbs.ts';
import { dryRunOption, dryRunWords, type DryRun } from './flags.ts';
import { nameOf, knownResource } from './known-kinds.ts';
import type { ManifestObject } from './manifests.ts';
import type { Terminal } from './terminal.ts';
import { inWords, type Viewer } from './viewer.ts';

/** Objects that are applied at the same time. */
const AT_A_TIME = 8;
/** In whose name fields are applied. */
export const FIELD_MANAGER = 'kubectl-spillway';

export type Outcome = 'created' | 'configured' | 'unchanged' | 'not judged';

/**
 * Applies an object on the server's side, and takes over fields that others set: what the manifests say is so. With a dry run on
 * the server nothing is stored. Throws CliError.
 */
export async function apply(cluster: Viewer, object: ManifestObject, dryRun: DryRun): Promise<Outcome> {
  const resource = knownResource(object);
  const { namespace, name } = object.metadata;
  const where = namespace === undefined ? '' : ` in namespace ${namespace}`;
  return await cluster.ask(`patch ${inWords(resource)}${where}`, async (signal) => {
    const before = await ifThere(get<KubeObject>(cluster.client, resource, { namespace, name }, { signal }));
    if (dryRun === 'client') return before === undefined ? 'created' : 'configured';
    const how = { type: 'apply', fieldManager: FIELD_MANAGER, force: true } as const;
    try {
      const after = await patch<KubeObject>(cluster.client, resource, { namespace, name }, object, how, {
        signal,
        ...dryRunOption(dryRun),
      });
      if (before === undefined) return 'created';
      return jsonEqual(wanted(before), wanted(after)) ? 'unchanged' : 'configured';
    } catch (error) {
      // Its namespace, or its kind, would have been made by now.
      if (dryRun === 'server' && before === undefined && isNotFound(error)) return 'not judged';
      throw error;
    }
  });
}

/** What somebody asks for with an object, and not what servers write of it. */
function wanted(object: KubeObject): unknown {
  const {
    resourceVersion: _v,
    generation: _g,
    managedFields: _m,
    ...metadata
  } = object.metadata as KubeObject['metadata'] & {
    managedFields?: unknown;
  };
  const { status: _s, ...rest } = object as KubeObject & { status?: unknown };
  return { ...rest, metadata };
}

/** Namespaces first, then some at a time; says in their order what became of each. Throws CliError. */
export async function applyAll(
  cluster: Viewer,
  objects: readonly ManifestObject[],
  dryRun: DryRun,
  terminal: Pick<Terminal, 'out'>,
): Promise<void> {
  const isNamespace = ({ kind }: ManifestObject): boolean => kind === 'Namespace';
  const queue = new PQueue({ concurrency: AT_A_TIME });
  const outcomes = new Map<ManifestObject, Promise<Outcome>>();
  let hasEnded = false;
  for (const object of objects.filter(isNamespace))
    outcomes.set(object, Promise.resolve(await apply(cluster, object, dryRun)));
  for (const object of objects) {
    if (isNamespace(object)) continue;
    const outcome = queue.add(async () => (hasEnded ? 'not judged' : await apply(cluster, object, dryRun)));
    // It is told in its turn, which may come after it has failed.
    outcome.catch(() => undefined);
    outcomes.set(object, outcome);
  }
  try {
    for (const [object, outcome] of outcomes)
      terminal.out(`${nameOf(object)} ${await outcome}${dryRunWords(dryRun)}\n`);
  } finally {
    // What has not begun does not any more; taken out of the queue, it would never settle.
    hasEnded = true;
    await Promise.allSettled(outcomes.values());
  }
}

/** Deletes an object if it is there; whether it was. Throws CliError. */
export async function takeAway(cluster: Viewer, object: ManifestObject, dryRun: DryRun): Promise<boolean> {
  const resource = knownResource(object);
  const { namespace, name } = object.metadata;
  return await cluster.ask(`delete ${inWords(resource)}`, async (signal) => {
    if (dryRun === 'client') {
      return (await ifThere(get<KubeObject>(cluster.client, resource, { namespace, name }, { signal }))) !== undefined;
    }
    const preconditions = { propagationPolicy: 'Background' } as const;
    const options = { signal, ...dryRunOption(dryRun) };
    try {
      await remove(cluster.client, resource, { namespace, name }, preconditions, options);
      return true;
    } catch (error) {
      // Nor is it there where its kind is not known. A namespace that ends already is not deleted again.
      if (error instanceof ApiError && error.code === 404) return false;
      if (isConflict(error) && object.kind === 'Namespace') return false;
      throw error;
    }
  });
}

/** Whether this program has applied it, and somebody has not set all of that anew since. */
export function isApplied({ metadata }: KubeObject): boolean {
  const { managedFields = [] } = metadata as { managedFields?: { manager?: string; operation?: string }[] };
  return managedFields.some(({ manager, operation }) => manager === FIELD_MANAGER && operation === 'Apply');
}

/** `deployments.apps spillway-system/spillway-manager`, to compare objects by. */
export function identityOf(object: ManifestObject): string {
  const { namespace, name } = object.metadata;
  return `${inWords(knownResource(object))} ${keyFor(namespace, name)}`;
}
