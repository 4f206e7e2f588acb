import { z } from 'zod';
import { dnsSubdomain, listMap } from './schema-parts.ts';

/**
 * Provisioner of the host's storage classes whose volumes are in members, and the driver of those volumes. Nobody else
 * makes such volumes, and nothing on the host mounts them.
 */
export const MEMBER_STORAGE = 'member.spillway.dev';

/** Annotation of a claim that the scheduler writes: the node that its first pod is going to. */
export const SELECTED_NODE_ANNOTATION = 'volume.kubernetes.io/selected-node';

const hostClass = z.object({
  host: dnsSubdomain().describe(`Class in the host. Its provisioner is ${MEMBER_STORAGE}.`),
  member: dnsSubdomain()
    .exactOptional()
    .describe('Class in the member. If there is none, the default class of the member.'),
});

/** spec.storage of a MemberCluster. */
export const storage = z
  .object({
    classes: z
      .array(hostClass)
      .max(64)
      .default([{ host: 'spillway' }])
      .meta({
        description:
          'Storage classes of the host whose claims may be in the member, and what each is there. Claims of other classes are refused. ' +
          'Default: class spillway of the host is the default class of the member.',
        ...listMap('host'),
      }),
  })
  .prefault({})
  .describe('Where the data of claims is that pods use in the member.');

export type MemberStorage = z.output<typeof storage>;

/** What a class of the host is in the member; undefined if it is nothing there. */
export function memberClassOf(
  { classes }: MemberStorage,
  hostClassName: string,
): { name: string | undefined } | undefined {
  const found = classes.find(({ host }) => host === hostClassName);
  return found === undefined ? undefined : { name: found.member };
}
