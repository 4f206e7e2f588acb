import { cleanText } from '../kube/clean-text.ts';
import type { KubeObject } from '../kube/object.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { MEMBER_ACCOUNT, OPTIONAL_GRANTS, optionalGrants, type OptionalGrants } from './member-grant.ts';
import type { ManifestObject } from './manifests.ts';
import type { Viewer } from './viewer.ts';

/** A ConfigMap in the member for each host that has joined it: hosts share one account, which goes with the last of them. */
const PREFIX = 'joined-by-';
const LONGEST_NAME = 253;

/** What a member remembers of a host that has joined it; of what is optional, whether any join has granted it. */
export interface GrantRecord extends OptionalGrants {
  readonly hostId: string;
  /** The MemberCluster in that host. */
  readonly member: string;
  /** Namespaces that were lent to it, by any join. */
  readonly lent: readonly string[];
  /** Whether any join let it use the whole member. */
  readonly dedicated: boolean;
}

/** The object that remembers it. */
export function recordOf({ hostId, member, lent, dedicated, ...optional }: GrantRecord): ManifestObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: MEMBER_ACCOUNT.namespace, name: `${PREFIX}${hostId}` },
    data: {
      member,
      lent: lent.toSorted().join(' '),
      dedicated: String(dedicated),
      ...Object.fromEntries(OPTIONAL_GRANTS.map((one) => [one, String(optional[one])])),
    },
  } as ManifestObject;
}

/** Of all hosts. Throws CliError. */
export async function grantRecords(member: Viewer): Promise<GrantRecord[]> {
  const stored = await member.list<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, {
    namespace: MEMBER_ACCOUNT.namespace,
  });
  return stored
    .filter(({ metadata }) => metadata.name.startsWith(PREFIX))
    .map(({ metadata, data }) => ({
      hostId: metadata.name.slice(PREFIX.length),
      member: cleanText(data?.['member'] ?? '', LONGEST_NAME),
      lent: (data?.['lent'] ?? '').split(' ').filter((name) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)),
      // One of a version that did not say so may have each, if only by hand.
      dedicated: data?.['dedicated'] !== 'false',
      ...optionalGrants((one) => data?.[one] !== 'false'),
    }));
}
