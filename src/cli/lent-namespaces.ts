import { ALLOW_HOST_LABEL, HOST_LABEL } from '../api/marks.ts';
import { ENFORCE_LABEL } from '../api/pod-security.ts';
import { cleanText } from '../kube/clean-text.ts';
import { NAMESPACES } from '../kube/resource.ts';
import { CliError } from './cli-error.ts';
import type { ManifestObject } from './manifests.ts';
import { MissingRight, type Viewer } from './viewer.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * Labels that namespaces which are to be lent have already, and keep: their level of Pod Security, and that they are lent to any
 * host. Throws CliError where one is another host's.
 */
export async function labelsToKeep(
  member: Viewer,
  lend: readonly string[],
  hostId: string,
): Promise<ReadonlyMap<string, Labels>> {
  const kept = new Map<string, Labels>();
  for (const name of lend) {
    const found = await member.tryGet(NAMESPACES, { name });
    if (found === undefined || found instanceof MissingRight) continue;
    const { [ENFORCE_LABEL]: level, [ALLOW_HOST_LABEL]: lentTo, [HOST_LABEL]: madeBy } = found.metadata.labels ?? {};
    if (madeBy !== undefined && madeBy !== hostId) throw takenBy(name, HOST_LABEL, madeBy);
    if (lentTo !== undefined && lentTo !== hostId && lentTo !== 'any') throw takenBy(name, ALLOW_HOST_LABEL, lentTo);
    kept.set(name, {
      ...(level === undefined ? {} : { [ENFORCE_LABEL]: level }),
      ...(lentTo === undefined ? {} : { [ALLOW_HOST_LABEL]: lentTo }),
    });
  }
  return kept;
}

/** Those of some namespaces that their owner lends to this host, or to any, as far as that may be read. Throws CliError. */
export async function stillLent(member: Viewer, names: readonly string[], hostId: string): Promise<string[]> {
  const lent: string[] = [];
  for (const name of names) {
    const found = await member.tryGet(NAMESPACES, { name });
    const lentTo = found instanceof MissingRight ? 'any' : found?.metadata.labels?.[ALLOW_HOST_LABEL];
    if (lentTo === hostId || lentTo === 'any') lent.push(name);
  }
  return lent;
}

/** Applied with the value that is there, as a label that was applied once, and is left out later, is taken off. */
export function withLabels(object: ManifestObject, kept: ReadonlyMap<string, Labels>): ManifestObject {
  const labels = object.kind === 'Namespace' ? kept.get(object.metadata.name) : undefined;
  if (labels === undefined) return object;
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, ...labels } } };
}

function takenBy(name: string, label: string, host: string): CliError {
  return new CliError(`namespace ${name} of the member is another host's, and nothing was done`, {
    reason: `its label ${label} says ${cleanText(host, 63)}`,
    fix:
      label === HOST_LABEL
        ? 'lend another namespace: that host made this one'
        : `lend another namespace, or, where that host is to have it no more: kubectl label namespace ${name} ${label}- there, and this again`,
    page: 'concepts/virtual-nodes.md',
  });
}
