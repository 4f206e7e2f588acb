import { setTimeout as sleep } from 'node:timers/promises';
import { MEMBER_LABEL } from '../api/marks.ts';
import { isLeaving, MEMBER_CLUSTERS, type MemberCluster } from '../api/member-cluster.ts';
import { memberOfNode } from '../api/provider-id.ts';
import type { Node } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { NODES } from '../kube/resource.ts';
import { someOf } from '../kube/some-of.ts';
import { MissingRight, type Viewer } from './viewer.ts';

const LOOK_MS = 1_000;
/** The manager cordons a node again that somebody uncordoned; one that is open for so many looks in a row it does not. */
const OPEN_LOOKS = 5;

/** Virtual nodes of a member that take new pods, by name. Throws CliError. */
export async function openNodes(host: Viewer, name: string): Promise<string[]> {
  const nodes = await host.list<Node>(NODES, { labelSelector: MEMBER_LABEL });
  return nodes
    .filter((node) => memberOfNode(node) === name && node.spec?.unschedulable !== true)
    .map(({ metadata }) => metadata.name);
}

/**
 * By what a member that was cordoned takes new pods again, in words; undefined: it does not. `isMeant`: it is no single node, which the manager
 * cordons again. Throws CliError.
 */
export async function whyItTakesPods(
  host: Viewer,
  name: string,
): Promise<{ why: string; isMeant: boolean } | undefined> {
  const member = await host.tryGet<Partial<MemberCluster> & KubeObject>(MEMBER_CLUSTERS, { name });
  // One that is gone, or goes, takes none.
  if (member === undefined || member instanceof MissingRight || isLeaving(member)) return undefined;
  if (member.spec?.unschedulable !== true)
    return { why: 'spec.unschedulable of its MemberCluster was taken back', isMeant: true };
  const open = await openNodes(host, name);
  return open.length === 0
    ? undefined
    : { why: `${someOf(open)} ${open.length === 1 ? 'is' : 'are'} not cordoned any more`, isMeant: false };
}

/** Looks until the member takes new pods again, and says by what; undefined once `signal` ends it. */
export async function untilItTakesPods(host: Viewer, name: string, signal: AbortSignal): Promise<string | undefined> {
  for (let looks = 0; !signal.aborted;) {
    // A look that fails says nothing; what goes on besides tells of it if that lasts.
    const found = await whyItTakesPods(host, name).catch(() => undefined);
    looks = found === undefined ? 0 : looks + 1;
    if (found !== undefined && (found.isMeant || looks >= OPEN_LOOKS)) return found.why;
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
  return undefined;
}
