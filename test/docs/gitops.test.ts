import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { KINDS } from '../../src/api/kinds.ts';

/** What docs/guides/gitops.md tells Argo CD speaks about things that are there. */
const guide = readFileSync('docs/guides/gitops.md', 'utf8');
const blocks = [...guide.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => parse(text) as unknown);

function blockWith(key: string): unknown {
  const found = blocks.find((block) => typeof block === 'object' && block !== null && key in block);
  if (found === undefined) throw new Error(`the guide has no block with ${key}`);
  return found;
}

describe('the guide for GitOps', () => {
  it('has health checks for kinds that are there', () => {
    const { data } = blockWith('data') as { data: Record<string, string> };
    const kinds = Object.keys(data).map((key) => /^resource\.customizations\.health\.spillway\.dev_(\w+)$/.exec(key)?.[1]);
    expect(kinds.length).toBeGreaterThan(1);
    expect(KINDS.map(({ resource }) => resource.kind)).toEqual(expect.arrayContaining(kinds));
  });

  it('has an Application with values that the chart has, in the namespace that it is for', () => {
    const { metadata, spec } = blockWith('spec') as {
      metadata: { annotations: Record<string, string> };
      spec: {
        source: { path: string; helm: { valuesObject: Record<string, unknown> } };
        destination: { namespace: string };
        syncPolicy: { syncOptions: string[] };
      };
    };
    const values = parse(readFileSync('deploy/helm/spillway/values.yaml', 'utf8')) as Record<string, unknown>;
    expect(Object.keys(values)).toEqual(expect.arrayContaining(Object.keys(spec.source.helm.valuesObject)));
    expect(spec.source.path).toMatch(/(^|\/)deploy\/helm\/spillway$/);
    expect(spec.destination.namespace).toBe('spillway-system');
    expect(metadata.annotations).toEqual({ 'argocd.argoproj.io/compare-options': 'ServerSideDiff=true' });
    expect(spec.syncPolicy.syncOptions).toContain('ServerSideApply=true');
  });
});
