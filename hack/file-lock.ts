import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { identify, isAlive, type ProcessId } from './process-table.ts';
import { until } from './until.ts';

export interface LockOptions {
  timeoutMs?: number;
  /** Called once when another process holds the lock. */
  onWait?: (holder: ProcessId) => void;
}

/**
 * Runs `work` while holding the lock file `path`, which names its holder by process number and start time. A lock
 * whose holder is dead is broken. Links are atomic on local file systems, so a lock file is never seen half written.
 */
export async function withFileLock<T>(path: string, work: () => Promise<T>, options: LockOptions = {}): Promise<T> {
  const me = identify(process.pid);
  if (me === undefined) throw new Error('cannot read my own start time');
  // Several lock users inside one process must exclude each other too: the file's content differs, the link decides.
  const draft = `${path}.${me.pid}.${Math.random().toString(36).slice(2)}`;
  let waited = false;
  await until(
    `lock ${path}`,
    () => {
      const holder = readHolder(path);
      if (holder !== undefined && holder !== 'unreadable' && isAlive(holder)) {
        if (!waited) options.onWait?.(holder);
        waited = true;
        return false;
      }
      if (holder !== undefined) breakLock(path, draft);
      writeFileSync(draft, JSON.stringify(me));
      try {
        linkSync(draft, path);
        return true;
      } catch {
        return false;
      } finally {
        rmSync(draft, { force: true });
      }
    },
    { timeoutMs: options.timeoutMs ?? 30 * 60_000, intervalMs: 50 },
  );
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

/** Moves a dead holder's lock away. Should another process have replaced it meanwhile, its lock is put back. */
function breakLock(path: string, draft: string): void {
  const grave = `${draft}.broken`;
  try {
    renameSync(path, grave);
    const buried = readHolder(grave);
    if (buried !== undefined && buried !== 'unreadable' && isAlive(buried)) linkSync(grave, path);
  } catch {
    // Someone else was faster; the next look decides.
  } finally {
    rmSync(grave, { force: true });
  }
}

function readHolder(path: string): ProcessId | 'unreadable' | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'pid' in value && 'start' in value) {
      return { pid: Number(value.pid), start: String(value.start) };
    }
  } catch {
    // Falls through: a lock file nobody can have written whole.
  }
  return 'unreadable';
}
