import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { mountsUnder } from '../../hack/workspace-cleaning.ts';

/** Processes that have anything to do with a folder: by argument, by working directory. */
export function processesUsing(dir: string): string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return command.includes(dir) || readlinkSync(`/proc/${pid}/cwd`).startsWith(dir) ? [`${pid} ${command}`] : [];
      } catch {
        return [];
      }
    });
}

/** All that a workspace may leave on the machine. */
export function remains(dir: string, id: string): string[] {
  const named = (folder: string): string[] =>
    existsSync(folder) ? readdirSync(folder).filter((name) => name.includes(id)) : [];
  const hierarchies = existsSync('/sys/fs/cgroup') ? readdirSync('/sys/fs/cgroup') : [];
  return [
    ...processesUsing(dir),
    ...mountsUnder(dir),
    ...named('/sys/class/net'),
    ...named('/run/netns'),
    ...named('/sys/fs/cgroup'),
    ...hierarchies.flatMap((hierarchy) => named(join('/sys/fs/cgroup', hierarchy))),
    ...(existsSync(dir) ? [dir] : []),
  ];
}
