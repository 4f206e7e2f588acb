import { isAlias, parseAllDocuments, visit, type Tags } from 'yaml';
import { z } from 'zod';
import { parsed } from '../../api/parse-object.ts';
import { CliError } from '../cli-error.ts';
import { EXIT } from '../exit-code.ts';

/** More documents than these are no manifest that a person simulates. */
const MOST_DOCUMENTS = 500;

const given = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? undefined);
const count = given(z.int().min(0));
const texts = given(z.record(z.string(), z.string()));
const containers = z.array(
  z.looseObject({ name: z.string(), env: given(z.array(z.looseObject({ name: z.string() }))) }),
);
const template = z.looseObject({
  metadata: given(z.looseObject({ labels: texts, annotations: texts })),
  spec: z.looseObject({
    containers,
    initContainers: given(containers),
    volumes: given(z.array(z.looseObject({ name: z.string() }))),
  }),
});
const workload = z.looseObject({
  replicas: count,
  parallelism: count,
  completions: count,
  completionMode: given(z.string()),
  serviceName: given(z.string()),
  ordinals: given(z.looseObject({ start: count })),
  volumeClaimTemplates: given(z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) }))),
  template: template.exactOptional(),
});
const cronJob = z.looseObject({ jobTemplate: z.looseObject({ spec: workload }) });
const schema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string().min(1),
    namespace: given(z.string()),
    labels: texts,
    annotations: texts,
  }),
});

/** Any object of a manifest. */
export type ManifestObject = z.output<typeof schema>;
/** Of workloads what is read here; all else of it is there as it was. */
export type WorkloadSpec = z.output<typeof workload>;
export type PodTemplate = z.output<typeof template>;

/** Throws CliError, which names the field that is wrong. */
export function workloadSpecOf(object: ManifestObject): WorkloadSpec {
  return checked(workload, object['spec'], object, 'spec');
}

/** The spec of the Jobs that a CronJob makes; throws CliError. */
export function jobSpecOf(object: ManifestObject): WorkloadSpec {
  return checked(cronJob, object['spec'], object, 'spec').jobTemplate.spec;
}

/** The objects of a manifest (YAML as kubectl reads it, JSON, Lists too). Throws CliError, which names the field that is wrong. */
export function manifestObjects(text: string): ManifestObject[] {
  const documents = parseAllDocuments(text, { version: '1.1', customTags, prettyErrors: false });
  const all = Array.isArray(documents) ? documents : [];
  if (all.length > MOST_DOCUMENTS) throw unusable(`it has more than ${MOST_DOCUMENTS} documents`);
  return all.flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw unusable(`it is not valid YAML: ${error.message}`);
    visit(document, {
      Node(_, node) {
        // They may stand for more than any memory holds.
        if (isAlias(node)) throw unusable('YAML aliases are not followed here');
      },
    });
    const value: unknown = document.toJS();
    return value === null || value === undefined ? [] : objectsIn(value);
  });
}

/** What kubectl does not know either: times stay text, and so does 8080:80, which YAML 1.1 takes for a number of base 60. */
function customTags(tags: Tags): Tags {
  return tags.filter(
    (tag) =>
      typeof tag === 'string' || (!('format' in tag && tag.format === 'TIME') && !tag.tag.endsWith(':timestamp')),
  );
}

function objectsIn(value: unknown): ManifestObject[] {
  const { kind, items } = (typeof value === 'object' ? (value ?? {}) : {}) as { kind?: unknown; items?: unknown };
  if (typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items)) return items.flatMap(objectsIn);
  return [manifestObject(value)];
}

/** One that is there already; throws CliError. */
export function manifestObject(value: unknown): ManifestObject {
  return checked(schema, value, value, '');
}

function checked<T>(wanted: z.ZodType<T>, value: unknown, whole: unknown, where: string): T {
  const found = parsed(wanted, value);
  if (found.success) return found.data;
  const { path = [], message = '' } = found.error.issues[0] ?? {};
  const { kind, metadata } = (whole ?? {}) as { kind?: unknown; metadata?: { name?: unknown } | null };
  const name = typeof metadata?.name === 'string' ? ` ${metadata.name}` : '';
  const what = typeof kind === 'string' ? `${kind}${name}` : 'a document';
  const field = [where, ...path].filter((part) => part !== '').join('.');
  throw unusable(`${what}: ${field === '' ? '' : `${field}: `}${message}`);
}

export function unusable(reason: string): CliError {
  return new CliError('the manifest cannot be used', { exitCode: EXIT.usage, reason });
}
