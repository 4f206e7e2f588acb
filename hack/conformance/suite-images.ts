import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureBinaries } from '../binaries.ts';
import { run } from '../command.ts';
import {
  agnhostFiles,
  appletsOf,
  busyboxLayer,
  compileStatic,
  dockerArchive,
  makeLayer,
  type Image,
} from '../images.ts';
import type { Say } from '../progress.ts';
import type { TarEntry } from '../tar.ts';
import { plainBusybox } from './busybox.ts';

/** In place of the registries that the suite knows; nothing is ever pulled from it. */
const REGISTRY = 'spillway.test/e2e';
const REGISTRY_KEYS = ['promoterE2eRegistry', 'gcRegistry'];

/** Prints with whose rights it runs; the suite's image of that name has it with the set-user-ID bit. */
const NONEWPRIVS_C = `#include <stdio.h>
#include <unistd.h>
int main(void) { return printf("Effective uid: %d\\n", (int)geteuid()) < 0; }
`;

/** What the suite's specs ask of curl is to fetch one address. */
const CURL = '#!/bin/sh\nexec wget -q -O - "$1"\n';

export interface SuiteImages {
  /** For `ctr images import`. */
  archive: string;
  /** File for KUBE_TEST_REPO_LIST. */
  repositories: string;
  /** What could not be made as the suite has it, in words. */
  gaps: string[];
}

/** The images of the suite's node specs, with the names and tags that `e2e.test` asks for, from local files. */
export async function suiteImages(e2eTest: string, dir: string, say: Say): Promise<SuiteImages> {
  mkdirSync(dir, { recursive: true });
  const repositories = join(dir, 'repositories.yaml');
  writeFileSync(repositories, REGISTRY_KEYS.map((key) => `${key}: ${REGISTRY}\n`).join(''));
  const env = { ...process.env, KUBE_TEST_REPO_LIST: repositories };
  const listed = await run(e2eTest, ['--list-images'], { env });
  const { agnhost } = await ensureBinaries(['agnhost'], { say });
  const busybox = await plainBusybox(say);
  const nonewprivs = compileStatic(NONEWPRIVS_C);
  const images = imagesFor(listed.split('\n'), {
    agnhost: readFileSync(agnhost),
    busybox: readFileSync(busybox.path),
    applets: await appletsOf(busybox.path),
    nonewprivs,
  });
  const archive = join(dir, 'images.tar');
  writeFileSync(archive, dockerArchive(images));
  const gaps = [
    ...(busybox.why === undefined ? [] : [busybox.why]),
    ...(nonewprivs === undefined ? ['there is no image nonewprivs, because there is no C compiler here'] : []),
  ];
  return { archive, repositories, gaps };
}

interface Parts {
  agnhost: Uint8Array;
  busybox: Uint8Array;
  applets: readonly string[];
  nonewprivs: Uint8Array | undefined;
}

/** The images that can be made, with all tags that are in the list. */
export function imagesFor(listed: readonly string[], parts: Parts): Image[] {
  const tags = (name: string): string[] => listed.filter((image) => image.startsWith(`${REGISTRY}/${name}:`));
  const base = busyboxLayer(parts.busybox, parts.applets);
  const layers = [base, makeLayer([...agnhostFiles(parts.agnhost), ...AGNHOST_EXTRAS])];
  const agnhost = { layers, config: { Entrypoint: ['/agnhost'], Cmd: ['pause'] } };
  const all: Image[] = [
    { tags: tags('busybox'), layers: [base], config: { Cmd: ['sh'] } },
    { tags: tags('agnhost'), ...agnhost },
    { tags: tags('pause'), layers, config: { Entrypoint: ['/agnhost', 'pause'] } },
    { tags: tags('nonroot'), layers, config: { ...agnhost.config, User: '1234' } },
    { tags: tags('nginx'), layers, config: { Entrypoint: ['/agnhost'], Cmd: ['test-webserver'] } },
  ];
  if (parts.nonewprivs !== undefined) {
    const program: TarEntry = { type: 'file', path: 'usr/bin/nnp', mode: 0o4755, content: parts.nonewprivs };
    all.push({ tags: tags('nonewprivs'), layers: [base, makeLayer([program])], config: { Cmd: ['nnp'] } });
  }
  return all.filter((image) => image.tags.length > 0);
}

const AGNHOST_EXTRAS: readonly TarEntry[] = [
  { type: 'file', path: 'bin/curl', mode: 0o755, content: Buffer.from(CURL) },
];
