import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import type { Resource } from '../kube/resource.ts';
import type { PrinterColumn } from './printer-column.ts';

/** A node of an OpenAPI v3 schema; only what the generator touches is typed. */
export interface SchemaNode {
  type?: string;
  description?: string;
  default?: unknown;
  format?: string;
  pattern?: string;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  required?: string[];
  properties?: Record<string, SchemaNode>;
  additionalProperties?: SchemaNode | boolean;
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  /** Ours, for the reference page; never part of a CRD. */
  unit?: string;
  [extension: `x-kubernetes-${string}`]: unknown;
}

export interface KindDefinition {
  resource: Resource;
  shortNames: string[];
  columns: PrinterColumn[];
  schema: z.ZodType;
}

const INT_OR_STRING = 'x-kubernetes-int-or-string';
const ANY_FIELDS = 'x-kubernetes-preserve-unknown-fields';

/** The schema as written in zod, as OpenAPI with descriptions and units, before it is made structural. */
export function openApiSchema(schema: z.ZodType): SchemaNode {
  return z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input' }) as SchemaNode;
}

/**
 * What Kubernetes calls a structural schema: one type per node (none where any JSON is kept), int-or-string in its one
 * allowed form, no JSON Schema words outside the allowed set.
 */
export function structuralSchema(node: SchemaNode): SchemaNode {
  if (node[INT_OR_STRING] === true) return intOrString(node);
  const { unit: _unit, ...result } = node;
  const value = fullDefault(result);
  if (value === undefined) delete result.default;
  else result.default = value;
  if (result.format === 'date-time') delete result.pattern;
  if (result.type === 'integer') {
    if (result.maximum === Number.MAX_SAFE_INTEGER) delete result.maximum;
    if (result.minimum === Number.MIN_SAFE_INTEGER) delete result.minimum;
    result.format = result.maximum === undefined ? 'int64' : 'int32';
  }
  if (result.properties !== undefined) {
    result.properties = Object.fromEntries(
      Object.entries(result.properties).map(([name, child]) => [name, structuralSchema(child)]),
    );
  }
  if (result[ANY_FIELDS] === true) delete result.additionalProperties;
  if (typeof result.additionalProperties === 'object') {
    result.additionalProperties = structuralSchema(result.additionalProperties);
  }
  if (result.items !== undefined) result.items = structuralSchema(result.items);
  return result;
}

function intOrString(node: SchemaNode): SchemaNode {
  return {
    ...(node.description === undefined ? {} : { description: node.description }),
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    ...(node.pattern === undefined ? {} : { pattern: node.pattern }),
    ...(node.maxLength === undefined ? {} : { maxLength: node.maxLength }),
    [INT_OR_STRING]: true,
  };
}

/**
 * The default as the server needs it: the CEL rules of an object are already run on its default when the CRD is
 * installed, so `{}` is written out with the defaults of the fields. A default that is empty in the end is left out.
 */
function fullDefault(node: SchemaNode): unknown {
  const { default: value, properties } = node;
  if (typeof value !== 'object' || value === null || Object.keys(value).length > 0) return value;
  if (properties === undefined) return undefined;
  const fields = Object.entries(properties).map(([name, child]) => [name, fullDefault(child)] as const);
  const filled = fields.filter(([, inner]) => inner !== undefined);
  return filled.length === 0 ? undefined : Object.fromEntries(filled);
}

/** As far as anybody looks at it again. */
interface CustomResourceDefinition extends KubeObject {
  spec: {
    versions: { name: string; schema: unknown; [field: string]: unknown }[];
    [field: string]: unknown;
  };
}

/** The CustomResourceDefinition (apiextensions.k8s.io/v1) of a kind, with a status subresource and one version. */
export function customResourceDefinition(kind: KindDefinition): CustomResourceDefinition {
  const { resource } = kind;
  const schema = structuralSchema(openApiSchema(kind.schema));
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${resource.plural}.${resource.group}` },
    spec: {
      group: resource.group,
      names: {
        kind: resource.kind,
        listKind: `${resource.kind}List`,
        plural: resource.plural,
        singular: resource.kind.toLowerCase(),
        shortNames: kind.shortNames,
        categories: ['spillway'],
      },
      scope: resource.namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: resource.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns,
          schema: { openAPIV3Schema: withObjectFields(schema) },
        },
      ],
    },
  };
}

function withObjectFields(schema: SchemaNode): SchemaNode {
  return {
    ...schema,
    properties: {
      apiVersion: { type: 'string', description: 'Version of the API that this object is written in.' },
      kind: { type: 'string', description: 'Kind of this object.' },
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      ...schema.properties,
    },
  };
}
