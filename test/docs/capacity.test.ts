import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseMemberCluster } from '../../src/api/member-cluster.ts';
import { poolsOf } from '../../src/capacity/pool.ts';
import { elasticGroupsOf } from '../../src/capacity/elastic.ts';
import { fitRequestOf } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import type { KubeObject } from '../../src/kube/object.ts';

const page = readFileSync(new URL('../../docs/concepts/capacity.md', import.meta.url), 'utf8');
const reference = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8');
const fieldsPage = readFileSync(new URL('../../docs/reference/member-cluster.md', import.meta.url), 'utf8');

describe('docs/concepts/capacity.md', () => {
  it('shows a MemberCluster that is valid and offers the nodes it can get', () => {
    const [, text = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const parsed = parseMemberCluster(parse(text) as KubeObject);
    if (!('member' in parsed)) throw new Error(parsed.problems.join());
    const capacity = new MemberCapacity({
      hostId: 'h',
      pools: poolsOf(parsed.member),
      elastic: elasticGroupsOf(parsed.member),
    });
    const containers = [{ name: 'c', resources: { requests: { cpu: '30' } } }];
    const request = fitRequestOf({ metadata: { name: 'p', namespace: 'shop' }, spec: { containers } }, 'east');
    expect(capacity.fits(request)).toEqual({ fits: true, nodes: 20 });
  });

  it('names metrics and fields that there are', () => {
    const metrics = [...page.matchAll(/`(spillway_[a-z_]+)`/g)].map(([, name]) => name);
    expect(metrics.length).toBeGreaterThan(2);
    for (const name of metrics) expect(reference).toContain(`| \`${name ?? ''}\` |`);
    for (const field of ['largestFreeSlot', 'fits', 'elastic', 'leadTimeSeconds']) {
      expect(page).toContain(field);
      expect(fieldsPage).toContain(field);
    }
  });
});
