import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { freePort } from './addresses.ts';
import { ensureBinaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import { extenderSettings } from './extender.ts';
import type { ManagedProcess } from './managed-process.ts';
import { repositoryRoot } from './repository.ts';
import { serviceAccountKubeconfig } from './service-account.ts';
import { SYSTEM_NAMESPACE } from './spillway.ts';
import { until } from './until.ts';

interface Document {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
}

export interface SecondSchedulerOptions {
  /** Where it asks Spillway, which runs with certificates of its own (`SelfManaged`); undefined: it asks nobody. */
  extenderPort?: number;
  /** Pods with this name are its own. Default: as in the manifest. */
  schedulerName?: string;
}

/**
 * Starts another stock kube-scheduler beside the cluster's own, with the rights and the configuration of
 * manifests/scheduler/second-scheduler.yaml; only addresses, files and the election of a leader are this machine's.
 */
export async function startSecondScheduler(
  host: Cluster,
  options: SecondSchedulerOptions = {},
): Promise<ManagedProcess> {
  const text = readFileSync(join(repositoryRoot(), 'manifests/scheduler/second-scheduler.yaml'), 'utf8');
  const documents = parseAllDocuments(text).map((one) => one.toJS() as Document);
  await host.apply(documents.filter(({ kind }) => kind !== 'Deployment'));
  const shipped = documents.find(({ kind }) => kind === 'ConfigMap')?.data?.['scheduler.yaml'] ?? '';
  const { schedulerName = 'spillway-scheduler', extenderPort } = options;
  const file = (suffix: string): string => join(host.dir, `second-${schedulerName}.${suffix}`);
  const kubeconfig = await serviceAccountKubeconfig(host, SYSTEM_NAMESPACE, 'spillway-scheduler');
  writeFileSync(file('kubeconfig'), kubeconfig, { mode: 0o600 });
  if (extenderPort !== undefined) {
    const { ca, cert, key } = await clientSecret(host);
    writeFileSync(file('crt'), cert);
    writeFileSync(file('key'), key, { mode: 0o600 });
    writeFileSync(file('ca.crt'), ca);
  }
  const files = { ca: file('ca.crt'), cert: file('crt'), key: file('key') };
  const { extenders, ...settings } = extenderSettings(parse(shipped), extenderPort ?? 0, files);
  const configuration = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    clientConnection: { kubeconfig: file('kubeconfig'), qps: 1000, burst: 2000 },
    leaderElection: { leaderElect: false },
    ...settings,
    ...(extenderPort === undefined ? {} : { extenders }),
    profiles: [{ schedulerName }],
  };
  writeFileSync(file('yaml'), stringify(configuration));
  const binaries = await ensureBinaries(['kube-scheduler'], { say: host.workspace.say });
  return host.workspace.start({
    name: `${host.name}/${schedulerName}`,
    file: binaries['kube-scheduler'],
    args: [
      `--config=${file('yaml')}`,
      `--authentication-kubeconfig=${file('kubeconfig')}`,
      `--authorization-kubeconfig=${file('kubeconfig')}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${await freePort()}`,
    ],
    logFile: file('log'),
    cwd: host.dir,
  });
}

/** What the kubelet mounts for the Deployment, once Spillway has made it. */
async function clientSecret(host: Cluster): Promise<{ ca: string; cert: string; key: string }> {
  const path = `/api/v1/namespaces/${SYSTEM_NAMESPACE}/secrets/spillway-scheduler-client`;
  const { data } = await until('Spillway has made the certificate for its scheduler', async () => {
    return (await host.api.call('GET', path)) as { data: Record<string, string> };
  });
  const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString('utf8');
  return { ca: text('ca.crt'), cert: text('tls.crt'), key: text('tls.key') };
}
