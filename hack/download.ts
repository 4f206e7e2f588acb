import { createHash } from 'node:crypto';
import { chmodSync, createReadStream, createWriteStream, renameSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch } from 'undici';
import type { Say } from './progress.ts';
import type { Tool } from './tools.ts';

/** How long to wait for the first answer: a machine without a route must not wait for nothing. */
const CONNECT_TIMEOUT_MS = 3_000;
const TRANSFER_TIMEOUT_MS = 10 * 60_000;

interface Release {
  url: string;
  /** The expected SHA-256 in hex, asked from the publisher. */
  checksum: () => Promise<string>;
  /** Path of the program inside a .tar.gz; none when the file is the program itself. */
  member?: string;
}

/** Hosts that gave no answer in this run: asked once, not once per program. */
const unreachable = new Map<string, string>();

/** The official binary, checked against the publisher's SHA-256. Linux only: no server binaries exist for others. */
export async function downloadTool(tool: Tool, target: string, say: Say): Promise<'done' | { because: string }> {
  const release = releaseOf(tool);
  if (release === undefined)
    return { because: `its project offers no download for ${process.platform}/${process.arch}` };
  const host = new URL(release.url).host;
  const known = unreachable.get(host);
  if (known !== undefined) return { because: known };
  const archive = `${target}.download`;
  try {
    const expected = await release.checksum();
    say(`downloading ${tool.name} ${tool.version} from ${host}`);
    const body = (await get(release.url, TRANSFER_TIMEOUT_MS)).body;
    if (body === null) throw new Error('empty answer');
    await pipeline(Readable.fromWeb(body), createWriteStream(archive));
    const actual = await sha256Of(archive);
    if (actual !== expected) throw new Error(`checksum of ${release.url} is ${actual}, expected ${expected}`);
    unpack(archive, target, release.member);
    chmodSync(target, 0o755);
    return 'done';
  } catch (error) {
    const because = `download from ${host}: ${reasonOf(error)}`;
    unreachable.set(host, because);
    say(`${tool.name}: ${because}`);
    return { because };
  } finally {
    rmSync(archive, { force: true });
  }
}

function releaseOf(tool: Tool): Release | undefined {
  const arch = new Map([
    ['x64', 'amd64'],
    ['arm64', 'arm64'],
  ]).get(process.arch);
  if (process.platform !== 'linux' || arch === undefined) return undefined;
  switch (tool.name) {
    case 'kube-apiserver':
    case 'kube-controller-manager':
    case 'kube-scheduler':
    case 'kubectl':
    case 'kubelet':
    case 'kube-proxy': {
      const url = `https://dl.k8s.io/release/${tool.version}/bin/linux/${arch}/${tool.name}`;
      return { url, checksum: async () => hexOf(await getText(`${url}.sha256`)) };
    }
    case 'etcd': {
      const folder = `etcd-${tool.version}-linux-${arch}`;
      const base = `https://github.com/etcd-io/etcd/releases/download/${tool.version}`;
      return {
        url: `${base}/${folder}.tar.gz`,
        checksum: async () => hexOf(lineWith(await getText(`${base}/SHA256SUMS`), `${folder}.tar.gz`)),
        member: `${folder}/etcd`,
      };
    }
    case 'kwok': {
      const asset = `kwok-linux-${arch}`;
      const repository = 'kubernetes-sigs/kwok';
      return {
        url: `https://github.com/${repository}/releases/download/${tool.version}/${asset}`,
        checksum: () =>
          digestOfAsset(`https://api.github.com/repos/${repository}/releases/tags/${tool.version}`, asset),
      };
    }
    case 'coredns': {
      const archive = `coredns_${tool.version.slice(1)}_linux_${arch}.tgz`;
      const url = `https://github.com/coredns/coredns/releases/download/${tool.version}/${archive}`;
      return { url, checksum: async () => hexOf(await getText(`${url}.sha256`)), member: 'coredns' };
    }
    case 'agnhost':
    case 'metrics-server':
    case 'helm':
    case 'promtool':
    case 'glua':
    case 'e2e.test':
    case 'ginkgo':
    case 'virtual-kubelet.test':
      break;
  }
  return undefined;
}

/** GitHub publishes the digest of every release file in the release's description. */
async function digestOfAsset(url: string, asset: string): Promise<string> {
  const release = JSON.parse(await getText(url)) as { assets?: { name: string; digest?: string | null }[] };
  const digest = release.assets?.find(({ name }) => name === asset)?.digest ?? '';
  if (!digest.startsWith('sha256:')) throw new Error(`no published checksum for ${asset}`);
  return hexOf(digest.slice('sha256:'.length));
}

async function get(url: string, timeoutMs: number): Promise<Awaited<ReturnType<typeof fetch>>> {
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: 4 * CONNECT_TIMEOUT_MS,
  });
  const response = await fetch(url, { dispatcher, signal: AbortSignal.timeout(timeoutMs) });
  if (!response.ok) throw new Error(`HTTP ${response.status} for ${url}`);
  return response;
}

async function getText(url: string): Promise<string> {
  return (await get(url, 4 * CONNECT_TIMEOUT_MS)).text();
}

function hexOf(text: string): string {
  const hex = text.trim().split(/\s+/)[0] ?? '';
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new Error('the published checksum is not a SHA-256');
  return hex;
}

/** The line of a checksum list that names `file`. */
export function lineWith(list: string, file: string): string {
  return list.split('\n').find((line) => line.trim().split(/\s+\*?/)[1] === file) ?? '';
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

function unpack(archive: string, target: string, member: string | undefined): void {
  if (member === undefined) {
    renameSync(archive, target);
    return;
  }
  const folder = dirname(target);
  const depth = String(member.split('/').length - 1);
  const args = ['-xzf', archive, '-C', folder, '--strip-components', depth, '--no-same-owner', member];
  const untar = spawnSync('tar', args, { encoding: 'utf8' });
  if (untar.status !== 0) throw new Error(`cannot unpack: ${untar.stderr.trim()}`);
  renameSync(join(folder, basename(member)), target);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause.message : '';
  return cause === '' ? error.message : `${error.message} (${cause})`;
}
