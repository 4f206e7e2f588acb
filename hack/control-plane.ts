import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { nonLoopbackAddress } from './addresses.ts';
import {
  createAuthority,
  createTokenKeys,
  issueClient,
  issueServing,
  kubeconfigYaml,
  type Authority,
  type KeyPair,
} from './pki.ts';

/** User of the API server's client certificate towards kubelets; bound to system:kubelet-api-admin. */
export const KUBELET_CLIENT_USER = 'kube-apiserver-kubelet-client';

/** Flags by name without dashes; a later one replaces an earlier or default one of the same name. */
export type Flags = Record<string, string>;

export interface ControlPlaneFiles {
  dir: string;
  server: string;
  authority: Authority;
  admin: KeyPair;
  /** Path of a file in the cluster's pki folder. */
  pki: (file: string) => string;
}

/** First address of a service range: the cluster IP of `kubernetes.default`. */
export function firstServiceAddress(cidr: string): string {
  const [a, b, c, d] = (cidr.split('/')[0] ?? '').split('.').map(Number);
  if (a === undefined || b === undefined || c === undefined || d === undefined) {
    throw new Error(`not an IPv4 range: ${cidr}`);
  }
  return `${a}.${b}.${c}.${d + 1}`;
}

/** Certificates, keys and kubeconfigs of one cluster, all below `dir`. */
export async function writeControlPlaneFiles(
  dir: string,
  name: string,
  server: string,
  bindAddress: string,
  serviceCidr: string,
): Promise<ControlPlaneFiles> {
  const pkiDir = join(dir, 'pki');
  mkdirSync(pkiDir, { recursive: true });
  const pki = (file: string): string => join(pkiDir, file);
  const write = (file: string, text: string): void => writeFileSync(file, text, { mode: 0o600 });
  const writePair = (file: string, pair: KeyPair): void => {
    write(pki(`${file}.crt`), pair.cert);
    write(pki(`${file}.key`), pair.key);
  };

  const [authority, frontProxy] = await Promise.all([createAuthority(`${name}-ca`), createAuthority('front-proxy-ca')]);
  writePair('ca', authority);
  writePair('front-proxy-ca', frontProxy);
  const hosts = [
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
    'localhost',
    ...new Set(['127.0.0.1', bindAddress, nonLoopbackAddress(), firstServiceAddress(serviceCidr)]),
  ];
  writePair('apiserver', await issueServing(authority, 'kube-apiserver', hosts));
  writePair('kubelet-client', await issueClient(authority, KUBELET_CLIENT_USER));
  writePair('front-proxy-client', await issueClient(frontProxy, 'front-proxy'));
  const tokens = createTokenKeys();
  write(pki('sa.pub'), tokens.publicKey);
  write(pki('sa.key'), tokens.privateKey);

  const admin = await issueClient(authority, 'admin', ['system:masters']);
  const clients: [file: string, user: string, pair: KeyPair][] = [
    ['admin', 'admin', admin],
    ...(await Promise.all(
      ['kube-controller-manager', 'kube-scheduler'].map(async (component): Promise<[string, string, KeyPair]> => [
        component,
        `system:${component}`,
        await issueClient(authority, `system:${component}`),
      ]),
    )),
  ];
  for (const [file, user, client] of clients) {
    write(join(dir, `${file}.kubeconfig`), kubeconfigYaml({ server, ca: authority.cert, user, client }));
    writePair(file, client);
  }
  return { dir, server, authority, admin, pki };
}

/** Those of another cluster, for one at `server`: whoever is let in by the one, is by the other. Kubeconfigs are below `dir`. */
export function shareControlPlaneFiles(other: ControlPlaneFiles, dir: string, server: string): ControlPlaneFiles {
  const read = (file: string): string => readFileSync(other.pki(file), 'utf8');
  for (const file of ['admin', 'kube-controller-manager', 'kube-scheduler']) {
    const client = { cert: read(`${file}.crt`), key: read(`${file}.key`) };
    const text = kubeconfigYaml({ server, ca: other.authority.cert, user: file, client });
    writeFileSync(join(dir, `${file}.kubeconfig`), text, { mode: 0o600 });
  }
  return { ...other, dir, server };
}

export function etcdFlags(name: string, dir: string, clientPort: number, peerPort: number): Flags {
  const client = `http://127.0.0.1:${clientPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  return {
    name,
    'data-dir': join(dir, 'etcd'),
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `${name}=${peer}`,
    // The data live as long as the test; a power cut may have them.
    'unsafe-no-fsync': 'true',
    'quota-backend-bytes': String(4 * 1024 ** 3),
    'log-level': 'warn',
  };
}

export interface ApiServerSettings {
  files: ControlPlaneFiles;
  etcdPort: number;
  bindAddress: string;
  port: number;
  serviceCidr: string;
  verifyKubelets: boolean;
  auditLog: string | undefined;
}

export function apiServerFlags(settings: ApiServerSettings): Flags {
  const { pki, dir } = settings.files;
  const flags: Flags = {
    'etcd-servers': `http://127.0.0.1:${settings.etcdPort}`,
    'bind-address': settings.bindAddress,
    'secure-port': String(settings.port),
    'advertise-address': settings.bindAddress.startsWith('127.') ? nonLoopbackAddress() : settings.bindAddress,
    // Endpoints refuse loopback addresses, and nothing here resolves the kubernetes Service.
    'endpoint-reconciler-type': settings.bindAddress.startsWith('127.') ? 'none' : 'lease',
    'tls-cert-file': pki('apiserver.crt'),
    'tls-private-key-file': pki('apiserver.key'),
    'client-ca-file': pki('ca.crt'),
    'service-account-issuer': 'https://kubernetes.default.svc',
    'service-account-key-file': pki('sa.pub'),
    'service-account-signing-key-file': pki('sa.key'),
    'service-cluster-ip-range': settings.serviceCidr,
    'authorization-mode': 'Node,RBAC',
    'enable-admission-plugins': 'NodeRestriction',
    'allow-privileged': 'true',
    'kubelet-client-certificate': pki('kubelet-client.crt'),
    'kubelet-client-key': pki('kubelet-client.key'),
    'kubelet-preferred-address-types': 'InternalIP',
    'requestheader-client-ca-file': pki('front-proxy-ca.crt'),
    'requestheader-allowed-names': 'front-proxy',
    'requestheader-username-headers': 'X-Remote-User',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'proxy-client-cert-file': pki('front-proxy-client.crt'),
    'proxy-client-key-file': pki('front-proxy-client.key'),
    'enable-aggregator-routing': 'true',
    profiling: 'false',
    'event-ttl': '10m',
  };
  if (settings.verifyKubelets) flags['kubelet-certificate-authority'] = pki('ca.crt');
  if (settings.auditLog !== undefined) {
    const policy = join(dir, 'audit-policy.yaml');
    const stages = ['RequestReceived', 'ResponseStarted'];
    writeFileSync(
      policy,
      stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: stages, rules: [{ level: 'Metadata' }] }),
    );
    flags['audit-policy-file'] = policy;
    flags['audit-log-path'] = settings.auditLog;
    // In megabytes: never rotated within a test.
    flags['audit-log-maxsize'] = '4000';
  }
  return flags;
}

/** Autoscaling in seconds instead of minutes: pods that are never still warming up count as soon as they are measured. */
export const QUICK_AUTOSCALING: Flags = {
  'horizontal-pod-autoscaler-sync-period': '1s',
  'horizontal-pod-autoscaler-downscale-stabilization': '5s',
  'horizontal-pod-autoscaler-cpu-initialization-period': '1s',
  'horizontal-pod-autoscaler-initial-readiness-delay': '1s',
};

/** Node failures and autoscaling in seconds instead of minutes, for tests that wait for them. */
export const FAST_CONTROLLERS: Flags = {
  'node-monitor-period': '1s',
  'node-monitor-grace-period': '5s',
  'node-eviction-rate': '100',
  ...QUICK_AUTOSCALING,
};

/**
 * With `SPILLWAY_SIGNED_FOR=10m` in the environment every cluster signs certificates for so long only: `make test` then
 * shows that whatever the tests do, renewals do not disturb it.
 */
function signedFor(): Flags {
  const life = process.env['SPILLWAY_SIGNED_FOR'];
  return life === undefined || life === '' ? {} : { 'cluster-signing-duration': life };
}

export function controllerManagerFlags(files: ControlPlaneFiles, port: number): Flags {
  const kubeconfig = join(files.dir, 'kube-controller-manager.kubeconfig');
  return {
    ...signedFor(),
    kubeconfig,
    'authentication-kubeconfig': kubeconfig,
    'authorization-kubeconfig': kubeconfig,
    'use-service-account-credentials': 'true',
    'leader-elect': 'false',
    'service-account-private-key-file': files.pki('sa.key'),
    'root-ca-file': files.pki('ca.crt'),
    'cluster-signing-cert-file': files.pki('ca.crt'),
    'cluster-signing-key-file': files.pki('ca.key'),
    'bind-address': '127.0.0.1',
    'secure-port': String(port),
    'kube-api-qps': '1000',
    'kube-api-burst': '2000',
  };
}

/** Writes the scheduler's configuration: `extra` holds further top-level fields (profiles, extenders, ...). */
export function schedulerFlags(files: ControlPlaneFiles, port: number, extra: Record<string, unknown>): Flags {
  const kubeconfig = join(files.dir, 'kube-scheduler.kubeconfig');
  const config = join(files.dir, 'scheduler.yaml');
  writeFileSync(
    config,
    stringify({
      apiVersion: 'kubescheduler.config.k8s.io/v1',
      kind: 'KubeSchedulerConfiguration',
      clientConnection: { kubeconfig, qps: 1000, burst: 2000 },
      leaderElection: { leaderElect: false },
      ...extra,
    }),
  );
  return {
    config,
    'authentication-kubeconfig': kubeconfig,
    'authorization-kubeconfig': kubeconfig,
    'bind-address': '127.0.0.1',
    'secure-port': String(port),
  };
}

export function toArguments(...layers: (Flags | undefined)[]): string[] {
  const merged: Flags = Object.assign({}, ...layers.filter((layer) => layer !== undefined));
  return Object.entries(merged).map(([name, value]) => `--${name}=${value}`);
}
