import { BlockList, isIP } from 'node:net';
import { memberOfNode } from '../../api/provider-id.ts';
import type { Node, Pod } from '../../kube/core-v1.ts';
import type { KubeObject } from '../../kube/object.ts';
import { ok, warning, type Finding } from './finding.ts';

/** A ServiceCIDR of networking.k8s.io, as far as it is read here. */
export interface ServiceRange extends KubeObject {
  spec?: { cidrs?: string[] };
}

interface NetworkFacts {
  /** Real ones and virtual ones. */
  nodes: readonly Node[];
  /** On virtual nodes. */
  pods: readonly Pod[];
  services: readonly ServiceRange[];
}

/**
 * Whether addresses of pods in members are this cluster's own as well: by address, such a pod cannot be told from one that is here. Seen
 * by the addresses that pods have, as no API says which ranges a cluster uses.
 */
export function networksApart({ nodes, pods, services }: NetworkFacts): Finding[] {
  const check = 'networks';
  const ranges = [
    ...nodes
      .filter((node) => memberOfNode(node) === undefined)
      .flatMap(({ metadata, spec }) =>
        podRangesOf(spec).map((cidr) => ({ cidr, whose: `pods of node ${metadata.name}` })),
      ),
    ...services.flatMap(({ spec }) => (spec?.cidrs ?? []).map((cidr) => ({ cidr, whose: 'Services' }))),
  ].flatMap(({ cidr, whose }) => {
    const list = rangeOf(cidr);
    return list === undefined ? [] : [{ cidr, whose, list }];
  });
  const memberByNode = new Map(nodes.map((node) => [node.metadata.name, memberOfNode(node)]));
  const found = new Map<string, Finding>();
  for (const { metadata, spec, status } of pods) {
    const member = memberByNode.get(spec.nodeName ?? '');
    if (member === undefined || spec.hostNetwork === true || found.has(member)) continue;
    const address = status?.podIP ?? '';
    const range = ranges.find(
      ({ list }) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'),
    );
    if (range === undefined) continue;
    found.set(
      member,
      warning(
        check,
        `pods of ${member} have addresses that this cluster uses itself: ${metadata.namespace ?? ''}/${metadata.name} has ${address}, and ` +
          `${range.cidr} is for ${range.whose}. Who calls such a pod by its address reaches another one, or nobody`,
        `give pods of the two clusters ranges that do not overlap if they are to reach each other by address; logs, exec and port-forward work as they are`,
        'concepts/services.md',
      ),
    );
  }
  return found.size > 0
    ? [...found.values()]
    : ranges.length === 0 || pods.length === 0
      ? []
      : [
          ok(
            check,
            `of ${pods.length === 1 ? '1 pod' : `${pods.length} pods`} in members that were looked at, none has an address of this cluster's own`,
          ),
        ];
}

function podRangesOf(spec: Node['spec']): string[] {
  const { podCIDRs, podCIDR } = (spec ?? {}) as { podCIDRs?: string[]; podCIDR?: string };
  return podCIDRs ?? (podCIDR === undefined ? [] : [podCIDR]);
}

function rangeOf(cidr: string): BlockList | undefined {
  const [address = '', bits = ''] = cidr.split('/');
  const family = isIP(address);
  const prefix = Number(bits);
  if (family === 0 || !/^\d+$/.test(bits) || prefix > (family === 6 ? 128 : 32)) return undefined;
  const list = new BlockList();
  list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4');
  return list;
}
