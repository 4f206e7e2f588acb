import { z } from 'zod';
import { GROUP } from './marks.ts';
import { cel, type CelRule, dnsLabel, quantityMap } from './schema-parts.ts';

/** Overriders of an override rule: what is changed in an object. The first seven are Karmada's, the others are ours. */

const MAX_OVERRIDERS = 32;
const MAX_ENTRIES = 32;

const operator = (what: string) => z.enum(['add', 'remove', 'replace']).describe(what);
const SET = 'add: sets it, whatever was there. replace: only where it is set already. remove: takes it out.';

const needsValue = (rule = 'has(self.value)'): CelRule => ({
  rule: `self.operator == 'remove' || ${rule}`,
  message: 'value is required when operator is add or replace',
  reason: 'FieldValueRequired',
  fieldPath: '.value',
});

/** JSON Pointer (RFC 6901). */
const POINTER = /^([/]([^~/]|~[01])*)+$/;
const POINTER_OR_ROOT = /^([/]([^~/]|~[01])*)*$/;
const pointer = () => z.string().max(1024).regex(POINTER);

/** Any JSON. The API server keeps it as it is, and CEL cannot see it. */
const anyJson = (what: string) =>
  z.unknown().exactOptional().meta({ description: what, 'x-kubernetes-preserve-unknown-fields': true });
/** What CEL cannot say of a value it cannot see. */
const VALUE_UNLESS_REMOVED = {
  anyOf: [
    { required: ['value'], properties: { operator: { enum: ['add', 'replace'] } } },
    { properties: { operator: { enum: ['remove'] } } },
  ],
};

const listOf = <T extends z.ZodType>(item: T, what: string) =>
  z.array(item).max(MAX_OVERRIDERS).exactOptional().describe(what);

const containerName = () =>
  dnsLabel().describe(
    'Name of a container or an init container. If the pod has none of that name, nothing is changed; where no pod has it, condition Consistent of the policy says so.',
  );
const someContainer = () =>
  containerName()
    .exactOptional()
    .describe('Name of a container or an init container. Not given: all containers and init containers.');

const imageOverrider = z
  .object({
    predicate: z
      .object({ path: pointer().describe('JSON Pointer to a string that is an image.') })
      .exactOptional()
      .describe('Only the image at this path, in an object of any kind. Not given: images of pods, see scope.'),
    component: z
      .enum(['Registry', 'Repository', 'Tag'])
      .describe('Part of [registry[:port]/]repository[:tag][@digest]. Tag stands for the digest as well.'),
    operator: operator(
      'add: appends the value to the part. replace: the value takes its place. remove: the part is taken out. ' +
        'A tag takes the place of a digest and the other way round.',
    ),
    value: z.string().max(512).exactOptional().describe('Required with add and replace, ignored with remove.'),
    scope: z
      .enum(['Containers', 'AllContainers'])
      .default('Containers')
      .describe('AllContainers: init containers and debug containers as well. Without meaning if predicate is given.'),
  })
  .meta(
    cel(needsValue("(has(self.value) && self.value != '')"), {
      rule: "self.component != 'Repository' || self.operator != 'remove'",
      message: 'an image without a repository does not exist',
      fieldPath: '.operator',
    }),
  );

const commandArgsOverrider = z
  .object({
    containerName: containerName(),
    operator: operator(
      'add: appends the values. remove: takes out every element that is equal to one of the values. ' +
        'replace: the values are the whole list.',
    ),
    value: z
      .array(z.string().max(8192))
      .max(128)
      .exactOptional()
      .describe('Elements of the list. Required with replace.'),
  })
  .meta(
    cel({
      rule: "self.operator != 'replace' || has(self.value)",
      message: 'value is required when operator is replace',
      reason: 'FieldValueRequired',
      fieldPath: '.value',
    }),
  );

/** Values may hold variables, so what they come to is checked when they are used. */
const entries = (maxLength: number, what: string) =>
  z
    .record(z.string(), z.string().max(maxLength))
    .describe(what)
    .meta({ maxProperties: MAX_ENTRIES, ...ownKeys });
const ownKeys = cel({
  rule: `self.all(k, !k.startsWith('${GROUP}/'))`,
  message: `keys of ${GROUP} are set by Spillway itself`,
});

const labelsOverrider = z.object({
  operator: operator(SET),
  value: entries(253, 'Label keys and values. With remove only the keys count.'),
});
const annotationsOverrider = z.object({
  operator: operator(SET),
  value: entries(65_536, 'Annotation keys and values. With remove only the keys count.'),
});

const envOverrider = z.object({
  containerName: someContainer(),
  operator: operator(`For the variable of each name. ${SET}`),
  value: z
    .array(
      z.object({
        name: z.string().min(1).max(256).describe('Name of the environment variable.'),
        value: z.string().max(32_768).exactOptional().describe('Its value, as in a pod.'),
        valueFrom: z.record(z.string(), z.unknown()).exactOptional().meta({
          description: 'Where its value comes from, as in a pod.',
          'x-kubernetes-preserve-unknown-fields': true,
        }),
      }),
    )
    .min(1)
    .max(MAX_ENTRIES)
    .describe('Environment variables. With remove only their names count.'),
});

const resourcesOverrider = z
  .object({
    containerName: someContainer(),
    operator: operator(`For each resource named. ${SET}`),
    requests: quantityMap().exactOptional().describe('By resource name. With remove only the names count.'),
    limits: quantityMap().exactOptional().describe('By resource name. With remove only the names count.'),
  })
  .meta(
    cel({
      rule: 'has(self.requests) || has(self.limits)',
      message: 'requests or limits is required',
      reason: 'FieldValueRequired',
    }),
  );

const initContainersOverrider = z.object({
  operator: operator(`For the init container of each name. ${SET}`),
  position: z
    .enum(['First', 'Last'])
    .default('Last')
    .describe('Where add puts init containers that the pod does not have yet.'),
  value: z
    .array(
      z
        .looseObject({ name: dnsLabel().describe('Name of the init container.') })
        .meta({ 'x-kubernetes-preserve-unknown-fields': true }),
    )
    .min(1)
    .max(8)
    .describe('Init containers, as in a pod. With remove only their names count.'),
});

const imagePullSecretsOverrider = z.object({
  operator: operator(
    'add: appends names that are missing. remove: takes names out. replace: the names are the whole list.',
  ),
  value: z
    .array(z.string().min(1).max(253))
    .max(MAX_ENTRIES)
    .describe(
      'Names of Secrets. Those of the namespace of the pod that may be read are copied to the member; it may have others.',
    ),
});

const tolerationsOverrider = z.object({
  operator: operator(
    'add: appends tolerations, in place of those of the same key, operator, value and effect. ' +
      'remove: takes out tolerations that agree with all that is given. replace: the tolerations are the whole list.',
  ),
  value: z
    .array(
      z.object({
        key: z.string().max(317).exactOptional().describe('Taint key.'),
        operator: z.enum(['Exists', 'Equal']).exactOptional().describe('How the key is compared.'),
        value: z.string().max(253).exactOptional().describe('Taint value.'),
        effect: z
          .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
          .exactOptional()
          .describe('Taint effect. Not given: all.'),
        tolerationSeconds: z
          .int()
          .exactOptional()
          .meta({ description: 'How long NoExecute is tolerated.', unit: 'seconds' }),
      }),
    )
    .max(MAX_ENTRIES)
    .describe('Tolerations, for taints of nodes of the member.'),
});

const nodeSelectorOverrider = z.object({
  operator: operator(SET),
  value: entries(253, 'Labels of nodes of the member. With remove only the keys count.'),
});

const runtimeClassOverrider = z
  .object({
    operator: operator(SET),
    value: z.string().min(1).max(253).exactOptional().describe('Required with add and replace, ignored with remove.'),
  })
  .meta(cel(needsValue()))
  .exactOptional()
  .describe('Runtime class in the member.');

const storageClassOverrider = z
  .object({
    from: z
      .string()
      .max(253)
      .exactOptional()
      .describe('Only claims whose class in the host is this one. Not given: all claims.'),
    operator: operator(SET),
    value: z
      .string()
      .max(253)
      .exactOptional()
      .describe(
        'A class of the member. Required with add and replace, ignored with remove: then it is the default class there.',
      ),
  })
  .meta(cel(needsValue()));

const patchOperation = z
  .object({
    subPath: z.string().max(1024).regex(POINTER_OR_ROOT).describe('JSON Pointer inside the text.'),
    operator: operator('As in a JSON patch (RFC 6902).'),
    value: anyJson('Required with add and replace, ignored with remove.'),
  })
  .meta(VALUE_UNLESS_REMOVED);
const operations = (what: string) => z.array(patchOperation).min(1).max(MAX_ENTRIES).exactOptional().describe(what);

const fieldOverrider = z
  .object({
    fieldPath: pointer().describe(
      'JSON Pointer to a string that holds JSON or YAML, such as /data/app.yaml. In a Secret, values of data are decoded.',
    ),
    json: operations('Changes of the JSON in the string. It is written again without spaces.'),
    yaml: operations('Changes of the YAML in the string. Comments and order stay.'),
  })
  .meta(cel({ rule: 'has(self.json) != has(self.yaml)', message: 'exactly one of json and yaml must be given' }));

const plaintext = z
  .object({
    path: pointer().describe(
      'JSON Pointer into the object. Paths of a workload, such as /spec/template/spec/hostAliases, mean the pod.',
    ),
    operator: operator('As in a JSON patch (RFC 6902): remove and replace need something there, add a parent.'),
    value: anyJson('Required with add and replace, ignored with remove.'),
  })
  .meta({
    ...VALUE_UNLESS_REMOVED,
    ...cel({
      rule:
        "!['/apiVersion', '/kind', '/status', '/spec/nodeName'].exists(p, self.path == p || self.path.startsWith(p + '/')) && " +
        "(!self.path.startsWith('/metadata') || self.path.startsWith('/metadata/labels') || self.path.startsWith('/metadata/annotations'))",
      message:
        'must not lead to what an object is or where it runs: only labels and annotations of metadata, no status',
      fieldPath: '.path',
    }),
  });

export const overridersSchema = z.object({
  imageOverrider: listOf(imageOverrider, 'Parts of images.'),
  commandOverrider: listOf(commandArgsOverrider, 'Command of a container.'),
  argsOverrider: listOf(commandArgsOverrider, 'Arguments of a container.'),
  labelsOverrider: listOf(labelsOverrider, 'Labels of the object in the member: of pods, not of the workload.'),
  annotationsOverrider: listOf(annotationsOverrider, 'Annotations of the object in the member.'),
  envOverrider: listOf(envOverrider, 'Environment variables by name.'),
  resourcesOverrider: listOf(resourcesOverrider, 'Requests and limits.'),
  initContainersOverrider: listOf(initContainersOverrider, 'Whole init containers.'),
  imagePullSecretsOverrider: listOf(imagePullSecretsOverrider, 'Secrets to pull images with.'),
  tolerationsOverrider: listOf(tolerationsOverrider, 'Tolerations.'),
  nodeSelectorOverrider: listOf(nodeSelectorOverrider, 'Node selector.'),
  serviceAccountOverrider: z
    .object({ value: z.string().min(1).max(253).describe('Name of the service account.') })
    .exactOptional()
    .describe(
      'Service account in the member, which must exist there. Its token is not mounted. Only in a ClusterOverridePolicy.',
    ),
  runtimeClassOverrider,
  storageClassOverrider: listOf(storageClassOverrider, 'Storage class of claims and of generic ephemeral volumes.'),
  fieldOverrider: listOf(fieldOverrider, 'Fields of JSON or YAML that a string holds, such as a key of a ConfigMap.'),
  plaintext: listOf(plaintext, 'JSON patch of the whole object.'),
});

export type Overriders = z.output<typeof overridersSchema>;
/** One entry of the list (or the single one) under a name in {@link Overriders}. */
export type Overrider<K extends keyof Overriders> =
  NonNullable<Overriders[K]> extends readonly (infer Item)[] ? Item : NonNullable<Overriders[K]>;
export type OverrideOperator = 'add' | 'remove' | 'replace';
