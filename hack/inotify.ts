import { readFileSync, writeFileSync } from 'node:fs';
import type { Say } from './progress.ts';

const LIMIT = '/proc/sys/fs/inotify/max_user_instances';
const ENOUGH = 1024;

/**
 * Every API server, controller-manager and kubelet holds about six inotify instances, and Linux allows a user 128 by
 * default, desktop and all: the next kubelet then dies with "too many open files". Root raises the limit until the
 * next reboot, and says so; others have to live with it.
 */
export function raiseInotifyLimit(say: Say): void {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return;
  try {
    const limit = Number(readFileSync(LIMIT, 'utf8'));
    if (limit >= ENOUGH) return;
    writeFileSync(LIMIT, String(ENOUGH));
    say(`raised fs.inotify.max_user_instances from ${limit} to ${ENOUGH} until the next reboot`);
  } catch {
    // Read-only in a container: the limit of the machine around it holds.
  }
}
