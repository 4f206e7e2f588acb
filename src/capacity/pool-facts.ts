import { GROUP } from '../api/marks.ts';
import type { Node, NodeSystemInfo } from '../kube/core-v1.ts';

/** What the nodes of a pool have in common, for the virtual node that stands for them. */
export interface PoolFacts {
  os: string | undefined;
  arch: string | undefined;
  /** Labels on which all nodes of the pool agree, fit to be copied to another node. */
  labels: Record<string, string>;
  region: string | undefined;
  zone: string | undefined;
  /** Versions as most nodes have them; undefined without any node. */
  nodeInfo: NodeSystemInfo | undefined;
  /** What the agents of all nodes say that they can do (KEP-5328), in no special order. */
  declaredFeatures: readonly string[];
}

const OS_LABEL = 'kubernetes.io/os';
const ARCH_LABEL = 'kubernetes.io/arch';
const REGION_LABEL = 'topology.kubernetes.io/region';
const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Labels that speak of one node, or that the virtual node gets in another way. */
const NEVER_COPIED: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'type',
  OS_LABEL,
  ARCH_LABEL,
  REGION_LABEL,
  ZONE_LABEL,
  'node.kubernetes.io/exclude-from-external-load-balancers',
  'node.kubernetes.io/exclude-disruption',
]);
/** Kubernetes' own labels outside the namespaces kubelet. and node.kubernetes.io that a node may put on itself. */
const NODE_MAY_SET: ReadonlySet<string> = new Set([
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
]);

/** Facts about the nodes that belong to a pool, usable at the moment or not, so that they do not change with every outage. */
export function poolFacts(nodes: readonly Node[]): PoolFacts {
  const labels = commonLabels(nodes);
  const infos = nodes.map((node) => node.status?.nodeInfo).filter((info) => info !== undefined);
  return {
    os: mostCommon(nodes.map((node) => node.metadata.labels?.[OS_LABEL] ?? node.status?.nodeInfo?.operatingSystem)),
    arch: mostCommon(nodes.map((node) => node.metadata.labels?.[ARCH_LABEL] ?? node.status?.nodeInfo?.architecture)),
    region: labels.get(REGION_LABEL),
    zone: labels.get(ZONE_LABEL),
    labels: Object.fromEntries([...labels].filter(([key, value]) => isCopied(key, value, nodes))),
    nodeInfo: infos.length === 0 ? undefined : commonInfo(infos),
    declaredFeatures: commonFeatures(nodes),
  };
}

function commonLabels(nodes: readonly Node[]): Map<string, string> {
  const [first, ...others] = nodes;
  const common = new Map(Object.entries(first?.metadata.labels ?? {}));
  for (const node of others) {
    const labels = node.metadata.labels ?? {};
    for (const [key, value] of common) {
      if (!Object.hasOwn(labels, key) || labels[key] !== value) common.delete(key);
    }
  }
  return common;
}

function commonFeatures(nodes: readonly Node[]): string[] {
  const [first, ...others] = nodes.map(({ status }) => new Set(status?.declaredFeatures));
  return [...(first ?? [])].filter((feature) => others.every((features) => features.has(feature)));
}

function isCopied(key: string, value: string, nodes: readonly Node[]): boolean {
  if (NEVER_COPIED.has(key)) return false;
  const slash = key.indexOf('/');
  const domain = slash < 0 ? '' : key.slice(0, slash);
  if (domain === GROUP || domain.endsWith(`.${GROUP}`)) return false;
  if (isIn(domain, 'kubernetes.io') || isIn(domain, 'k8s.io')) {
    // NodeRestriction refuses the whole write of a node's identity for any other of these.
    const allowed = isIn(domain, 'kubelet.kubernetes.io') || isIn(domain, 'node.kubernetes.io');
    if (!allowed && !NODE_MAY_SET.has(key)) return false;
  }
  // In a pool of one node everything agrees; what repeats the node's name is surely about that node.
  return !nodes.some(
    ({ metadata }) => value === metadata.name || value === metadata.labels?.['kubernetes.io/hostname'],
  );
}

function isIn(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`);
}

/** Identifiers of one machine stay empty: the API wants the fields, but the virtual node is no machine. */
function commonInfo(infos: readonly NodeSystemInfo[]): NodeSystemInfo {
  const of = (field: keyof NodeSystemInfo): string => mostCommon(infos.map((info) => info[field])) ?? '';
  return {
    machineID: '',
    systemUUID: '',
    bootID: '',
    kernelVersion: of('kernelVersion'),
    osImage: of('osImage'),
    containerRuntimeVersion: of('containerRuntimeVersion'),
    kubeletVersion: of('kubeletVersion'),
    kubeProxyVersion: of('kubeProxyVersion'),
    operatingSystem: of('operatingSystem'),
    architecture: of('architecture'),
  };
}

/** The value that occurs most; of equals the first in order of text, so that the answer is stable. */
function mostCommon(values: readonly (string | undefined)[]): string | undefined {
  const counts = new Map<string, number>();
  for (const value of values) {
    if (value !== undefined && value !== '') counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const [best] = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return best?.[0];
}
