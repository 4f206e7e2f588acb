import { cleanText } from '../kube/clean-text.ts';
import { stringifyJson } from '../kube/json.ts';
import type { KubeObject } from '../kube/object.ts';
import { isApplied } from './apply.ts';
import { CliError } from './cli-error.ts';
import { fieldsOfOthers } from './fields-of-others.ts';
import { nameOf, knownResource } from './known-kinds.ts';
import type { ManifestObject } from './manifests.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/** What limits a namespace that is lent has a name that its owner may have given, too. */
const LIMITS = ['NetworkPolicy', 'ResourceQuota'];

/** Of a field in a message, in bytes. */
const LONGEST_VALUE = 200;

/** Whether it is a limit that is there, and that the owner of the namespace may have made: nothing shows that join did. Throws CliError. */
export async function isPerhapsOfOwner(member: Pick<Viewer, 'tryGet'>, object: ManifestObject): Promise<boolean> {
  const found = await limitThere(member, object);
  return found !== undefined && (found instanceof MissingRight || !isApplied(found));
}

/** Throws CliError where a limit that join is to apply would take the place of one that the owner of the namespace made, or changed since. */
export async function checkLimitsOfOwner(
  member: Pick<Viewer, 'tryGet'>,
  objects: readonly ManifestObject[],
): Promise<void> {
  const taken: string[] = [];
  const edited: string[] = [];
  for (const object of objects) {
    const found = await limitThere(member, object);
    // What may not be read is refused by its name when it is applied.
    if (found === undefined || found instanceof MissingRight) continue;
    const name = `${nameOf(object)} in namespace ${object.metadata.namespace ?? ''}`;
    if (!isApplied(found)) {
      taken.push(name);
      continue;
    }
    for (const { path, value } of fieldsOfOthers(found, object))
      edited.push(`${path} of ${name} is ${cleanText(stringifyJson(value), LONGEST_VALUE)}`);
  }
  if (taken.length === 0 && edited.length === 0) return;
  throw new CliError('limits of the owner of the member would be overwritten, and nothing was done', {
    reason: [
      ...(taken.length === 0 ? [] : [`nothing shows that join made ${taken.join(' and ')}`]),
      ...(edited.length === 0 ? [] : [`somebody has changed what join made: ${edited.join(', ')}`]),
    ].join('; '),
    fix:
      taken.length > 0
        ? 'delete what is there, or give it another name, and repeat this; without --quota and --network-policy it stays as it is'
        : 'give --quota what stands there, or delete what is there, and repeat this; without --quota and --network-policy it stays as it is',
    page: 'guides/install.md#what-join-does',
  });
}

async function limitThere(
  member: Pick<Viewer, 'tryGet'>,
  object: ManifestObject,
): Promise<KubeObject | MissingRight | undefined> {
  if (!LIMITS.includes(object.kind)) return undefined;
  const { namespace, name } = object.metadata;
  return await member.tryGet<KubeObject>(knownResource(object), { namespace, name });
}
