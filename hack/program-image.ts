import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { run } from './command.ts';
import { ociLayout, type OciImage } from './oci-layout.ts';
import { repositoryRoot } from './repository.ts';
import { NODE_OPTIONS } from './spillway.ts';
import { makeTar, type TarEntry } from './tar.ts';

/** As in manifests/manager.yaml and the Dockerfile. */
const USER = 65_532;

/** Read from files, which are loaded when the program asks for the address of a name. */
const NAME_SERVICE = ['libnss_dns.so.2', 'libnss_files.so.2', 'libresolv.so.2'];

/** Of packages, what only tools for developers read. */
const LEFT_OUT = /\.(d\.[cm]?ts|d\.[cm]?ts\.map|[cm]?js\.map|[cm]?ts|markdown)$|^(README|CHANGELOG|HISTORY)(\.md)?$/i;

/**
 * The image of `spillway manager` without Docker and without a base image: the Node.js that runs this, with the libraries that it
 * is linked to, and what the Dockerfile puts on top. No shell, no package manager, nothing else.
 */
export async function programImage(name: string): Promise<Buffer> {
  return ociLayout(await describeImage(name));
}

async function describeImage(name: string): Promise<OciImage> {
  const root = repositoryRoot();
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  return {
    name,
    layers: [makeTar(withFolders(await nodeFiles())), makeTar(withFolders(programFiles(root)))],
    config: {
      User: `${String(USER)}:${String(USER)}`,
      Entrypoint: ['/usr/bin/node', '--enable-source-maps', 'dist/src/main.js'],
      Cmd: ['manager'],
      Env: ['PATH=/usr/bin', 'NODE_ENV=production', `NODE_OPTIONS=${NODE_OPTIONS}`],
      WorkingDir: '/app',
      Labels: {
        'org.opencontainers.image.title': 'spillway',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.licenses': 'Apache-2.0',
      },
    },
  };
}

/** Node.js, and the libraries that it needs, where its loader looks for them. */
async function nodeFiles(): Promise<TarEntry[]> {
  const linked = await run('ldd', [process.execPath]);
  const libraries = [...linked.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path = '']) => path);
  const folder = dirname(libraries.find((path) => basename(path).startsWith('libc.so')) ?? '/lib');
  const all = [...libraries, ...NAME_SERVICE.map((one) => join(folder, one)).filter((path) => existsSync(path))];
  const line = `spillway:x:${String(USER)}:${String(USER)}:spillway:/app:/usr/bin/false\n`;
  return [
    fileOf('usr/bin/node', realpathSync(process.execPath), 0o755),
    ...all.map((path) => fileOf(path.slice(1), realpathSync(path), 0o755)),
    text('etc/passwd', `root:x:0:0:root:/:/usr/bin/false\n${line}`),
    text('etc/group', `root:x:0:\nspillway:x:${String(USER)}:\n`),
    text('etc/nsswitch.conf', 'hosts: files dns\n'),
  ];
}

function programFiles(root: string): TarEntry[] {
  const built = join(root, 'dist/src');
  if (!existsSync(join(built, 'main.js'))) throw new Error('the program is not built: make build');
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
  return [
    fileOf('app/package.json', join(root, 'package.json')),
    ...filesBelow(built, 'app/dist/src'),
    ...shippedPackages(lock)
      .filter((path) => existsSync(join(root, path)))
      .flatMap((path) => filesBelow(join(root, path), `app/${path}`, (file) => !LEFT_OUT.test(file))),
  ];
}

export interface Lock {
  packages: Record<string, { dev?: boolean; optional?: boolean }>;
}

/** Folders of the packages that the program needs when it runs. */
export function shippedPackages({ packages }: Lock): string[] {
  return Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path]) => path)
    .toSorted();
}

/** All files in a folder; packages within a package have entries of their own. */
function filesBelow(folder: string, at: string, wanted: (name: string) => boolean = () => true): TarEntry[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const [from, to] = [join(folder, entry.name), `${at}/${entry.name}`];
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesBelow(from, to, wanted);
      return entry.isFile() && wanted(entry.name) ? [fileOf(to, from)] : [];
    });
}

function fileOf(path: string, source: string, mode = 0o644): TarEntry {
  if (!statSync(source).isFile()) throw new Error(`${source} is no file`);
  return { type: 'file', path, mode, content: readFileSync(source) };
}

function text(path: string, content: string): TarEntry {
  return { type: 'file', path, mode: 0o644, content: Buffer.from(content) };
}

/** Each folder before the first thing in it. */
function withFolders(entries: readonly TarEntry[]): TarEntry[] {
  const seen = new Set<string>();
  return entries.flatMap((entry) => {
    const parts = entry.path.split('/').slice(0, -1);
    const folders = parts.map((_, index) => parts.slice(0, index + 1).join('/')).filter((path) => !seen.has(path));
    for (const path of folders) seen.add(path);
    return [...folders.map((path): TarEntry => ({ type: 'folder', path, mode: 0o755 })), entry];
  });
}
