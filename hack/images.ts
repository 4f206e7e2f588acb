import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ensureBinaries, cacheFolder } from './binaries.ts';
import { run } from './command.ts';
import { withFileLock } from './file-lock.ts';
import { busyboxPath } from './system-packages.ts';
import type { Say } from './progress.ts';
import { makeTar, sha256, type TarEntry } from './tar.ts';

/** Names of the images that every machine of ours has; nothing is ever pulled. */
export const IMAGES = {
  pause: 'spillway.test/pause:1',
  /** busybox: sh, cat, wget, httpd, tar, ... */
  busybox: 'spillway.test/busybox:1',
  /** The Kubernetes test image: `netexec`, `test-webserver`, `pause`, ...; with busybox's commands beside it. */
  agnhost: 'spillway.test/agnhost:1',
} as const;

interface Layer {
  tar: Buffer;
  digest: string;
}

export interface Image {
  tags: readonly string[];
  layers: readonly Layer[];
  config: { Entrypoint?: string[]; Cmd?: string[]; User?: string; WorkingDir?: string };
}

/** Raise it when the content of an image changes, so that cached archives are made anew. */
const RECIPE = 1;

const PAUSE_C = `#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int s) { (void)s; _exit(0); }
static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0) ; }
int main(void) {
  signal(SIGINT, end); signal(SIGTERM, end); signal(SIGCHLD, reap);
  for (;;) pause();
}
`;

/** The same without a C compiler and without agnhost. */
const PAUSE_SH = 'trap "exit 0" INT TERM; while :; do sleep 3600 & wait $!; done';

/** What images are made of. */
export interface ImageParts {
  busybox: Buffer;
  /** Undefined where it cannot be had: then its image is left out. */
  agnhost: Buffer | undefined;
  /** Undefined where there is no C compiler. */
  pause: Buffer | undefined;
}

/**
 * The path of an archive with {@link IMAGES}, for `ctr images import`; made once and kept in the cache. There is no
 * download of agnhost, so without Go its image is left out, and it says so.
 */
export async function imageArchive(say: Say): Promise<string> {
  const busybox = await busyboxPath(say);
  const agnhost = await agnhostProgram(say);
  const parts = { busybox: readFileSync(busybox), agnhost, pause: compileStatic(PAUSE_C) };
  const key = sha256(
    [
      RECIPE,
      process.arch,
      sha256(parts.busybox),
      agnhost === undefined ? '' : sha256(agnhost),
      parts.pause === undefined,
    ].join(),
  );
  const path = join(dirname(cacheFolder()), 'images', `${key.slice(0, 16)}.tar`);
  mkdirSync(dirname(path), { recursive: true });
  await withFileLock(`${path}.lock`, async () => {
    if (existsSync(path)) return;
    const images = imagesOf(parts, await appletsOf(busybox));
    say(`making the images ${images.flatMap(({ tags }) => tags).join(', ')}`);
    const partial = `${path}.${process.pid}.partial`;
    writeFileSync(partial, dockerArchive(images));
    renameSync(partial, path);
  });
  return path;
}

/** Looked for once in a run: each node asks. */
let noAgnhost: string | undefined;

async function agnhostProgram(say: Say): Promise<Buffer | undefined> {
  if (noAgnhost !== undefined) return undefined;
  try {
    return readFileSync((await ensureBinaries(['agnhost'], { say })).agnhost);
  } catch (error) {
    noAgnhost = error instanceof Error ? error.message : String(error);
    say(`the image ${IMAGES.agnhost} is left out; only tests need it: ${noAgnhost}`);
    return undefined;
  }
}

export function imagesOf({ busybox, agnhost, pause }: ImageParts, applets: readonly string[]): Image[] {
  const base = busyboxLayer(busybox, applets);
  const images: Image[] = [{ tags: [IMAGES.busybox], layers: [base], config: { Cmd: ['sh'] } }];
  const test = agnhost === undefined ? undefined : [base, makeLayer(agnhostFiles(agnhost))];
  if (test !== undefined) {
    images.push({ tags: [IMAGES.agnhost], layers: test, config: { Entrypoint: ['/agnhost'], Cmd: ['pause'] } });
  }
  const tags = [IMAGES.pause];
  if (pause !== undefined) {
    const layers = [makeLayer([{ type: 'file', path: 'pause', mode: 0o755, content: pause }])];
    images.push({ tags, layers, config: { Entrypoint: ['/pause'] } });
  } else if (test !== undefined) {
    images.push({ tags, layers: test, config: { Entrypoint: ['/agnhost', 'pause'] } });
  } else {
    images.push({ tags, layers: [base], config: { Entrypoint: ['/bin/sh', '-c', PAUSE_SH] } });
  }
  return images;
}

export function makeLayer(entries: readonly TarEntry[]): Layer {
  const tar = makeTar(entries);
  return { tar, digest: sha256(tar) };
}

/** The format of `docker save`: configurations, layers (each once) and manifest.json. */
export function dockerArchive(
  images: readonly Image[],
  architecture = process.arch === 'x64' ? 'amd64' : process.arch,
): Buffer {
  const files = new Map<string, Buffer>();
  const manifest = images.map((image) => {
    const config = Buffer.from(
      JSON.stringify({
        architecture,
        os: 'linux',
        config: { Env: ['PATH=/bin:/usr/bin:/sbin:/usr/sbin'], ...image.config },
        rootfs: { type: 'layers', diff_ids: image.layers.map((layer) => `sha256:${layer.digest}`) },
      }),
    );
    const configFile = `${sha256(config)}.json`;
    files.set(configFile, config);
    for (const layer of image.layers) files.set(`${layer.digest}.tar`, layer.tar);
    return { Config: configFile, RepoTags: image.tags, Layers: image.layers.map((layer) => `${layer.digest}.tar`) };
  });
  files.set('manifest.json', Buffer.from(JSON.stringify(manifest)));
  return makeTar([...files].map(([path, content]) => ({ type: 'file', path, mode: 0o644, content })));
}

/** The commands that are in a busybox. */
export async function appletsOf(busybox: string): Promise<string[]> {
  return (await run('/bin/sh', ['-c', 'exec "$0" --list', busybox])).trim().split('\n');
}

/** A root file system of busybox with a link for each of its commands. */
export function busyboxLayer(busybox: Uint8Array, applets: readonly string[]): Layer {
  return makeLayer(busyboxFiles(busybox, applets));
}

function busyboxFiles(busybox: Uint8Array, applets: readonly string[]): TarEntry[] {
  const text = (path: string, content: string): TarEntry => ({
    type: 'file',
    path,
    mode: 0o644,
    content: Buffer.from(content),
  });
  return [
    { type: 'folder', path: 'bin', mode: 0o755 },
    { type: 'file', path: 'bin/busybox', mode: 0o755, content: busybox },
    ...applets
      .filter((applet) => applet !== 'busybox' && applet !== '')
      .map((applet): TarEntry => ({ type: 'link', path: `bin/${applet}`, target: 'busybox' })),
    { type: 'folder', path: 'etc', mode: 0o755 },
    text(
      'etc/passwd',
      'root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n',
    ),
    text('etc/group', 'root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n'),
    { type: 'folder', path: 'home', mode: 0o755 },
    { type: 'folder', path: 'root', mode: 0o700 },
    { type: 'folder', path: 'tmp', mode: 0o1777 },
    { type: 'folder', path: 'usr', mode: 0o755 },
    { type: 'folder', path: 'usr/bin', mode: 0o755 },
    { type: 'link', path: 'usr/bin/env', target: '../../bin/busybox' },
    { type: 'folder', path: 'var', mode: 0o755 },
    { type: 'folder', path: 'var/tmp', mode: 0o1777 },
  ];
}

export function agnhostFiles(agnhost: Uint8Array): TarEntry[] {
  return [
    { type: 'file', path: 'agnhost', mode: 0o755, content: agnhost },
    { type: 'link', path: 'agnhost-2', target: 'agnhost' },
    { type: 'folder', path: 'uploads', mode: 0o1777 },
  ];
}

/** A static program from C, or undefined where there is no C compiler. */
export function compileStatic(source: string): Buffer | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'program-'));
  try {
    const out = join(dir, 'pause');
    const args = ['-Os', '-static', '-s', '-Wl,--build-id=none', '-x', 'c', '-o', out, '-'];
    return spawnSync('gcc', args, { input: source }).status === 0 ? readFileSync(out) : undefined;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
