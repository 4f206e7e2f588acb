import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cacheFolder } from '../binaries.ts';
import { run } from '../command.ts';
import { withFileLock } from '../file-lock.ts';
import type { Say } from '../progress.ts';
import { busyboxPath } from '../system-packages.ts';

const MINUTES = 60_000;

/**
 * A busybox as its authors release it, as the suite's own image has it. Debian's differs in what the suite looks at: a
 * patch makes its shell drop variables whose names have a dash or a dot. Built once from the source that Debian
 * distributes, without Debian's patches; where that is not possible it is Debian's, and `why` says so.
 */
export async function plainBusybox(say: Say): Promise<{ path: string; why?: string }> {
  const folder = join(dirname(cacheFolder()), 'busybox-plain');
  const path = join(folder, 'busybox');
  mkdirSync(folder, { recursive: true });
  try {
    await withFileLock(`${path}.lock`, async () => {
      if (!existsSync(path)) await build(path, say);
    });
    return { path };
  } catch (error) {
    const why = `busybox is Debian's, because the plain one could not be built: ${error instanceof Error ? error.message : String(error)}`;
    say(why);
    return { path: await busyboxPath(say), why };
  }
}

async function build(path: string, say: Say): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'busybox-'));
  try {
    say('building busybox from source (a minute or two; kept for later runs)');
    const source = await download(dir);
    await run('tar', ['-xf', source, '--strip-components=1'], { cwd: dir });
    const make = (...args: string[]): Promise<string> =>
      run('nice', ['-n', '10', 'make', '-s', ...args], { cwd: dir, timeoutMs: 20 * MINUTES });
    await make('defconfig');
    const config = join(dir, '.config');
    const settings = readFileSync(config, 'utf8').replace('# CONFIG_STATIC is not set', 'CONFIG_STATIC=y');
    writeFileSync(config, settings);
    await make(`-j${availableParallelism()}`);
    copyFileSync(join(dir, 'busybox'), `${path}.partial`);
    chmodSync(`${path}.partial`, 0o755);
    await run('mv', [`${path}.partial`, path]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The release archive out of Debian's source package, with a package list of its own: the system's stays as it is. */
async function download(dir: string): Promise<string> {
  const release = readFileSync('/etc/os-release', 'utf8');
  const codename = /^VERSION_CODENAME=(\S+)/m.exec(release)?.[1] ?? 'stable';
  mkdirSync(join(dir, 'lists/partial'), { recursive: true });
  writeFileSync(join(dir, 'sources.list'), `deb-src http://deb.debian.org/debian ${codename} main\n`);
  const options = {
    'Dir::Etc::sourcelist': join(dir, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State::lists': join(dir, 'lists'),
  };
  const flags = Object.entries(options).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  await run('apt-get', [...flags, '-q', 'update'], { cwd: dir, timeoutMs: 5 * MINUTES });
  await run('apt-get', [...flags, '-q', 'source', '--download-only', 'busybox'], { cwd: dir, timeoutMs: 5 * MINUTES });
  const archive = readdirSync(dir).find((name) => /^busybox_.*\.orig\.tar\./.test(name));
  if (archive === undefined) throw new Error('the source package has no release archive');
  return join(dir, archive);
}
