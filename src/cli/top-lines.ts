import { isNodeNameOf } from '../api/member-cluster.ts';
import { memberOfNode } from '../api/provider-id.ts';
import { holdsResources } from '../capacity/pod-requests.ts';
import { addTo, NOTHING, parseAmounts, type Amounts } from '../kube/amounts.ts';
import { requestsByNode, roomOf, type FleetFacts, type Room } from './cluster-summary.ts';
import type { Column } from './table.ts';

/** What pods of the host take of a member, or of one of its virtual nodes; `null` where it is not known. */
export interface TopLine {
  name: string;
  /** The member itself, or that of the virtual node. */
  cluster: string;
  /** Pods that hold resources. */
  pods: number | null;
  allocatable: (Room & { pods: number }) | null;
  /** What these pods ask for together. */
  requested: Room | null;
  /** What they use, by the metrics API of the host. */
  used: Room | null;
}

/** Sums for members or for virtual nodes, by name. `used`: by node; undefined: nobody measures, or the viewer may not know. */
export function topLines(
  { members, nodes, pods }: FleetFacts,
  used: ReadonlyMap<string, Amounts> | undefined,
  by: 'members' | 'nodes',
): TopLine[] {
  const asked = pods === undefined ? undefined : requestsByNode(pods);
  const counts = new Map<string, number>();
  for (const { spec } of (pods ?? []).filter(holdsResources))
    counts.set(spec.nodeName ?? '', (counts.get(spec.nodeName ?? '') ?? 0) + 1);
  const line = (cluster: string, name: string, of: readonly string[]): TopLine => {
    const own = (nodes ?? []).filter(({ metadata }) => of.includes(metadata.name));
    const offered = total(own.map(({ status }) => parseAmounts(status?.allocatable)));
    const measured = of.flatMap((node) => used?.get(node) ?? []);
    return {
      name,
      cluster,
      pods: pods === undefined ? null : of.reduce((sum, node) => sum + (counts.get(node) ?? 0), 0),
      allocatable:
        own.length === 0 ? null : { ...roomOf(offered), pods: Number((offered.get('pods') ?? 0n) / 1_000_000_000n) },
      requested: asked === undefined ? null : roomOf(total(of.map((node) => asked.get(node) ?? NOTHING))),
      // A sum of which a part is missing is no sum.
      used: of.length === 0 || measured.length < of.length ? null : roomOf(total(measured)),
    };
  };
  const names = members.map(({ metadata }) => metadata.name).toSorted();
  return names.flatMap((member) => {
    const own = (nodes ?? [])
      .filter((node) => memberOfNode(node) === member && isNodeNameOf(member, node.metadata.name))
      .map(({ metadata }) => metadata.name)
      .toSorted();
    return by === 'nodes' ? own.map((node) => line(member, node, [node])) : [line(member, member, own)];
  });
}

export function topColumns(by: 'members' | 'nodes'): Column<TopLine>[] {
  return [
    { name: 'NAME', text: ({ name }) => name },
    ...(by === 'nodes' ? [{ name: 'CLUSTER', text: ({ cluster }: TopLine) => cluster }] : []),
    { name: 'PODS', text: ({ pods, allocatable }) => `${pods ?? '?'}/${allocatable?.pods ?? '?'}` },
    { name: 'CPU-USED', text: ({ used }) => cores(used) },
    { name: 'CPU-REQUESTED', text: ({ requested }) => cores(requested) },
    { name: 'CPU-ALLOCATABLE', text: ({ allocatable }) => cores(allocatable) },
    { name: 'MEMORY-USED', text: ({ used }) => memory(used) },
    { name: 'MEMORY-REQUESTED', text: ({ requested }) => memory(requested) },
    { name: 'MEMORY-ALLOCATABLE', text: ({ allocatable }) => memory(allocatable) },
    { name: 'CPU-USED%', text: ({ used, allocatable }) => percent(used?.cpu, allocatable?.cpu), wide: true },
    { name: 'MEMORY-USED%', text: ({ used, allocatable }) => percent(used?.memory, allocatable?.memory), wide: true },
  ];
}

function total(all: readonly Amounts[]): Amounts {
  const sum = new Map<string, bigint>();
  for (const one of all) addTo(sum, one);
  return sum;
}

/** As kubectl top has it. */
const cores = (room: Room | null): string => (room === null ? '?' : `${Math.round(room.cpu * 1000)}m`);
const memory = (room: Room | null): string => (room === null ? '?' : `${Math.floor(room.memory / 2 ** 20)}Mi`);

function percent(part: number | undefined, whole: number | undefined): string {
  return part === undefined || whole === undefined || whole === 0 ? '?' : `${Math.floor((part / whole) * 100)}%`;
}
