import { z } from 'zod';
import { MEMBER_LABEL } from '../api/marks.ts';
import { parseAmounts, type Amounts } from '../kube/amounts.ts';
import { ApiError, isForbidden, isTransient } from '../kube/errors.ts';
import { resourceOf, resourcePath } from '../kube/resource.ts';
import { CliError } from './cli-error.ts';
import type { Viewer } from './viewer.ts';

const NODE_METRICS = resourceOf('metrics.k8s.io/v1beta1', 'NodeMetrics', 'nodes', false);

const answer = z.object({
  items: z
    .array(
      z.object({
        metadata: z.object({ name: z.string() }),
        usage: z.record(z.string(), z.union([z.string().max(64), z.number()])),
      }),
    )
    .max(100_000),
});

/** What virtual nodes use, by name, as the metrics API of the host says; or in words why nobody knows. Throws CliError. */
export async function nodeUsage(host: Viewer): Promise<ReadonlyMap<string, Amounts> | string> {
  try {
    const path = resourcePath(NODE_METRICS);
    const query = { labelSelector: MEMBER_LABEL };
    const raw = await host.ask(
      'list nodes.metrics.k8s.io',
      async (signal) => await host.client.request({ path, query, signal, retry: false }),
    );
    const parsed = answer.safeParse(raw);
    if (!parsed.success) return 'metrics.k8s.io answers with something else than metrics of nodes';
    return new Map(parsed.data.items.map(({ metadata, usage }) => [metadata.name, parseAmounts(usage)]));
  } catch (error) {
    const cause = error instanceof CliError ? error.cause : error;
    if (isForbidden(cause)) return 'you may not list nodes.metrics.k8s.io (docs/reference/cli.md#rights)';
    if (cause instanceof ApiError && cause.code === 404)
      return 'nobody serves metrics.k8s.io in this cluster: install metrics-server';
    if (cause instanceof ApiError && isTransient(cause)) return `metrics.k8s.io does not answer: ${cause.message}`;
    throw error;
  }
}
