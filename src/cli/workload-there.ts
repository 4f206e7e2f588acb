import type { KubeObject } from '../kube/object.ts';
import type { Resource } from '../kube/resource.ts';
import { CliError, isNotThere } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import { didYouMean } from './near-names.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/** So that a wrong name is told at once, with the one that was most likely meant. Throws CliError. */
export async function workloadThere(
  host: Viewer,
  namespace: string,
  { resource, name }: { resource: Resource; name: string },
): Promise<void> {
  try {
    await host.get<KubeObject>(resource, { namespace, name });
  } catch (error) {
    if (!isNotThere(error)) throw error;
    const others = await host.tryList<KubeObject>(resource, { namespace }).catch(() => []);
    const names = others instanceof MissingRight ? [] : others.map(({ metadata }) => metadata.name);
    const fix = didYouMean(name, names, `${resource.kind.toLowerCase()}/`);
    if (fix === undefined) throw error;
    throw new CliError(error.message, { exitCode: EXIT.notFound, fix, cause: error });
  }
}
