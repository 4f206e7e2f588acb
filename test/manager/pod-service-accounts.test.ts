import { describe, expect, test } from 'vitest';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Service } from '../../src/kube/service.ts';
import { podServiceAccounts } from '../../src/manager/pod-service-accounts.ts';
import { serviceEnvInMode } from '../../src/pods/service-env.ts';
import { boundPod } from '../fixtures/translation.ts';

const member = {
  metadata: { name: 'east' },
  spec: { serviceAccount: { mode: 'None', allowed: ['Member'] } },
} as unknown as MemberCluster;

interface Known {
  unknown?: { problem: string | undefined };
  label?: string;
}

function modeOf(hostPod: Pod, { unknown, label }: Known = {}): unknown {
  return podServiceAccounts({
    modes: { unknown: () => unknown, labelOf: (namespace) => (namespace === 'shop' ? label : undefined) },
    tokens: { require: () => ({ ready: true }) },
    member: () => member,
  }).modeOf(hostPod);
}

describe('the mode of a pod', () => {
  test('is not decided before the labels of namespaces are known', () => {
    expect(modeOf(boundPod(), { unknown: { problem: undefined } })).toMatchObject({
      wait: expect.any(String) as string,
    });
    expect(modeOf(boundPod(), { unknown: { problem: 'namespaces is forbidden' } })).toEqual({
      hold: {
        reason: 'NamespacesNotRead',
        message: expect.stringContaining('namespaces is forbidden') as string,
      },
    });
  });

  test('comes from pod, namespace and member', () => {
    expect(modeOf(boundPod())).toEqual({ mode: 'None' });
    expect(modeOf(boundPod(), { label: 'Member' })).toEqual({ mode: 'Member' });
    const annotations = { 'spillway.dev/service-account-mode': 'None' };
    expect(modeOf(boundPod({}, { annotations }), { label: 'Member' })).toEqual({ mode: 'None' });
    expect(modeOf(boundPod(), { label: 'Host' })).toMatchObject({ hold: { reason: 'ServiceAccountModeNotAllowed' } });
  });
});

describe('where the API server is', () => {
  const service = (name: string, namespace: string, clusterIP: string): Service => ({
    metadata: { name, namespace },
    spec: { clusterIP, ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
  });
  const master = service('kubernetes', 'default', '10.96.0.1');
  const services = [master, service('web', 'default', '10.96.0.9')];
  const env = (mode: 'None' | 'Member' | 'Host'): Record<string, string> => {
    const list = serviceEnvInMode(boundPod(), mode, services, master, { host: 'api.example.com', port: 6443 });
    return Object.fromEntries(list.map(({ name, value }) => [name, value]));
  };

  test('None: in the host, as on any node', () => {
    expect(env('None')).toMatchObject({ KUBERNETES_SERVICE_HOST: '10.96.0.1', WEB_SERVICE_HOST: '10.96.0.9' });
  });

  test('Host: where the member reaches it', () => {
    expect(env('Host')).toMatchObject({
      KUBERNETES_SERVICE_HOST: 'api.example.com',
      KUBERNETES_SERVICE_PORT: '6443',
      KUBERNETES_SERVICE_PORT_HTTPS: '6443',
      KUBERNETES_PORT: 'tcp://api.example.com:6443',
      WEB_SERVICE_HOST: '10.96.0.9',
    });
  });

  test("Member: the kubelet there knows its own, so the host's is left out", () => {
    const names = Object.keys(env('Member'));
    expect(names.filter((name) => name.startsWith('KUBERNETES'))).toEqual([]);
    expect(names).toContain('WEB_SERVICE_HOST');
  });
});
