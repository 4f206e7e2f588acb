import { exchangesServices, MEMBER_CLUSTERS, parseMemberCluster } from '../api/member-cluster.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { KubeObject } from '../kube/object.ts';
import { isApplied } from './apply.ts';
import { CliError } from './cli-error.ts';
import { nameOf, knownResource } from './known-kinds.ts';
import { manifestObjects, type ManifestObject } from './manifests.ts';
import { MissingRight, type Viewer } from './viewer.ts';

export const UPSTREAM_KINDS = 'multi-cluster/crds.yaml';
const PAGE = 'concepts/multi-cluster-services.md';

/**
 * ServiceExports and ServiceImports are kinds of Kubernetes' own (sigs.k8s.io/mcs-api): whoever else uses them would lose every object of
 * them with the kind, so nothing here ever deletes one.
 */
export function isUpstreamKind({ kind, metadata }: ManifestObject): boolean {
  return kind === 'CustomResourceDefinition' && metadata.name.endsWith('.multicluster.x-k8s.io');
}

/** Why it was not deleted. */
export function whyItStays(kind: ManifestObject): string {
  return `note: ${nameOf(kind)} stays: with it every object of that kind would go`;
}

/** Upstream kinds among some objects that the cluster has from somebody else, in a version that may be newer. Throws CliError. */
export async function kindsOfOthers(
  cluster: Pick<Viewer, 'tryGet'>,
  objects: readonly ManifestObject[],
): Promise<readonly ManifestObject[]> {
  return await broughtBy('others', cluster, objects);
}

/** Those that this program has brought it. Throws CliError. */
export async function kindsThatStay(cluster: Pick<Viewer, 'tryGet'>): Promise<readonly ManifestObject[]> {
  return await broughtBy('us', cluster, manifestObjects(UPSTREAM_KINDS));
}

async function broughtBy(
  whom: 'us' | 'others',
  cluster: Pick<Viewer, 'tryGet'>,
  objects: readonly ManifestObject[],
): Promise<ManifestObject[]> {
  const brought: ManifestObject[] = [];
  for (const kind of objects.filter(isUpstreamKind)) {
    const found = await cluster.tryGet<KubeObject>(knownResource(kind), { name: kind.metadata.name });
    if (found === undefined || found instanceof MissingRight) continue;
    if (isApplied(found) === (whom === 'us')) brought.push(kind);
  }
  return brought;
}

/** Throws CliError while a member takes part: without the rights nothing of it could be taken away again. */
export async function checkNobodyExchanges(host: Pick<Viewer, 'list'>): Promise<void> {
  const known = await host.list<KubeObject>(MEMBER_CLUSTERS);
  const taking = known.flatMap((object) => {
    const parsed = parseMemberCluster(object);
    if (!('member' in parsed)) return [];
    const { member } = parsed;
    const told = conditionOf(member, 'ServicesExchanged');
    const isClean = told === undefined || told.reason === 'NotExchanged';
    return exchangesServices(member) || !isClean ? [member.metadata.name] : [];
  });
  if (taking.length === 0) return;
  throw new CliError('the rights to exchange Services are in use', {
    reason: `${taking.join(', ')} ${taking.length === 1 ? 'takes' : 'take'} part, and what stands in the clusters for it could not be taken away any more`,
    fix: 'set spec.services.multiCluster: None of each first, and wait until its condition ServicesExchanged says NotExchanged',
    page: PAGE,
  });
}
