import { open, unlink, type FileHandle } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import process from 'node:process';
import type { Command } from 'commander';
import { isJsonObject, ownField } from '../kube/json-equal.ts';
import { PODS, resourcePath } from '../kube/resource.ts';
import { programVersion } from '../version.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { examine } from './doctor.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import {
  clusterFlags,
  outputFlags,
  systemNamespaceFlag,
  seconds,
  type OutputFlags,
  type SystemFlags,
} from './flags.ts';
import { documented, type Format } from './output.ts';
import { readOverview } from './status.ts';
import { allowedPart } from './support-bundle/allowed.ts';
import { archive } from './support-bundle/archive.ts';
import { Contents, indexOf, type BundleIndex } from './support-bundle/contents.ts';
import { harmlessText } from './support-bundle/harmless-text.ts';
import { BundleReader } from './support-bundle/reader.ts';
import { SHOWN_KINDS } from './support-bundle/shown-kinds.ts';
import { table } from './table.ts';
import type { ClusterFlags } from './viewer-access.ts';
import type { Viewer } from './viewer.ts';

interface Flags extends ClusterFlags, OutputFlags, SystemFlags {
  file?: string;
  /** In s. */
  timeout: number;
}

const FORMATS: readonly Format[] = ['table', 'json', 'yaml', 'name'];
const INDEX = 'index.json';
/** Of the log of one container, and of the metrics of one pod, in bytes. */
const MOST_LOG_BYTES = 1 << 20;
const MOST_METRICS_BYTES = 4 << 20;
const MOST_LOG_LINES = 5_000;
/** More pods of Spillway than these have no logs in it. */
const MOST_PODS = 20;

export function addSupportBundle(program: Command, cli: Cli): void {
  const command = program
    .command('support-bundle')
    .summary('one file for whoever helps you: what is there, logs, and what doctor says, without secrets')
    .description(
      'Writes a tar.gz with versions, what status and doctor say, our objects, virtual nodes, our Events, and the Deployments, pods, logs and metrics of Spillway. Reads only, and with your ' +
        'rights: what you may not read is listed in its index.json, and is no failure. Only fields that are known to be harmless get in: no Secrets and ConfigMaps, annotations, variables, ' +
        'commands or arguments, and not what override policies change; from logs and messages all that looks like a secret is taken out. Names of clusters, namespaces and workloads stay, so look into it before you give it away.',
    )
    .option(
      '-f, --file <file>',
      'where to write it (default: spillway-support-TIME.tar.gz here); never over a file that is there',
    )
    .option('--timeout <seconds>', 'how long to read; what is missing then is listed', seconds, 120);
  systemNamespaceFlag(outputFlags(clusterFlags(command), FORMATS)).action(
    async (flags: Flags) => await cli.withHost(flags, async (host) => await supportBundle(cli, host, flags)),
  );
}

async function supportBundle({ terminal }: Cli, host: Viewer, flags: Flags): Promise<ExitCode> {
  const now = terminal.now();
  const stamp = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const path = resolve(flags.file ?? `spillway-support-${stamp}.tar.gz`);
  // Before anything is read: nobody wants to wait for that.
  const file = await created(path);
  let isDone = false;
  try {
    const contents = new Contents();
    const index = await collect(contents, host, flags, { terminal, now });
    const files = [{ path: INDEX, text: `${JSON.stringify(index, undefined, 2)}\n` }, ...contents.files];
    await file.writeFile(await archive(`spillway-support-${stamp}`, files, now));
    terminal.out(told(index, path, flags));
    isDone = true;
    return EXIT.ok;
  } finally {
    await file.close();
    if (!isDone) await unlink(path);
  }
}

interface At {
  readonly terminal: Cli['terminal'];
  readonly now: number;
}

/** Throws CliError where a file is, or none can be. */
async function created(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new CliError(`${path} cannot be written`, {
      exitCode: code === 'EEXIST' ? EXIT.usage : EXIT.failed,
      reason: code === 'EEXIST' ? 'it is there already' : code,
      fix: 'name another --file',
    });
  }
}

async function collect(contents: Contents, host: Viewer, flags: Flags, { terminal, now }: At): Promise<BundleIndex> {
  const { systemNamespace } = flags;
  const deadline = AbortSignal.timeout(flags.timeout * 1_000);
  const reader = new BundleReader(host, terminal, contents, deadline);
  terminal.note('reading versions, status and what doctor says');
  // What does not answer to this one answers to nothing: then there is no bundle.
  const { gitVersion } = await host.ask('get the version', async (signal) => {
    const answer = await host.client.request({ path: '/version', signal });
    return isJsonObject(answer) ? { gitVersion: ownField(answer, 'gitVersion') } : {};
  });
  const version = typeof gitVersion === 'string' ? harmlessText(gitVersion) : null;
  const program = `kubectl-spillway ${programVersion()}`;
  contents.addJson('versions.json', 'versions', {
    program,
    node: process.version,
    platform: process.platform,
    host: version,
  });
  const overview = await reader.attempt(
    'status',
    'list memberclusters',
    async () => await readOverview(host, systemNamespace, now),
  );
  if (overview !== undefined) {
    contents.addJson('status.json', 'status', allowedPart(overview.found, 'all'));
    for (const right of overview.missing) contents.omit('a part of status', `you may not ${right}`);
  }
  const findings = await reader.attempt(
    'doctor',
    'read what it looks at',
    async () => await examine(host, systemNamespace),
  );
  if (findings !== undefined) contents.addJson('doctor.json', 'doctor', allowedPart(findings, 'all'));
  const objects = new Map<string, readonly unknown[]>();
  for (const kind of SHOWN_KINDS) {
    terminal.note(`reading ${kind.what}`);
    objects.set(kind.file, await reader.objects(kind, systemNamespace));
  }
  const pods = (objects.get('spillway/pods.json') ?? []).flatMap((pod) => ownPod(pod));
  for (const pod of pods.slice(0, MOST_PODS)) {
    terminal.note(`reading logs and metrics of ${pod.name}`);
    await readPod(reader, systemNamespace, pod);
  }
  if (pods.length > MOST_PODS)
    contents.omit('logs of further pods', `there are ${pods.length}, and no more than ${MOST_PODS} are read`);
  return indexOf(contents, { created: new Date(now).toISOString(), program, host: version });
}

interface OwnPod {
  readonly name: string;
  readonly containers: { name: string; restarted: boolean }[];
  /** Where metrics are. */
  readonly port: number | undefined;
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** A pod that is part of Spillway: nobody knows what others in that namespace say in their logs. */
function ownPod(pod: unknown): OwnPod[] {
  const at = (value: unknown, ...fields: string[]): unknown =>
    fields.reduce((inner: unknown, field) => (isJsonObject(inner) ? ownField(inner, field) : undefined), value);
  const name = at(pod, 'metadata', 'name');
  const labels = at(pod, 'metadata', 'labels');
  const isOurs = isJsonObject(labels) && ownField(labels, 'app.kubernetes.io/name') === 'spillway';
  if (!isOurs || typeof name !== 'string' || !NAME.test(name)) return [];
  const listIn = (...fields: string[]): unknown[] => {
    const found = at(pod, ...fields);
    return Array.isArray(found) ? found : [];
  };
  const statuses = listIn('status', 'containerStatuses');
  const containers = listIn('spec', 'containers').flatMap((container) => {
    const own = at(container, 'name');
    if (typeof own !== 'string' || !NAME.test(own)) return [];
    const status = statuses.find((one) => at(one, 'name') === own);
    return [{ name: own, restarted: Number(at(status, 'restartCount') ?? 0) > 0 }];
  });
  const isManager = ownField(labels, 'app.kubernetes.io/component') === 'manager';
  const ports = listIn('spec', 'containers').flatMap((container) => at(container, 'ports') ?? []);
  const port = at(
    ports.find((one) => at(one, 'name') === 'http'),
    'containerPort',
  );
  return [{ name, containers, port: isManager && typeof port === 'number' ? port : undefined }];
}

async function readPod(reader: BundleReader, namespace: string, { name, containers, port }: OwnPod): Promise<void> {
  const log = resourcePath(PODS, namespace, name, 'log');
  for (const { name: container, restarted } of containers) {
    for (const previous of restarted ? [false, true] : [false]) {
      // Of what is longer the end counts, and a limit here would cut that off.
      const query = { container, previous, timestamps: true, tailLines: MOST_LOG_LINES };
      const what = `log of ${name}, container ${container}${previous ? ', before its last start' : ''}`;
      const path = `logs/${name}/${container}${previous ? '.previous' : ''}.log`;
      await reader.lines(path, what, `get pods/log in namespace ${namespace}`, { path: log, query }, MOST_LOG_BYTES);
    }
  }
  if (port === undefined) return;
  const path = `${resourcePath(PODS, namespace, `${name}:${port}`, 'proxy')}/metrics`;
  const right = `get pods/proxy in namespace ${namespace}`;
  await reader.lines(`metrics/${name}.txt`, `metrics of ${name}`, right, { path }, MOST_METRICS_BYTES);
}

function told(index: BundleIndex, path: string, { output, headers }: Flags): string {
  if (output === 'name') return `${path}\n`;
  if (output === 'json' || output === 'yaml')
    return documented({ kind: 'SupportBundle', file: path, ...index }, output);
  const files = table(
    index.files,
    [
      { name: 'FILE', text: ({ path: own }) => own },
      { name: 'BYTES', text: ({ bytes }) => bytes },
      { name: 'WHAT', text: ({ what, cut }) => `${what}${cut ? ' (not all of it)' : ''}` },
    ],
    { headers },
  );
  const missing = index.notRead.map(({ what, why }) => `not read: ${what}: ${why}\n`).join('');
  return `${files}${missing}${basename(path)} is written. Names are in it as they are: look into it before you give it away.\n`;
}
