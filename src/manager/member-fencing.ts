import { monotonic } from '../kube/clock.ts';
import { FencingRecord } from '../members/fencing-record.ts';
import { MemberFencing } from '../members/member-fencing.ts';
import type { ActingMember } from './acting-member.ts';
import type { VirtualNodes } from './virtual-nodes.ts';

/** What an administrator says of virtual nodes of the member that are out of service. */
export function memberFencing(acting: ActingMember, nodes: () => VirtualNodes): MemberFencing {
  const { services, connection, member, standing, event, logger } = acting;
  const { host, hostId, hostIdentity, events } = services;
  const { name, uid } = member().metadata;
  return new MemberFencing({
    record: new FencingRecord({ host, member: { name, uid } }),
    hostId,
    connection,
    tainted: () =>
      new Map(
        nodes()
          .all()
          .map(([node, scope]) => [node, scope?.isOutOfService]),
      ),
    mayWriteHost: () => hostIdentity.problem === undefined && standing.leaseHeld(),
    notEnded: () =>
      nodes()
        .scopes()
        .flatMap(({ pods }) => pods.notEnded),
    changed: (node) => nodes().get(node)?.pods.requeueAll(),
    event: (node, type, reason, message) => {
      event(type, reason, message);
      events.record({ apiVersion: 'v1', kind: 'Node', name: node }, type, reason, message);
    },
    logger,
    monotonic,
  });
}
