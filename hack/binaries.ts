import { accessSync, constants, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { buildTool } from './go-build.ts';
import { downloadTool } from './download.ts';
import { withFileLock } from './file-lock.ts';
import { sayNothing, type Say } from './progress.ts';
import { describeTool, type Tool, type ToolName } from './tools.ts';

export interface BinaryOptions {
  say?: Say;
  env?: NodeJS.ProcessEnv;
  /** The ways to get a binary that is neither in a given folder nor in the cache; replaced by tests. */
  sources?: readonly BinarySource[];
}

/** Puts the binary at `target`, or answers why it cannot (the next source is tried). */
export type BinarySource = (tool: Tool, target: string, say: Say) => Promise<'done' | { because: string }>;

/**
 * Paths of the named programs, in this order: a folder named by SPILLWAY_BINARIES or KUBEBUILDER_ASSETS; the cache;
 * the project's official download; `go build` of the pinned module (minutes, once). Runs on one machine do not
 * build twice at the same time.
 * @throws when a program cannot be had in any way; the message lists what was tried.
 */
export async function ensureBinaries<N extends ToolName>(
  names: readonly N[],
  options: BinaryOptions = {},
): Promise<Record<N, string>> {
  const env = options.env ?? process.env;
  const found = {} as Record<N, string>;
  for (const name of names) found[name] = findGiven(name, env) ?? (await fromCache(name, env, options));
  return found;
}

/** The program in a folder the user named, if it is there. */
function findGiven(name: string, env: NodeJS.ProcessEnv): string | undefined {
  for (const folder of [env['SPILLWAY_BINARIES'], env['KUBEBUILDER_ASSETS']]) {
    if (folder === undefined || folder === '') continue;
    const path = join(folder, name);
    if (isExecutable(path)) return path;
  }
  return undefined;
}

/** Where built and downloaded programs are kept. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const base = env['XDG_CACHE_HOME'] ?? '';
  return join(base === '' ? join(homedir(), '.cache') : base, 'spillway', 'bin');
}

async function fromCache(name: ToolName, env: NodeJS.ProcessEnv, options: BinaryOptions): Promise<string> {
  const tool = describeTool(name);
  const folder = join(cacheFolder(env), tool.cacheKey);
  const path = join(folder, name);
  if (isExecutable(path)) return path;
  mkdirSync(folder, { recursive: true });
  const say = options.say ?? sayNothing;
  await withFileLock(join(cacheFolder(env), 'lock'), () => obtain(tool, path, options.sources ?? SOURCES, say), {
    onWait: (holder) => say(`${name}: another run (process ${holder.pid}) is getting binaries; waiting for it`),
  });
  return path;
}

const SOURCES: readonly BinarySource[] = [downloadTool, buildTool];

async function obtain(tool: Tool, path: string, sources: readonly BinarySource[], say: Say): Promise<void> {
  if (isExecutable(path)) return;
  const reasons: string[] = [];
  const partial = `${path}.partial`;
  for (const source of sources) {
    rmSync(partial, { force: true });
    const outcome = await source(tool, partial, say);
    if (outcome === 'done') {
      renameSync(partial, path);
      return;
    }
    reasons.push(outcome.because);
  }
  throw new Error(
    `${tool.name} ${tool.version} cannot be had: ${reasons.join('; ')}. ` +
      `Put it into a folder and name the folder in SPILLWAY_BINARIES, or install Go and try again.`,
  );
}

function isExecutable(path: string): boolean {
  if (!existsSync(path)) return false;
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
