import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { repositoryRoot } from './repository.ts';

interface SchedulerConfiguration {
  extenders: Record<string, unknown>[];
}

/** The files that a scheduler shows to the extender and checks it with. */
export interface ExtenderFiles {
  ca: string;
  cert: string;
  key: string;
}

/**
 * What a configuration of kube-scheduler from manifests/scheduler/ says, for an extender on this machine: only address and
 * files are put in.
 */
export function extenderSettings(
  shipped: unknown,
  port: number,
  files: ExtenderFiles,
  httpTimeout?: string,
): Record<string, unknown> {
  const configuration = shipped as SchedulerConfiguration & Record<string, unknown>;
  const { apiVersion: _a, kind: _k, clientConnection: _c, leaderElection: _l, ...settings } = configuration;
  return {
    ...settings,
    extenders: configuration.extenders.map((extender) => ({
      ...extender,
      urlPrefix: `https://127.0.0.1:${port}`,
      tlsConfig: { caFile: files.ca, certFile: files.cert, keyFile: files.key },
      ...(httpTimeout === undefined ? {} : { httpTimeout }),
    })),
  };
}

/** The shipped configuration of the cluster's own scheduler. */
export function ownSchedulerConfiguration(): unknown {
  return parse(readFileSync(join(repositoryRoot(), 'manifests/scheduler/kube-scheduler.yaml'), 'utf8'));
}

/** A cluster that issues certificates, and its folder. */
interface Issuer {
  readonly dir: string;
  issueServing(name: string, hosts: string[]): Promise<{ cert: string; key: string }>;
}

/**
 * Writes a configuration for `spillway manager` whose extender listens on `port`, with a certificate of the host: its own scheduler
 * is told whom to trust before Spillway runs. `SelfManaged`: with the one that Spillway makes by itself.
 *
 * @param more further parts of the configuration.
 */
export async function writeExtenderConfig(
  host: Issuer,
  name: string,
  port: number,
  certificates: 'Files' | 'SelfManaged' = 'Files',
  more: object = {},
): Promise<string> {
  const file = (suffix: string): string => join(host.dir, `${name}-extender.${suffix}`);
  const names = ['127.0.0.1', 'localhost'];
  let servingCertificate: object = { mode: 'SelfManaged' };
  if (certificates === 'Files') {
    const serving = await host.issueServing('spillway-scheduler', names);
    writeFileSync(file('crt'), serving.cert);
    writeFileSync(file('key'), serving.key, { mode: 0o600 });
    servingCertificate = { mode: 'Files', certFile: file('crt'), keyFile: file('key') };
  }
  const configuration = { ...more, scheduler: { bindAddress: '127.0.0.1', port, names, servingCertificate } };
  writeFileSync(file('yaml'), stringify(configuration));
  return file('yaml');
}
