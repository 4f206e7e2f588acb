import { z } from 'zod';
import { ALLOW_HOST_LABEL } from './marks.ts';
import { systemNamespaceCel } from './namespace-mapping.ts';
import { POD_SECURITY_LEVELS } from './pod-security.ts';
import { cel, dnsLabel, listMap } from './schema-parts.ts';

const required = (field: string, mapping: string) => [
  {
    rule: `self.mapping != '${mapping}' || has(self.${field})`,
    message: `${field} is required when mapping is ${mapping}`,
    reason: 'FieldValueRequired' as const,
    fieldPath: `.${field}`,
  },
  {
    rule: `self.mapping == '${mapping}' || !has(self.${field})`,
    message: `${field} is only allowed when mapping is ${mapping}`,
    reason: 'FieldValueForbidden' as const,
    fieldPath: `.${field}`,
  },
];

export const namespaces = z
  .object({
    mapping: z
      .enum(['Same', 'Prefixed', 'Explicit'])
      .default('Same')
      .describe(
        'Same: a namespace has the same name in the member. Prefixed: its name gets the prefix, ' +
          'and is cut and hashed where it would have 63 characters or more. Explicit: only the listed pairs are used.',
      ),
    prefix: z
      .string()
      .min(1)
      .max(30)
      .regex(/^[a-z0-9][-a-z0-9]*$/)
      .exactOptional()
      .describe('Put before every namespace name. Required with mapping Prefixed, forbidden otherwise.'),
    explicit: z
      .array(
        z.object({
          host: dnsLabel().describe('Namespace in the host.'),
          member: dnsLabel().describe('Namespace in the member.'),
        }),
      )
      .min(1)
      .max(128)
      .exactOptional()
      .meta({
        description: 'Pairs of namespaces, both sides unique. Required with mapping Explicit, forbidden otherwise.',
        ...listMap('host'),
      }),
    create: z
      .boolean()
      .default(true)
      .describe('Create a missing namespace in the member. If false, pods wait until its owner has made it.'),
    adoptExisting: z
      .boolean()
      .default(true)
      .describe(
        'Use a namespace that Spillway did not create, if the owner of the member labelled it ' +
          `${ALLOW_HOST_LABEL}=<host id> or =any.`,
      ),
    podSecurity: z
      .enum(POD_SECURITY_LEVELS)
      .default('baseline')
      .describe(
        'Pod Security level of namespaces that Spillway creates in the member, whatever level they have in the host: pods that it does not ' +
          'allow wait with reason MemberPodSecurity. It counts for namespaces made from then on; those that are there, and those that are lent, ' +
          'keep what they have. privileged needs manifests/member/privileged.yaml in a member with the guard.',
      ),
  })
  .prefault({})
  .meta({
    description: 'Which namespace of the member stands for a namespace of the host. System namespaces are never used.',
    ...cel(
      ...required('prefix', 'Prefixed'),
      ...required('explicit', 'Explicit'),
      {
        rule: `!has(self.prefix) || !(${systemNamespaceCel('self.prefix')})`,
        message: 'must not lead into system namespaces',
        fieldPath: '.prefix',
      },
      {
        rule: `!has(self.explicit) || self.explicit.all(e, !(${systemNamespaceCel('e.host')}) && !(${systemNamespaceCel('e.member')}))`,
        message: 'system namespaces cannot be mapped',
        fieldPath: '.explicit',
      },
      {
        rule: '!has(self.explicit) || self.explicit.all(e, self.explicit.exists_one(o, o.member == e.member))',
        message: 'two host namespaces must not share a member namespace',
        fieldPath: '.explicit',
      },
    ),
  });
