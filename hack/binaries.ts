import { accessSync, constants, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { buildTool } from './go-build.ts';
import { downloadTool } from './download.ts';
import { withFileLock } from './file-lock.ts';
import { sayNothing, type Say } from './progress.ts';
import { describeTool, VERSIONED_TOOLS, type OtherVersion, type Tool, type ToolName } from './tools.ts';

export interface BinaryOptions {
  say?: Say;
  env?: NodeJS.ProcessEnv;
  /** The ways to get a binary that is neither in a given folder nor in the cache; replaced by tests. */
  sources?: readonly BinarySource[];
  /** Minor version of Kubernetes, for {@link VERSIONED_TOOLS} only; a given folder has them in a folder of that name. */
  kubernetes?: OtherVersion;
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
  for (const name of names) {
    const other = VERSIONED_TOOLS.some((versioned) => versioned === name) ? options.kubernetes : undefined;
    const given = findGiven(join(other ?? '', name), env);
    found[name] = given ?? (await fromCache(describeTool(name, other), env, options));
  }
  return found;
}

/** The program at `path` of a folder the user named, if it is there. */
function findGiven(path: string, env: NodeJS.ProcessEnv): string | undefined {
  for (const folder of [env['SPILLWAY_BINARIES'], env['KUBEBUILDER_ASSETS']]) {
    if (folder === undefined || folder === '') continue;
    const found = join(folder, path);
    if (isExecutable(found)) return found;
  }
  return undefined;
}

/** Where built and downloaded programs are kept. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const base = env['XDG_CACHE_HOME'] ?? '';
  return join(base === '' ? join(homedir(), '.cache') : base, 'spillway', 'bin');
}

async function fromCache(tool: Tool, env: NodeJS.ProcessEnv, options: BinaryOptions): Promise<string> {
  const folder = join(cacheFolder(env), tool.cacheKey);
  const path = join(folder, tool.name);
  if (isExecutable(path)) return path;
  mkdirSync(folder, { recursive: true });
  const say = options.say ?? sayNothing;
  await withFileLock(join(cacheFolder(env), 'lock'), () => obtain(tool, path, options.sources ?? SOURCES, say), {
    onWait: (holder) => say(`${tool.name}: another run (process ${holder.pid}) is getting binaries; waiting for it`),
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
