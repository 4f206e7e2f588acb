import { z } from 'zod';
import { dnsSubdomain, listMap } from './schema-parts.ts';

const mappedClass = z.object({
  host: dnsSubdomain().describe('PriorityClass in the host.'),
  member: dnsSubdomain().describe('PriorityClass in the member, for copies of pods of that class.'),
});

/** spec.podPriority of a MemberCluster. */
export const podPriority = z
  .object({
    classes: z
      .array(mappedClass)
      .max(64)
      .default([])
      .meta({
        description:
          'What PriorityClasses of the host are in the member. Names and values of classes that are not listed stay in the host.',
        ...listMap('host'),
      }),
    default: dnsSubdomain()
      .exactOptional()
      .describe(
        'PriorityClass in the member for copies of all other pods: of no class, or of one that is not listed. ' +
          'If there is none, they have no class, and the member gives them what it gives pods without one.',
      ),
  })
  .prefault({})
  .describe(
    'PriorityClasses of copies, by which the scheduler of the member decides whose pods go first there. They have to exist in the ' +
      'member. A copy keeps the class it was made with. Default: copies have none.',
  );

export type PodPriority = z.output<typeof podPriority>;

/** The PriorityClass in the member of the copy of a pod of this class; undefined: none. @param hostClass '' or undefined: of none */
export function memberPriorityClassOf(
  { classes, default: others }: PodPriority,
  hostClass: string | undefined,
): string | undefined {
  return classes.find(({ host }) => host === hostClass)?.member ?? others;
}
