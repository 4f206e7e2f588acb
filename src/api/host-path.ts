import { z } from 'zod';
import { cel } from './schema-parts.ts';

/** An absolute path whose parts are neither empty nor `.` or `..`; or the root alone. */
const PREFIX = /^([/]|([/]([^/\\.][^/\\]*|[.][^/\\.][^/\\]*|[.][.][^/\\]+))+)$/;

/** spec.hostPath of a MemberCluster. */
export const hostPath = z
  .object({
    policy: z
      .enum(['Refuse', 'Allow'])
      .default('Refuse')
      .describe('Refuse: such pods do not run in the member. Allow: they do, with the paths that are listed.'),
    allowedPrefixes: z
      .array(z.string().min(1).max(1024).regex(PREFIX))
      .max(32)
      .default([])
      .meta({
        description:
          'Directories of the nodes of the member that policy Allow allows, with all below them. /var/log does not allow ' +
          '/var/logs. Who may write below a directory can put symbolic links there, and by them reach everything on the node.',
        'x-kubernetes-list-type': 'set',
      }),
  })
  .prefault({})
  .meta({
    description: 'What becomes of pods with hostPath volumes, which show them files of the nodes that they run on.',
    ...cel({
      // The default of the whole object is judged before those of its fields are filled in.
      rule: "!has(self.policy) || self.policy != 'Allow' || (has(self.allowedPrefixes) && self.allowedPrefixes.size() > 0)",
      message: 'policy Allow needs at least one path',
      fieldPath: '.allowedPrefixes',
      reason: 'FieldValueRequired',
    }),
  });

export type HostPathPolicy = z.output<typeof hostPath>;
