import { appendFileSync, existsSync, readFileSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identify, isAlive, type ProcessId } from './process-table.ts';

/**
 * SIGTERM: asked to go, killed when it does not. SIGKILL: thrown away. last: a wrapper that goes by itself when what it
 * wraps has gone (and must be there until then, to reap it).
 */
export type HowToEnd = 'SIGTERM' | 'SIGKILL' | 'last';

/** Something that a workspace made outside its own folder and must take away again. */
export type Trace =
  | ({ kind: 'process'; what: string; end: HowToEnd } & ProcessId)
  | { kind: 'link'; name: string }
  | { kind: 'route'; destination: string }
  | { kind: 'cgroup'; name: string };

interface Owner {
  /** The process that closes the workspace; none for one that outlives its maker (see Workspace.detach). */
  process?: ProcessId;
  /** Of the boot in which it was made: after a reboot nothing but the folder is left. */
  boot: string;
}

const OWNER = 'owner.json';
const TRACES = 'traces.jsonl';

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}

export function writeOwner(dir: string, detached: boolean): void {
  const me = identify(process.pid);
  const owner: Owner = detached || me === undefined ? { boot: bootId() } : { process: me, boot: bootId() };
  writeFileSync(join(dir, `${OWNER}.new`), JSON.stringify(owner));
  renameSync(join(dir, `${OWNER}.new`), join(dir, OWNER));
}

function readOwner(dir: string): Owner {
  return JSON.parse(readFileSync(join(dir, OWNER), 'utf8')) as Owner;
}

/** The process that was to close the workspace; nobody when that was in an earlier boot, or it is detached. */
export function ownerOf(dir: string): ProcessId | undefined {
  const owner = readOwner(dir);
  return owner.boot === bootId() ? owner.process : undefined;
}

/** Whether a workspace's folder is what a killed program left behind. */
export function isAbandoned(dir: string): boolean {
  if (!existsSync(join(dir, OWNER))) return false;
  const owner = readOwner(dir);
  return owner.process !== undefined && (owner.boot !== bootId() || !isAlive(owner.process));
}

/** Written before the thing is made (a process: right after), so that a kill at any moment leaves nothing unknown. */
export function recordTrace(dir: string, trace: Trace): void {
  appendFileSync(join(dir, TRACES), `${JSON.stringify(trace)}\n`);
}

/** Everything recorded, oldest first, without what was made in an earlier boot. */
export function readTraces(dir: string): Trace[] {
  const path = join(dir, TRACES);
  if (!existsSync(path)) return [];
  const owner = readOwner(dir);
  if (owner.boot !== bootId()) return [];
  const traces: Trace[] = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    // The last line may be cut off when its writer was killed.
    if (line.endsWith('}')) traces.push(JSON.parse(line) as Trace);
  }
  return traces;
}

/** Folders under `parent` that are workspaces of this user: what another put there must not tell us what to end. */
export function workspaceFolders(parent: string, prefix: string): string[] {
  return readdirSync(parent)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(parent, name))
    .filter((dir) => existsSync(join(dir, OWNER)) && statSync(dir).uid === process.getuid?.());
}
