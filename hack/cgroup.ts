import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/** What a kubelet needs; with cgroup v1 each is a hierarchy of its own, with v2 all are controllers of the one. */
const CONTROLLERS = ['cpu', 'cpuset', 'memory', 'pids'];

function isUnified(): boolean {
  return existsSync(join(ROOT, 'cgroup.controllers'));
}

/** Why kubelets cannot use this machine's control groups, or undefined. */
export function cgroupProblem(): string | undefined {
  if (!existsSync(ROOT)) return `${ROOT} is not mounted`;
  const present = isUnified()
    ? readFileSync(join(ROOT, 'cgroup.controllers'), 'utf8').trim().split(' ')
    : readdirSync(ROOT);
  const missing = CONTROLLERS.filter((controller) => !present.includes(controller));
  return missing.length === 0 ? undefined : `control group controllers are missing: ${missing.join(', ')}`;
}

/** Makes a top-level control group in which a kubelet can keep its pods, in every hierarchy. */
export function createCgroup(name: string): void {
  if (isUnified()) {
    writeFileSync(join(ROOT, 'cgroup.subtree_control'), CONTROLLERS.map((one) => `+${one}`).join(' '));
    mkdirSync(join(ROOT, name));
    const offered = readFileSync(join(ROOT, name, 'cgroup.controllers'), 'utf8')
      .trim()
      .split(' ');
    writeFileSync(join(ROOT, name, 'cgroup.subtree_control'), offered.map((one) => `+${one}`).join(' '));
    return;
  }
  for (const hierarchy of readdirSync(ROOT)) {
    const parent = join(ROOT, hierarchy);
    if (!existsSync(join(parent, 'cgroup.procs'))) continue;
    // "cpu" and "cpuacct" may be links to one folder.
    mkdirSync(join(parent, name), { recursive: true });
    // A new cpuset is empty and takes no process (ENOSPC) until told which CPUs and memory nodes it has.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      if (existsSync(join(parent, file))) writeFileSync(join(parent, name, file), readFileSync(join(parent, file)));
    }
  }
}
