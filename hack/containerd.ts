import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { run } from './command.ts';
import { IMAGES } from './images.ts';
import type { Machine } from './machine.ts';
import type { ManagedProcess } from './managed-process.ts';
import { cniFolder, findProgram } from './system-packages.ts';
import { GiveUp, until } from './until.ts';

export interface Containerd {
  process: ManagedProcess;
  /** Path of its gRPC socket. */
  socket: string;
  /** Runs ctr in the namespace that the kubelet uses. @returns standard output. */
  ctr(args: readonly string[]): Promise<string>;
  /** Pulls images of a registry, by the host name in their names, from the base URL given, plain HTTP too; from now on. */
  useRegistry(host: string, url: string): void;
}

/** Starts containerd inside a machine, with bridge networking on the machine's pod range. */
export async function startContainerd(machine: Machine): Promise<Containerd> {
  const binDir = cniFolder();
  if (binDir === undefined) throw new Error('CNI plugins are not installed');
  const file = (name: string): string => join(machine.dir, name);
  const socket = file('containerd.sock');
  if (Buffer.byteLength(socket) > 100) throw new Error(`socket path too long, set TMPDIR to a shorter one: ${socket}`);
  mkdirSync(file('cni'));
  writeFileSync(file('cni/10-bridge.conflist'), JSON.stringify(networkConfig(machine, file('ipam'))));
  writeFileSync(file('containerd.toml'), configuration(machine.dir, socket, binDir));
  const process = machine.run('containerd', 'containerd', ['--config', file('containerd.toml')]);
  await until(
    `containerd of ${machine.name} answers`,
    async () => {
      if (!process.running) throw new GiveUp(process.describeExit());
      return accepts(socket);
    },
    { timeoutMs: 20_000, intervalMs: 20 },
  );
  const ctr = (args: readonly string[]): Promise<string> =>
    run(findProgram('ctr') ?? 'ctr', ['--address', socket, '--namespace', 'k8s.io', ...args]);
  await until(`the container runtime interface of ${machine.name} is loaded`, async () => {
    // A plugin that fails to load does not end containerd; a kubelet would only see an unknown service.
    const failed = (await ctr(['plugins', 'list'])).split('\n').find((line) => /\bcri\b.*\berror\b/.test(line));
    if (failed !== undefined) throw new GiveUp(`containerd could not load ${failed}:\n${process.logTail(40)}`);
    return true;
  });
  const useRegistry = (host: string, url: string): void => {
    const folder = join(machine.dir, REGISTRIES, host);
    mkdirSync(folder, { recursive: true });
    // containerd 1.6 takes no file without a table of hosts.
    const place = JSON.stringify(url);
    writeFileSync(
      join(folder, 'hosts.toml'),
      `server = ${place}\n[host.${place}]\n  capabilities = ["pull", "resolve"]\n`,
    );
  };
  return { process, socket, ctr, useRegistry };
}

/** Read again for each pull. */
const REGISTRIES = 'registries';

function accepts(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    });
    connection.once('error', () => resolve(false));
  });
}

function networkConfig(machine: Machine, dataDir: string): object {
  return {
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir,
          ranges: [[{ subnet: machine.podCidr }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}

/** Version 2 is read by containerd 1.x and, with a conversion of its own, by 2.x. */
function configuration(dir: string, socket: string, cniBinDir: string): string {
  const text = (value: string): string => JSON.stringify(value);
  return `version = 2
root = ${text(join(dir, 'containerd-root'))}
state = ${text(join(dir, 'containerd-state'))}
[grpc]
  address = ${text(socket)}
[ttrpc]
  address = ${text(`${socket}.ttrpc`)}
[plugins."io.containerd.internal.v1.opt"]
  path = ${text(join(dir, 'opt'))}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = ${text(IMAGES.pause)}
  # Lowering the OOM score needs CAP_SYS_RESOURCE, which root in a container or a small VM may lack.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = ${text(join(dir, REGISTRIES))}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = ${text(cniBinDir)}
    conf_dir = ${text(join(dir, 'cni'))}
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`;
}
