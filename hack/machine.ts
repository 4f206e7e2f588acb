import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupFolders, removeTrace } from './workspace-cleaning.ts';
import { createCgroup } from './cgroup.ts';
import { run } from './command.ts';
import { machineNetwork } from './machine-network.ts';
import type { ManagedProcess } from './managed-process.ts';
import { childrenOf, identify, signalProcess, type ProcessId } from './process-table.ts';
import { GiveUp, until } from './until.ts';
import type { Workspace } from './workspace.ts';

/**
 * Settings of the whole kernel that a kubelet insists on. It reads these files and writes only what differs, so the
 * machine sees the wanted values and the real ones stay as they are.
 */
const KUBELET_SYSCTLS: Record<string, string> = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
};

const NEW_NAMESPACES = ['--mount', '--net', '--pid', '--uts', '--ipc'];

/**
 * A worker machine made of namespaces: own processes, network, mounts and host name, with /run, /var/lib and /var/log
 * of its own, so that nothing it does shows outside. When its first process is killed the kernel ends everything in it.
 */
export class Machine {
  readonly name: string;
  readonly dir: string;
  readonly address: string;
  readonly podCidr: string;
  /** Control group (at the root of every hierarchy) that holds the machine's pods. */
  readonly cgroup: string;
  readonly #link: string;
  readonly #workspace: Workspace;
  readonly #holder: ManagedProcess;
  readonly #init: ProcessId;

  private constructor(
    workspace: Workspace,
    holder: ManagedProcess,
    init: ProcessId,
    facts: { name: string; dir: string; address: string; podCidr: string; link: string; cgroup: string },
  ) {
    this.#workspace = workspace;
    this.#holder = holder;
    this.#init = init;
    this.name = facts.name;
    this.dir = facts.dir;
    this.address = facts.address;
    this.podCidr = facts.podCidr;
    this.#link = facts.link;
    this.cgroup = facts.cgroup;
  }

  /** `podNetwork`: its pods reach those of the workspace's other machines of the same one, and no others. */
  static async start(workspace: Workspace, name: string, dir: string, podNetwork = 'flat'): Promise<Machine> {
    for (const hidden of ['/run', '/var/lib', '/var/log', '/proc', '/sys', '/dev']) {
      if (dir.startsWith(`${hidden}/`))
        throw new Error(`machines cannot live below ${hidden}: set TMPDIR to another folder`);
    }
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const script = join(dir, 'init.sh');
    writeFileSync(script, initScript(name, dir));
    const holder = workspace.start({
      name: `machine ${name}`,
      file: 'unshare',
      args: [...NEW_NAMESPACES, '--propagation', 'private', '--fork', '--kill-child', 'sh', script],
      logFile: join(dir, 'machine.log'),
      end: 'last',
    });
    const init = await until(
      `machine ${name} is up`,
      () => {
        if (!holder.running) throw new GiveUp(holder.describeExit());
        const pid = holder.id === undefined ? undefined : childrenOf(holder.id.pid)[0];
        return readFileSync(join(dir, 'machine.log'), 'utf8').includes('machine is up') ? pid : undefined;
      },
      { timeoutMs: 10_000, intervalMs: 10 },
    );
    const id = identify(init);
    if (id === undefined) throw new GiveUp(holder.describeExit());
    workspace.record({ kind: 'process', ...id, what: `machine ${name}`, end: 'SIGKILL' });
    const network = await machineNetwork(workspace);
    const place = await network.plugIn(init, podNetwork);
    const cgroup = `spillway-${workspace.id}-${name}`;
    workspace.record({ kind: 'cgroup', name: cgroup });
    createCgroup(cgroup);
    return new Machine(workspace, holder, id, { name, dir, ...place, cgroup });
  }

  /** Starts a program inside the machine. */
  run(name: string, file: string, args: string[]): ManagedProcess {
    return this.#workspace.start({
      name: `${this.name}/${name}`,
      file: 'nsenter',
      args: [...this.enter(), file, ...args],
      logFile: join(this.dir, `${name}.log`),
      wrapped: true,
      end: 'last',
    });
  }

  /** Arguments of nsenter that lead into the machine, for a command to follow. */
  enter(): string[] {
    return ['-t', String(this.#init.pid), ...NEW_NAMESPACES];
  }

  /** Takes it off the network (`down`), with all of its pods, or puts it back. */
  async setLink(state: 'up' | 'down'): Promise<void> {
    await run('ip', ['link', 'set', this.#link, state]);
  }

  /** Pulls the plug: every process inside is killed, and links and control groups are removed. */
  async stop(): Promise<void> {
    signalProcess(this.#init, 'SIGKILL');
    await until(`machine ${this.name} is down`, () => !this.#holder.running, { timeoutMs: 10_000, intervalMs: 10 });
    const left = removeTrace({ kind: 'cgroup', name: this.cgroup });
    if (left.length > 0)
      throw new Error(`machine ${this.name}: could not remove ${cgroupFolders(this.cgroup).join(', ')}`);
  }
}

function initScript(name: string, dir: string): string {
  const files = join(dir, 'sysctl');
  mkdirSync(files);
  const overlays = Object.entries(KUBELET_SYSCTLS).map(([key, value], index) => {
    const file = join(files, String(index));
    writeFileSync(file, `${value}\n`);
    return `if [ -e /proc/sys/${key} ]; then mount --bind '${file}' /proc/sys/${key}; fi`;
  });
  const folders = ['/run', '/var/lib', '/var/log'].map((target) => {
    const folder = join(dir, target.slice(1).replace('/', '-'));
    mkdirSync(folder);
    return `mount --bind '${folder}' ${target}`;
  });
  return `set -e
${folders.join('\n')}
mount -t proc proc /proc
${overlays.join('\n')}
mount --make-rshared /
hostname '${name}'
echo machine is up
# The first process of a machine adopts orphans and must reap them: wait does both.
sleep infinity &
while :; do wait || :; done
`;
}
