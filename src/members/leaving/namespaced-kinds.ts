import { z } from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';

/** KEP-3352: all groups, versions and kinds in two answers. */
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
/** What is derived from other objects, or tells of such, and goes with them. */
const DERIVED = new Set(['events', 'endpoints', 'endpointslices', 'controllerrevisions']);
/** Computed, and stored nowhere. */
const METRICS = /(?:^|\.)metrics\.k8s\.io$/;

const kinds = z.object({
  items: z
    .array(
      z.object({
        metadata: z.object({ name: z.string().default('') }).default({ name: '' }),
        versions: z
          .array(
            z.object({
              version: z.string(),
              freshness: z.string().default('Current'),
              resources: z
                .array(
                  z.object({
                    resource: z.string(),
                    scope: z.string(),
                    verbs: z.array(z.string()).default([]),
                    responseKind: z.object({ kind: z.string().default('') }).prefault({}),
                  }),
                )
                .default([]),
            }),
          )
          .default([]),
      }),
    )
    .max(2_000),
});

/**
 * Every kind of object that a namespace of the cluster can hold, each in the version that its API server prefers; and the groups of
 * which that is not known, because the server behind them does not answer.
 */
export async function namespacedKinds(
  client: KubeClient,
  signal: AbortSignal,
): Promise<{ kinds: Resource[]; unknown: string[] }> {
  const found = new Map<string, Resource>();
  const unknown: string[] = [];
  for (const path of ['/api', '/apis']) {
    const answer = kinds.parse(await client.request({ path, accept: AGGREGATED, signal }));
    for (const { metadata, versions } of answer.items) {
      for (const { version, freshness, resources } of versions) {
        if (freshness !== 'Current' && !METRICS.test(metadata.name)) unknown.push(metadata.name);
        for (const { resource: plural, scope, verbs, responseKind } of resources) {
          const group = metadata.name;
          const key = group === '' ? plural : `${plural}.${group}`;
          if (scope !== 'Namespaced' || !verbs.includes('list') || found.has(key)) continue;
          if (METRICS.test(group) || DERIVED.has(plural)) continue;
          found.set(key, { group, version, plural, kind: responseKind.kind, namespaced: true });
        }
      }
    }
  }
  return { kinds: [...found.values()], unknown };
}
