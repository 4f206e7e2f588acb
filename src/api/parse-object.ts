import type { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';

interface Parsed<Spec, Status> extends KubeObject {
  spec: Spec;
  status?: Status;
}

/**
 * An object as the API server sent it, with every default filled in. The API server checks the same schema, but an object
 * may be older than its CRD. `problems` name the field and what is wrong with it; a status that cannot be read is no
 * problem of the spec and counts as none.
 */
export function parseObject<Spec, Status>(
  raw: KubeObject,
  schemas: { spec: z.ZodType<Spec>; status: z.ZodType<Status> },
): { object: Parsed<Spec, Status> } | { problems: string[] } {
  const parts = raw as { spec?: unknown; status?: unknown };
  const spec = schemas.spec.safeParse(parts.spec);
  if (!spec.success) return { problems: problemsOf(spec.error) };
  const status = schemas.status.safeParse(parts.status);
  const { apiVersion, kind, metadata } = raw;
  return {
    object: {
      ...(apiVersion === undefined ? {} : { apiVersion }),
      ...(kind === undefined ? {} : { kind }),
      metadata,
      spec: spec.data,
      ...(status.success ? { status: status.data } : {}),
    },
  };
}

/** What is wrong with a spec, each with its field. */
export function problemsOf({ issues }: z.ZodError): string[] {
  return issues.map(({ path, message }) => `${['spec', ...path].join('.')}: ${message}`);
}
