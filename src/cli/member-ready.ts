import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { conditionOf, isReady } from '../kube/conditions.ts';
import type { Node, Secret } from '../kube/core-v1.ts';
import { NODES, SECRETS } from '../kube/resource.ts';
import type { Cli } from './cli.ts';
import { SYSTEM_NAMESPACE } from './installation.ts';
import type { KnownMember } from './joined-member.ts';
import { MissingRight, type Viewer } from './viewer.ts';
import { waitFor, type Look } from './wait-for.ts';

/** A member may have no room at all: it is waited for so long after the node is Ready, in ms. */
const ROOM_MS = 10_000;

/** Until the member is Ready by what the Secret says now, and so are its nodes. Throws CliError. */
export async function untilMemberReady(
  cli: Cli,
  host: Viewer,
  { name, secret }: { name: string; secret: { namespace: string; name: string } },
  timeoutMs: number,
): Promise<KnownMember> {
  let readySince: number | undefined;
  const look = async (): Promise<Look<KnownMember>> => {
    // First: what the manager has said since is of this one, or of a newer one.
    const credentials = await host.tryGet<Secret>(SECRETS, secret);
    const member = await host.get<KnownMember>(MEMBER_CLUSTERS, { name });
    const { status, metadata } = member;
    const ready = conditionOf(member, 'Ready');
    if (status === undefined || ready === undefined || status.observedGeneration !== metadata.generation) {
      return { waitingFor: `the manager to look at ${name} (it runs? kubectl get pods -n ${SYSTEM_NAMESPACE})` };
    }
    if (isOfFormer(status.credentialsVersion, credentials)) {
      const what = `the manager to reach ${name} by what Secret ${secret.namespace}/${secret.name} says now`;
      // Of a Secret that cannot be used the conditions say why, but it is never the one that the member was asked by.
      const why = ready.status === 'True' ? '' : ` (it is not Ready: ${ready.reason}: ${ready.message})`;
      return { waitingFor: `${what}${why}` };
    }
    if (ready.status !== 'True') return { waitingFor: `${name} is not Ready: ${ready.reason}: ${ready.message}` };
    const nodes = await host.tryList<Node>(NODES, { labelSelector: `spillway.dev/member=${name}` });
    if (nodes instanceof MissingRight) return { value: member };
    const waiting = nodes.find((node) => !isReady(node));
    if (nodes.length === 0 || waiting !== undefined)
      return { waitingFor: `node ${waiting?.metadata.name ?? name} is not Ready yet` };
    readySince ??= performance.now();
    const isKnown = Number(status.allocatable?.pods ?? 0) > 0;
    if (!isKnown && performance.now() - readySince < ROOM_MS) return { waitingFor: `what room there is in ${name}` };
    return { value: member };
  };
  const fix = `see kubectl describe membercluster ${name}; what is applied stays, and this command can be repeated`;
  return await waitFor(cli.terminal, `${name} is Ready`, timeoutMs, look, fix);
}

/** Whether a status speaks of what a Secret said before. Managers of former versions do not say of which they do. */
function isOfFormer(version: string | undefined, secret: Secret | MissingRight | undefined): boolean {
  if (version === undefined || secret === undefined || secret instanceof MissingRight) return false;
  return secret.metadata.resourceVersion !== version;
}
