import type { PodSpec } from '../kube/core-v1.ts';

/** A port that a pod wants of its node itself. */
export interface HostPort {
  /** Protocol and number, such as `TCP/80`. */
  readonly port: string;
  /** `0.0.0.0`: on every address. */
  readonly ip: string;
}

const EVERYWHERE = '0.0.0.0';
const NONE: readonly HostPort[] = [];

/** Host ports of containers and sidecars. With `hostNetwork` every port is one, as the API server fills it in. */
export function hostPortsOf(spec: PodSpec): readonly HostPort[] {
  let found: HostPort[] | undefined;
  const add = ({ ports }: PodSpec['containers'][number]): void => {
    for (const { containerPort, hostPort, hostIP, protocol } of ports ?? []) {
      const number = hostPort ?? (spec.hostNetwork === true ? containerPort : 0);
      if (number <= 0) continue;
      found ??= [];
      found.push({ port: `${withDefault(protocol, 'TCP')}/${String(number)}`, ip: withDefault(hostIP, EVERYWHERE) });
    }
  };
  for (const container of spec.containers) add(container);
  for (const container of spec.initContainers ?? []) if (container.restartPolicy === 'Always') add(container);
  return found ?? NONE;
}

function withDefault(text: string | undefined, otherwise: string): string {
  return text === undefined || text === '' ? otherwise : text;
}

/** The host ports taken on one node. */
export class TakenPorts {
  /** By port, then by address: how many pods hold it. More than one only while pods end. */
  readonly #holders = new Map<string, Map<string, number>>();

  add({ port, ip }: HostPort): void {
    const byIp = this.#holders.get(port) ?? new Map<string, number>();
    this.#holders.set(port, byIp);
    byIp.set(ip, (byIp.get(ip) ?? 0) + 1);
  }

  remove({ port, ip }: HostPort): void {
    const byIp = this.#holders.get(port);
    const left = (byIp?.get(ip) ?? 0) - 1;
    if (left > 0) byIp?.set(ip, left);
    else byIp?.delete(ip);
    if (byIp?.size === 0) this.#holders.delete(port);
  }

  /** A port on every address stands in the way of the same port on any. */
  conflicts({ port, ip }: HostPort): boolean {
    const byIp = this.#holders.get(port);
    return byIp !== undefined && (ip === EVERYWHERE || byIp.has(ip) || byIp.has(EVERYWHERE));
  }

  get isEmpty(): boolean {
    return this.#holders.size === 0;
  }
}
