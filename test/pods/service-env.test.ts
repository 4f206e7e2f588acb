import { expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Service } from '../../src/kube/service.ts';
import { serviceEnvFor } from '../../src/pods/service-env.ts';
import { boundPod } from '../fixtures/translation.ts';

const service = (name: string, spec: Service['spec'], namespace = 'shop'): Service => ({
  metadata: { name, namespace },
  ...(spec === undefined ? {} : { spec }),
});
const env = (services: Service[], master?: Service, pod: Pod = boundPod()): Record<string, string> =>
  Object.fromEntries(serviceEnvFor(pod, services, master).map(({ name, value }) => [name, value]));

const kubernetes = service(
  'kubernetes',
  { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
  'default',
);
const KUBERNETES = {
  KUBERNETES_SERVICE_HOST: '10.96.0.1',
  KUBERNETES_SERVICE_PORT: '443',
  KUBERNETES_SERVICE_PORT_HTTPS: '443',
  KUBERNETES_PORT: 'tcp://10.96.0.1:443',
  KUBERNETES_PORT_443_TCP: 'tcp://10.96.0.1:443',
  KUBERNETES_PORT_443_TCP_PROTO: 'tcp',
  KUBERNETES_PORT_443_TCP_PORT: '443',
  KUBERNETES_PORT_443_TCP_ADDR: '10.96.0.1',
};

/** The cases of Kubernetes' own pkg/kubelet/envvars/envvars_test.go. */
test('as kubelet: one port, several ports, odd services, IPv6', () => {
  const services = [
    service('foo-bar', { clusterIP: '1.2.3.4', ports: [{ port: 8080, protocol: 'TCP' }] }),
    service('abc-123', {
      clusterIP: '5.6.7.8',
      ports: [
        { name: 'u-d-p', port: 8081, protocol: 'UDP' },
        { name: 't-c-p', port: 8082, protocol: 'TCP' },
      ],
    }),
    service('q-u-u-x', {
      clusterIP: '9.8.7.6',
      ports: [
        { port: 8083, protocol: 'TCP' },
        { name: '8084', port: 8084, protocol: 'TCP' },
      ],
    }),
    service('svrc-clusterip-none', { clusterIP: 'None', ports: [{ port: 8082 }] }),
    service('svrc-clusterip-empty', { clusterIP: '', ports: [{ port: 8082 }] }),
    service('external', { type: 'ExternalName' }),
    service('super-ipv6', {
      clusterIP: '2001:DB8::',
      ports: [
        { name: 'u-d-p', port: 8084, protocol: 'UDP' },
        { name: 't-c-p', port: 8084 },
      ],
    }),
  ];
  expect(env(services)).toEqual({
    FOO_BAR_SERVICE_HOST: '1.2.3.4',
    FOO_BAR_SERVICE_PORT: '8080',
    FOO_BAR_PORT: 'tcp://1.2.3.4:8080',
    FOO_BAR_PORT_8080_TCP: 'tcp://1.2.3.4:8080',
    FOO_BAR_PORT_8080_TCP_PROTO: 'tcp',
    FOO_BAR_PORT_8080_TCP_PORT: '8080',
    FOO_BAR_PORT_8080_TCP_ADDR: '1.2.3.4',
    ABC_123_SERVICE_HOST: '5.6.7.8',
    ABC_123_SERVICE_PORT: '8081',
    ABC_123_SERVICE_PORT_U_D_P: '8081',
    ABC_123_SERVICE_PORT_T_C_P: '8082',
    ABC_123_PORT: 'udp://5.6.7.8:8081',
    ABC_123_PORT_8081_UDP: 'udp://5.6.7.8:8081',
    ABC_123_PORT_8081_UDP_PROTO: 'udp',
    ABC_123_PORT_8081_UDP_PORT: '8081',
    ABC_123_PORT_8081_UDP_ADDR: '5.6.7.8',
    ABC_123_PORT_8082_TCP: 'tcp://5.6.7.8:8082',
    ABC_123_PORT_8082_TCP_PROTO: 'tcp',
    ABC_123_PORT_8082_TCP_PORT: '8082',
    ABC_123_PORT_8082_TCP_ADDR: '5.6.7.8',
    Q_U_U_X_SERVICE_HOST: '9.8.7.6',
    Q_U_U_X_SERVICE_PORT: '8083',
    Q_U_U_X_SERVICE_PORT_8084: '8084',
    Q_U_U_X_PORT: 'tcp://9.8.7.6:8083',
    Q_U_U_X_PORT_8083_TCP: 'tcp://9.8.7.6:8083',
    Q_U_U_X_PORT_8083_TCP_PROTO: 'tcp',
    Q_U_U_X_PORT_8083_TCP_PORT: '8083',
    Q_U_U_X_PORT_8083_TCP_ADDR: '9.8.7.6',
    Q_U_U_X_PORT_8084_TCP: 'tcp://9.8.7.6:8084',
    Q_U_U_X_PORT_8084_TCP_PROTO: 'tcp',
    Q_U_U_X_PORT_8084_TCP_PORT: '8084',
    Q_U_U_X_PORT_8084_TCP_ADDR: '9.8.7.6',
    SUPER_IPV6_SERVICE_HOST: '2001:DB8::',
    SUPER_IPV6_SERVICE_PORT: '8084',
    SUPER_IPV6_SERVICE_PORT_U_D_P: '8084',
    SUPER_IPV6_SERVICE_PORT_T_C_P: '8084',
    SUPER_IPV6_PORT: 'udp://[2001:DB8::]:8084',
    SUPER_IPV6_PORT_8084_UDP: 'udp://[2001:DB8::]:8084',
    SUPER_IPV6_PORT_8084_UDP_PROTO: 'udp',
    SUPER_IPV6_PORT_8084_UDP_PORT: '8084',
    SUPER_IPV6_PORT_8084_UDP_ADDR: '2001:DB8::',
    SUPER_IPV6_PORT_8084_TCP: 'tcp://[2001:DB8::]:8084',
    SUPER_IPV6_PORT_8084_TCP_PROTO: 'tcp',
    SUPER_IPV6_PORT_8084_TCP_PORT: '8084',
    SUPER_IPV6_PORT_8084_TCP_ADDR: '2001:DB8::',
  });
});

test('kubernetes is always there, the others unless links are off', () => {
  const db = service('db', { clusterIP: '10.96.0.9', ports: [{ port: 5432 }] });
  expect(env([db], kubernetes, boundPod({ enableServiceLinks: false }))).toEqual(KUBERNETES);
  expect(env([db], kubernetes)).toMatchObject({ ...KUBERNETES, DB_SERVICE_HOST: '10.96.0.9' });
  expect(env([kubernetes], kubernetes)).toEqual(KUBERNETES);
});

test("a namespace's own service called kubernetes hides the master", () => {
  const own = service('kubernetes', { clusterIP: '10.96.0.77', ports: [{ port: 80 }] });
  expect(env([own], kubernetes)['KUBERNETES_SERVICE_HOST']).toBe('10.96.0.77');
  const headless = service('kubernetes', { clusterIP: 'None', ports: [{ port: 80 }] });
  expect(env([headless], kubernetes)['KUBERNETES_SERVICE_HOST']).toBe('10.96.0.1');
});

test('the order does not depend on the order of the services', () => {
  const a = service('a', { clusterIP: '10.96.0.2', ports: [{ port: 1 }] });
  const b = service('b', { clusterIP: '10.96.0.3', ports: [{ port: 1 }] });
  expect(serviceEnvFor(boundPod(), [a, b])).toEqual(serviceEnvFor(boundPod(), [b, a]));
});
