import type { KubeObject } from '../kube/object.ts';
import { isApplied } from './apply.ts';
import { CliError } from './cli-error.ts';
import { nameOf, resourceOf } from './known-kinds.ts';
import type { ManifestObject } from './manifests.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/** What limits a namespace that is lent has a name that its owner may have given, too. */
const LIMITS = ['NetworkPolicy', 'ResourceQuota'];

/** Whether it is a limit that is there, and that the owner of the namespace may have made: nothing shows that join did. Throws CliError. */
export async function isPerhapsOfOwner(member: Pick<Viewer, 'tryGet'>, object: ManifestObject): Promise<boolean> {
  const found = await limitThere(member, object);
  return found !== undefined && (found instanceof MissingRight || !isApplied(found));
}

/** Throws CliError where a limit that join is to apply would take the place of one that the owner of the namespace made. */
export async function checkLimitsOfOwner(
  member: Pick<Viewer, 'tryGet'>,
  objects: readonly ManifestObject[],
): Promise<void> {
  const taken: string[] = [];
  for (const object of objects) {
    const found = await limitThere(member, object);
    // What may not be read is refused by its name when it is applied.
    if (found === undefined || found instanceof MissingRight || isApplied(found)) continue;
    taken.push(`${nameOf(object)} in namespace ${object.metadata.namespace ?? ''}`);
  }
  if (taken.length === 0) return;
  throw new CliError('limits of the owner of the member would be overwritten, and nothing was done', {
    reason: `nothing shows that join made ${taken.join(' and ')}`,
    fix: 'delete what is there, or give it another name, and repeat this; without --quota and --network-policy it stays as it is',
    page: 'guides/install.md#what-join-does',
  });
}

async function limitThere(
  member: Pick<Viewer, 'tryGet'>,
  object: ManifestObject,
): Promise<KubeObject | MissingRight | undefined> {
  if (!LIMITS.includes(object.kind)) return undefined;
  const { namespace, name } = object.metadata;
  return await member.tryGet<KubeObject>(resourceOf(object), { namespace, name });
}
