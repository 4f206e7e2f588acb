import { CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES } from '../../api/override-policy.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../../api/placement-policy.ts';
import type { KubeObject } from '../../kube/object.ts';
import { apiVersionOf, type Resource } from '../../kube/resource.ts';
import { CliError } from '../cli-error.ts';
import { EXIT } from '../exit-code.ts';
import type { NamespaceFlags } from '../flags.ts';
import { manifestText } from '../manifest-file.ts';
import { manifestObjects } from '../simulate/manifest-objects.ts';
import type { Viewer } from '../viewer.ts';

const TYPES: Readonly<Record<string, Resource>> = {
  placementpolicy: PLACEMENT_POLICIES,
  placementpolicies: PLACEMENT_POLICIES,
  pp: PLACEMENT_POLICIES,
  clusterplacementpolicy: CLUSTER_PLACEMENT_POLICIES,
  clusterplacementpolicies: CLUSTER_PLACEMENT_POLICIES,
  cpp: CLUSTER_PLACEMENT_POLICIES,
  overridepolicy: OVERRIDE_POLICIES,
  overridepolicies: OVERRIDE_POLICIES,
  op: OVERRIDE_POLICIES,
  clusteroverridepolicy: CLUSTER_OVERRIDE_POLICIES,
  clusteroverridepolicies: CLUSTER_OVERRIDE_POLICIES,
  cop: CLUSTER_OVERRIDE_POLICIES,
};

/** A policy of either family, and of which kind it is. */
export interface NamedPolicy {
  policy: KubeObject;
  resource: Resource;
}

/** Every policy there is, or of one kind: those of the cluster, and those of all namespaces. Throws CliError. */
export async function allPolicies(
  host: Viewer,
  type: string | undefined,
  { filename }: { filename?: string },
): Promise<NamedPolicy[]> {
  const one = type === undefined ? undefined : resourceOf(type);
  if (filename !== undefined || (type !== undefined && one === undefined)) {
    const what = filename === undefined ? type : 'that of a manifest';
    throw new CliError(`with --all-namespaces it takes no policy by its name, and ${what} is one`, {
      exitCode: EXIT.usage,
      fix: 'leave it out, or name a kind: kubectl spillway explain-policy overridepolicies -A',
    });
  }
  const kinds = one === undefined ? [...new Set(Object.values(TYPES))] : [one];
  const found: NamedPolicy[] = [];
  for (const resource of kinds) {
    for (const policy of await host.list<KubeObject>(resource)) found.push({ policy, resource });
  }
  return found;
}

function resourceOf(type: string): Resource | undefined {
  return TYPES[type.toLowerCase().replace(/\.spillway\.dev$/, '')];
}

/** The one that is named, or that of the manifest. Throws CliError. */
export async function namedPolicy(
  host: Viewer,
  named: string | undefined,
  flags: NamespaceFlags & { filename?: string },
): Promise<NamedPolicy> {
  const namespace = flags.namespace ?? host.namespace;
  if ((named === undefined) === (flags.filename === undefined)) {
    throw new CliError('it takes either the name of a policy or a manifest', {
      exitCode: EXIT.usage,
      fix: 'kubectl spillway explain-policy web, or: kubectl spillway explain-policy -f policy.yaml',
    });
  }
  if (named === undefined) return policyIn(await manifestText(flags.filename ?? ''), namespace);
  const [type, name, more] = named.includes('/') ? named.split('/') : ['placementpolicy', named];
  const resource = resourceOf(type ?? '');
  if (resource === undefined || name === undefined || name === '' || more !== undefined) {
    throw new CliError(`${named} is not the name of a policy`, {
      exitCode: EXIT.usage,
      fix: 'name it like web, placementpolicy/web, clusterplacementpolicy/all, overridepolicy/gold or clusteroverridepolicy/eu-registry',
    });
  }
  const policy = await host.get<KubeObject>(resource, resource.namespaced ? { namespace, name } : { name });
  return { policy, resource };
}

function policyIn(text: string, fallback: string): NamedPolicy {
  const kinds = new Set(Object.values(TYPES));
  const policies = manifestObjects(text).flatMap((object) => {
    const resource = [...kinds].find((one) => one.kind === object.kind && apiVersionOf(one) === object.apiVersion);
    return resource === undefined ? [] : [{ object, resource }];
  });
  const [found, another] = policies;
  if (found === undefined || another !== undefined) {
    throw new CliError(`the manifest has ${found === undefined ? 'no policy' : 'more than one policy'}`, {
      exitCode: EXIT.usage,
      fix: 'name a file with one PlacementPolicy, ClusterPlacementPolicy, OverridePolicy or ClusterOverridePolicy',
    });
  }
  const { metadata, ...rest } = found.object;
  const { name, namespace, labels = {} } = metadata;
  const place = found.resource.namespaced ? { namespace: namespace ?? fallback } : {};
  return { policy: { ...rest, metadata: { name, labels, ...place } }, resource: found.resource };
}
