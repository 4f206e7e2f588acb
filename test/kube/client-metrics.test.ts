import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { ClientMetrics, resourceIn } from '../../src/kube/client-metrics.ts';

describe('client metrics', () => {
  it.each([
    ['/api/v1/namespaces/a/pods/x', 'pods'],
    ['/api/v1/namespaces/a/pods', 'pods'],
    ['/api/v1/pods', 'pods'],
    ['/api/v1/namespaces/a/pods/x/status', 'pods/status'],
    ['/api/v1/namespaces', 'namespaces'],
    ['/api/v1/namespaces/a', 'namespaces'],
    ['/api/v1/namespaces/a/status', 'namespaces/status'],
    ['/api/v1/namespaces/a/finalize', 'namespaces/finalize'],
    ['/api/v1/nodes/n/status', 'nodes/status'],
    ['/apis/coordination.k8s.io/v1/namespaces/a/leases/l', 'leases'],
    ['/apis/apps/v1/deployments', 'deployments'],
    ['/api/v1', ''],
    ['/apis/apps/v1', ''],
    ['/version', ''],
    ['/readyz', ''],
  ])('file %s under %j', (path, resource) => {
    expect(resourceIn(path)).toBe(resource);
  });

  it('count requests by cluster, verb, resource and code, and forget a cluster that is gone', async () => {
    const registry = new Registry();
    const metrics = new ClientMetrics(registry);
    const sample = { method: 'GET', path: '/api/v1/namespaces/a/pods/x', code: '200', seconds: 0.01 };
    metrics.observe({ ...sample, cluster: 'one' });
    metrics.observe({ ...sample, cluster: 'one' });
    metrics.observe({ ...sample, cluster: 'two', code: 'refused' });
    expect(await registry.metrics()).toContain(
      'kube_client_requests_total{cluster="one",verb="GET",resource="pods",code="200"} 2',
    );
    metrics.forget('one');
    const left = await registry.metrics();
    expect(left).not.toContain('cluster="one"');
    expect(left).toContain('cluster="two",verb="GET",resource="pods",code="refused"} 1');
  });
});
