import { z } from 'zod';
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
  const spec = parsed(schemas.spec, parts.spec);
  if (!spec.success) return { problems: problemsOf(spec.error) };
  const status = parsed(schemas.status, parts.status);
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

type Parsing<T> = { success: true; data: T } | { success: false; error: Pick<z.ZodError, 'issues'> };

/** `schema.safeParse` that never throws: its checks of length compare whatever an object has under the name `length`. */
export function parsed<T>(schema: z.ZodType<T>, value: unknown): Parsing<T> {
  try {
    return schema.safeParse(value);
  } catch {
    return {
      success: false,
      error: new z.ZodError([{ code: 'custom', path: [], message: 'Invalid input', input: value }]),
    };
  }
}

/** What is wrong with a spec, each with its field. */
export function problemsOf({ issues }: Pick<z.ZodError, 'issues'>): string[] {
  return issues.map(({ path, message }) => `${['spec', ...path].join('.')}: ${message}`);
}
