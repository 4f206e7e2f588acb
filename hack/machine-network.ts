import { randomInt } from 'node:crypto';
import { run } from './command.ts';
import { withFileLock } from './file-lock.ts';
import type { Workspace } from './workspace.ts';

interface MachinePlace {
  address: string;
  podCidr: string;
  /** The end of its cable, in the root network namespace. */
  link: string;
}

/** A bridge in the root network namespace to which a workspace's machines are plugged. */
export interface MachineNetwork {
  bridge: string;
  /** The bridge's own address: reached from this machine and from all machines on the bridge. */
  gateway: string;
  /** For example 172.30.7.0/24. */
  subnet: string;
  /**
   * Plugs a new machine in: `pid` is a process inside its network namespace. Its pods and those of the other machines of the same
   * `podNetwork` reach each other, and no others'.
   */
  plugIn(pid: number, podNetwork: string): Promise<MachinePlace>;
}

const networks = new WeakMap<Workspace, Promise<MachineNetwork>>();

/** The network of this workspace's machines, made when first asked for. Needs root on Linux. */
export function machineNetwork(workspace: Workspace): Promise<MachineNetwork> {
  const known = networks.get(workspace);
  if (known !== undefined) return known;
  const made = createNetwork(workspace);
  networks.set(workspace, made);
  return made;
}

async function createNetwork(workspace: Workspace): Promise<MachineNetwork> {
  const bridge = `sw-${workspace.id}`;
  const subnet = await exclusively(async () => {
    const free = await freeSubnet(() => `172.${randomInt(30, 32)}.${randomInt(0, 256)}.0/24`);
    workspace.record({ kind: 'link', name: bridge });
    await run('ip', ['link', 'add', bridge, 'type', 'bridge']);
    await run('ip', ['address', 'add', `${hostOf(free, 1)}/24`, 'dev', bridge]);
    await run('ip', ['link', 'set', bridge, 'up']);
    return free;
  });
  const gateway = hostOf(subnet, 1);
  const machines: { pid: number; place: MachinePlace; podNetwork: string }[] = [];
  let next = 10;

  const plugIn = async (pid: number, podNetwork: string): Promise<MachinePlace> => {
    const index = next++;
    const address = hostOf(subnet, index);
    const link = `sv-${workspace.id}-${index}`;
    const inside = (args: string[]): Promise<string> => run('nsenter', ['-t', String(pid), '--net', 'ip', ...args]);
    workspace.record({ kind: 'link', name: link });
    await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)]);
    await run('ip', ['link', 'set', link, 'master', bridge, 'up']);
    await inside(['link', 'set', 'lo', 'up']);
    await inside(['address', 'add', `${address}/24`, 'dev', 'eth0']);
    await inside(['link', 'set', 'eth0', 'up']);
    await inside(['route', 'add', 'default', 'via', gateway]);
    await run('nsenter', ['-t', String(pid), '--net', 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    const podCidr = await exclusively(async () => {
      const free = await freeSubnet(() => `10.${randomInt(192, 224)}.${randomInt(0, 256)}.0/24`);
      workspace.record({ kind: 'route', destination: free });
      await run('ip', ['route', 'add', free, 'via', address]);
      return free;
    });
    // Machines route to each other's pods directly: forwarding in the root namespace stays as its owner set it.
    const place = { address, podCidr, link };
    for (const other of machines) {
      const isNear = other.podNetwork === podNetwork;
      await inside(['route', 'add', ...routeTo(other.place, isNear)]);
      const back = ['ip', 'route', 'replace', ...routeTo(place, isNear)];
      // The other machine may have been stopped.
      await run('nsenter', ['-t', String(other.pid), '--net', ...back]).catch(() => undefined);
    }
    machines.push({ pid, place, podNetwork });
    return place;
  };
  return { bridge, gateway, subnet, plugIn };
}

/** Networks that do not know each other drop what is sent between them; an answer at once keeps tests short. */
function routeTo({ podCidr, address }: MachinePlace, isNear: boolean): string[] {
  return isNear ? [podCidr, 'via', address] : ['unreachable', podCidr];
}

/** Picking a range and using it must not mix with another run doing the same. */
function exclusively<T>(work: () => Promise<T>): Promise<T> {
  return withFileLock('/run/spillway-network.lock', work, { timeoutMs: 30_000 });
}

/** `10.1.2.0/24` and 7 give `10.1.2.7`. */
function hostOf(subnet: string, host: number): string {
  return subnet.replace(/\.0\/\d+$/, `.${host}`);
}

async function freeSubnet(candidate: () => string): Promise<string> {
  const routes = JSON.parse(await run('ip', ['-j', '-4', 'route', 'show', 'table', 'all'])) as { dst: string }[];
  const taken = routes.map((route) => route.dst).filter((dst) => /^\d/.test(dst));
  for (let attempt = 0; attempt < 500; attempt++) {
    const subnet = candidate();
    if (!taken.some((other) => overlap(subnet, other))) return subnet;
  }
  throw new Error('no free network range: every candidate overlaps a route of this machine');
}

/** Whether two IPv4 ranges (or single addresses) share an address. */
export function overlap(a: string, b: string): boolean {
  const [first, second] = [rangeOf(a), rangeOf(b)];
  return first.from <= second.to && second.from <= first.to;
}

function rangeOf(cidr: string): { from: number; to: number } {
  const [address = '', bits = '32'] = cidr.split('/');
  const value = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const size = 2 ** (32 - Number(bits));
  const from = Math.floor(value / size) * size;
  return { from, to: from + size - 1 };
}
