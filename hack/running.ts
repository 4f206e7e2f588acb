import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './repository.ts';

/** What a later command needs to find and end something that was started detached. */
export interface Running {
  /** Folder of the workspace. */
  workspace: string;
  /** What was printed at the end of the start, to print it again. */
  summary: string;
}

function fileOf(name: string): string {
  if (!/^[a-z0-9-]+$/.test(name)) throw new Error(`not a name: ${name} (small letters, digits and dashes)`);
  return join(folder(), `${name}.json`);
}

function folder(): string {
  return join(repositoryRoot(), '.cache', 'running');
}

export function saveRunning(name: string, running: Running): void {
  mkdirSync(folder(), { recursive: true });
  writeFileSync(fileOf(name), JSON.stringify(running, undefined, 2));
}

/** `undefined` when nothing of that name was started, or its folder is gone (a reboot that empties /tmp). */
export function findRunning(name: string): Running | undefined {
  const file = fileOf(name);
  if (!existsSync(file)) return undefined;
  const running = JSON.parse(readFileSync(file, 'utf8')) as Running;
  if (existsSync(running.workspace)) return running;
  forgetRunning(name);
  return undefined;
}

export function forgetRunning(name: string): void {
  rmSync(fileOf(name), { force: true });
  if (existsSync(folder()) && readdirSync(folder()).length === 0) rmSync(folder(), { recursive: true });
}
