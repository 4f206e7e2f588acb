import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { cacheFolder } from './binaries.ts';
import { cgroupProblem } from './cgroup.ts';
import { run } from './command.ts';
import { sayNothing, type Say } from './progress.ts';

/** Programs that a machine with containers needs, and the Debian package of each. */
const NEEDED: readonly { program: string; package: string }[] = [
  { program: 'containerd', package: 'containerd' },
  { program: 'ctr', package: 'containerd' },
  { program: 'runc', package: 'runc' },
  { program: 'ip', package: 'iproute2' },
  { program: 'nsenter', package: 'util-linux' },
  { program: 'unshare', package: 'util-linux' },
  { program: 'mount', package: 'mount' },
  { program: 'nft', package: 'nftables' },
];

const CNI_FOLDERS = ['/usr/lib/cni', '/opt/cni/bin'];

export function findProgram(name: string): string | undefined {
  // Root's PATH does not always have the sbin folders.
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** The folder with the bridge, host-local, loopback and portmap plugins. */
export function cniFolder(): string | undefined {
  return CNI_FOLDERS.find((folder) =>
    ['bridge', 'host-local', 'loopback', 'portmap'].every((one) => existsSync(join(folder, one))),
  );
}

function missingPackages(): string[] {
  const missing = NEEDED.filter(({ program }) => findProgram(program) === undefined).map((one) => one.package);
  if (cniFolder() === undefined) missing.push('containernetworking-plugins');
  return [...new Set(missing)];
}

export type CanRun = { ok: true } | { ok: false; reason: string };

/** Whether real kubelets can run on this machine, and if not, why, in words for its owner. Changes nothing. */
export async function canRunKubelets(): Promise<CanRun> {
  const no = (reason: string): CanRun => ({ ok: false, reason });
  if (process.platform !== 'linux') return no('real kubelets need Linux');
  if (process.getuid?.() !== 0) return no('real kubelets need root');
  const problem = cgroupProblem();
  if (problem !== undefined) return no(problem);
  if (!existsSync('/dev/kmsg')) return no('kubelets read /dev/kmsg, which is not there');
  const missing = missingPackages();
  if (missing.length > 0 && findProgram('apt-get') === undefined) {
    return no(`${missing.join(', ')} not installed, and apt-get is not there to install it`);
  }
  try {
    await run('unshare', ['--mount', '--net', '--pid', '--uts', '--ipc', '--fork', 'true'], { timeoutMs: 10_000 });
  } catch (error) {
    return no(`new namespaces are not allowed here (${error instanceof Error ? error.message : String(error)})`);
  }
  return { ok: true };
}

/** Installs the Debian packages that are missing. */
export async function installKubeletPackages(say: Say = sayNothing): Promise<void> {
  const missing = missingPackages();
  if (missing.length === 0) return;
  say(`installing Debian packages: ${missing.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['-q', 'update'], { env, timeoutMs: 5 * 60_000 });
  const args = ['-q', 'install', '-y', '--no-install-recommends', ...missing];
  await run('apt-get', args, { env, timeoutMs: 10 * 60_000 });
  const left = missingPackages();
  if (left.length > 0) throw new Error(`still missing after apt-get install: ${left.join(', ')}`);
}

/** A static busybox: the system's, or Debian's package unpacked into the cache (it would replace a dynamic one). */
export async function busyboxPath(say: Say = sayNothing): Promise<string> {
  const system = findProgram('busybox');
  if (system !== undefined && isStatic(readFileSync(system))) return system;
  const folder = join(dirname(cacheFolder()), 'busybox');
  const unpacked = (): string | undefined =>
    ['bin/busybox', 'usr/bin/busybox'].map((path) => join(folder, path)).find((path) => existsSync(path));
  const cached = unpacked();
  if (cached !== undefined) return cached;
  if (findProgram('apt-get') === undefined) throw new Error('no static busybox here, and no apt-get to get one');
  say('getting the Debian package busybox-static');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await run('apt-get', ['-q', 'update'], { timeoutMs: 5 * 60_000 });
  await run('apt-get', ['-q', 'download', 'busybox-static'], { cwd: folder, timeoutMs: 5 * 60_000 });
  const archive = readdirSync(folder).find((name) => name.endsWith('.deb'));
  if (archive === undefined) throw new Error('apt-get download busybox-static left no package');
  await run('dpkg-deb', ['-x', join(folder, archive), folder]);
  const path = unpacked();
  if (path === undefined) throw new Error('the package busybox-static holds no busybox');
  return path;
}

/** Whether an ELF program needs no dynamic loader (it has no PT_INTERP header). 64-bit little-endian only. */
export function isStatic(elf: Buffer): boolean {
  if (elf.length < 64 || elf.readUInt32BE(0) !== 0x7f454c46 || elf[4] !== 2 || elf[5] !== 1) return false;
  const offset = Number(elf.readBigUInt64LE(32));
  const size = elf.readUInt16LE(54);
  const count = elf.readUInt16LE(56);
  for (let index = 0; index < count; index++) {
    if (elf.readUInt32LE(offset + index * size) === 3) return false;
  }
  return true;
}
