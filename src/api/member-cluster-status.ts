import { z } from 'zod';
import { clusterTaint } from './cluster-taint.ts';
import { conditions, observedGeneration } from './conditions.ts';
import { fencingStatus } from './fencing.ts';
import { listMap, quantityMap } from './schema-parts.ts';

/** Of things that may remain, by name. */
export const MOST_NAMED = 500;
/** Taints by policies. */
export const MOST_TAINTS = 64;
/** Names of virtual nodes. */
const MOST_TAKEN = 100;
const podCount = (description: string) => z.int().min(0).describe(description);
export const memberClusterStatus = z
  .object({
    observedGeneration: observedGeneration(),
    conditions: conditions(
      'Ready: pods can be sent here. Reachable: probes succeed. CredentialsValid: the kubeconfig is usable and accepted. ' +
        'CapacityFresh: allocatable is up to date. IdentityPinned: it is still the cluster it was at first contact. ' +
        'NodesRetired: no virtual node is left that is not in the spec any more. ' +
        'BudgetsMirrored: PodDisruptionBudgets of the host hold for evictions made in the member. ' +
        'ServicesMirrored: Services of the host stand in the member. ' +
        'PodSecuritySet: pods with power over their nodes run only in namespaces of the member that set a Pod Security level. ' +
        'ServicesExchanged: Services that ServiceExports ask for are exchanged between the member, the host and other members. ' +
        'OutOfService: an administrator says that nothing runs on some of its virtual nodes any more, and that counts. ' +
        'ClusterUnique: no other MemberCluster stands for the same cluster. ' +
        'MovesAllowed: not so many members are lost at once that pods of none are moved for it. ' +
        'Leaving: it was deleted, and what is still there of it is why it has not gone yet.',
    ),
    version: z.string().exactOptional().describe('Kubernetes version of the member.'),
    identity: z
      .string()
      .exactOptional()
      .describe('UID of the kube-system namespace of the member, pinned at first contact.'),
    credentialsVersion: z
      .string()
      .max(253)
      .exactOptional()
      .describe(
        'resourceVersion of the Secret by whose content the member was asked last: what the conditions say is found out by that.',
      ),
    allocatable: quantityMap().exactOptional().describe('What all virtual nodes of the member offer together.'),
    largestFreeSlot: quantityMap()
      .exactOptional()
      .describe('The most that one node of the member has free for ordinary pods, each resource by itself.'),
    fits: z
      .array(
        z.object({
          requests: quantityMap().describe('What one such pod asks for.'),
          where: z.string().max(256).exactOptional().describe('Node labels that such pods ask for.'),
          slots: z.int().min(0).describe('How many more fit, rounded down to two digits.'),
        }),
      )
      .max(8)
      .exactOptional()
      .meta({
        description: 'How many more pods of the shapes that were asked about last the member can take.',
        'x-kubernetes-list-type': 'atomic',
      }),
    pods: z
      .object({
        running: podCount('Pods in phase Running.'),
        pending: podCount('Pods in phase Pending.'),
        total: podCount('All pods, finished ones included.'),
      })
      .exactOptional()
      .describe('Pods of the host that run in the member.'),
    takenNames: z.array(z.string().max(253)).max(MOST_TAKEN).exactOptional().meta({
      description: 'Names of its virtual nodes that real nodes have. Pods on these are none of its business.',
      'x-kubernetes-list-type': 'set',
    }),
    taints: z
      .array(
        clusterTaint.extend({
          policy: z.string().min(1).max(253).describe('ClusterTaintPolicy that added it, and removes it.'),
          timeAdded: z.iso.datetime().meta({ description: 'When it was added.', format: 'date-time' }),
        }),
      )
      .max(MOST_TAINTS)
      .exactOptional()
      .meta({
        description: 'Taints of the member as a whole that policies added, besides spec.clusterTaints.',
        ...listMap('key', 'effect'),
      }),
    fencing: fencingStatus.exactOptional(),
    leaving: z
      .object({
        pods: podCount('Pods on its virtual nodes, and copies of such that are gone.'),
        copies: podCount('Copies of ConfigMaps and Secrets, and disruption budgets.'),
        claims: podCount('Claims of the host whose data are there.'),
        mayRemain: z.array(z.string().max(600)).max(MOST_NAMED).exactOptional().meta({
          description:
            'What may remain in the member, as far as it is known, at the end or once it was given up: kind, namespace and name, and why.',
          'x-kubernetes-list-type': 'atomic',
        }),
      })
      .exactOptional()
      .describe('What is left of a MemberCluster that was deleted.'),
  })
  .describe('What Spillway found. Written by Spillway only.');

export type MemberClusterStatus = z.output<typeof memberClusterStatus>;
export type PolicyTaint = NonNullable<MemberClusterStatus['taints']>[number];
