import { z } from 'zod';
import { GROUP, VIRTUAL_NODE_TAINT } from './marks.ts';
import { cel, dnsLabel, labelKey, labelMap, labelValue, listMap, quantityMap } from './schema-parts.ts';

/** With the name of its member and `-`, the name of a pool's virtual node fits the 63 characters of a label. */
export const MAX_POOL_NAME = 20;

const taint = z.object({
  key: labelKey().describe('Taint key.'),
  value: labelValue().exactOptional().describe('Taint value.'),
  effect: z
    .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
    .describe('What happens to pods that do not tolerate the taint.'),
});
const noTaintOfOurs = {
  rule: `self.all(t, !t.key.startsWith('${GROUP}/'))`,
  message: `taint keys of ${GROUP} are set by Spillway itself`,
};
export const taints = z
  .array(taint)
  .max(32)
  .default([])
  .meta({
    description:
      `More taints for the virtual nodes, besides ${VIRTUAL_NODE_TAINT} (see taintMode). Nodes of the member with these very taints ` +
      'count as capacity, since pods that come tolerate them. NoExecute stands on the Node as NoSchedule, and pods that do not ' +
      'tolerate it are moved elsewhere by the descheduler, one after the other.',
    ...listMap('key', 'effect'),
    ...cel(noTaintOfOurs),
  });

const poolTaints = z
  .array(taint)
  .max(8)
  .default([])
  .meta({
    description:
      'Taints of the nodes of this pool. They stand on the virtual node, so that only pods come that tolerate them, and nodes of the member ' +
      'that have no other taints of effect NoSchedule or NoExecute count as capacity. Besides those of spec.taints, one of the same key and effect excepted.',
    ...listMap('key', 'effect'),
    ...cel(noTaintOfOurs, {
      rule: "self.all(t, !t.key.startsWith('node.kubernetes.io/') && !t.key.startsWith('node.cloudprovider.kubernetes.io/'))",
      message: 'taints of node.kubernetes.io and node.cloudprovider.kubernetes.io tell of states that pass',
    }),
  });

export const daemonSets = () =>
  z
    .enum(['Ignore', 'Run'])
    .describe(
      'Pods of DaemonSets that tolerate the taints of virtual nodes. Ignore: they do not run in the member, and are shown ' +
        'as ready so that no roll-out waits for them. Run: one per virtual node runs in the member, on some node of it.',
    );

export const virtualNodes = z
  .array(
    z.object({
      name: dnsLabel(MAX_POOL_NAME).describe(`Name of the pool. Its virtual node is called <MemberCluster>-<name>.`),
      nodeSelector: labelMap()
        .default({})
        .describe('Labels that a node of the member must carry to belong to this pool. Empty: every node.'),
      taints: poolTaints,
      daemonSets: daemonSets().exactOptional().meta({
        description: 'What becomes of pods of DaemonSets on this virtual node. Default: as spec.daemonSets says.',
      }),
    }),
  )
  .max(16)
  .default([])
  .meta({
    description:
      'Node pools of the member, each shown as a virtual node of its own. ' +
      'Empty: one virtual node for all nodes, named as the MemberCluster.',
    ...listMap('name'),
  });

const elasticGroup = z.object({
  name: dnsLabel().describe('Name of the group, for messages.'),
  resources: quantityMap().describe('What one of its nodes offers to pods, as in status.allocatable of a node.'),
  maxNodes: z.int().min(1).max(1000).describe('How many nodes the group can have, those included that are there.'),
  leadTimeSeconds: z
    .int()
    .min(0)
    .max(86_400)
    .default(300)
    .meta({ description: 'How long pods may have to wait for a new node.', unit: 'seconds' }),
  nodeLabels: labelMap()
    .default({})
    .describe('Labels of its nodes. Those that are there are counted by them; empty: every node is of the group.'),
  taints: z
    .array(taint)
    .max(32)
    .default([])
    .describe(
      'Taints of its nodes. With one of effect NoSchedule or NoExecute they count in pools only that have it too.',
    ),
});

export const capacity = z
  .object({
    excludeNodes: z
      .object({ matchLabels: labelMap().describe('Nodes with all of these labels are left out.') })
      .exactOptional()
      .describe('Nodes of the member that do not count as capacity.'),
    headroom: quantityMap().default({}).describe('Kept free for the member itself in every pool, by resource name.'),
    caps: quantityMap().default({}).describe('The most that a virtual node offers, by resource name.'),
    elastic: z
      .array(elasticGroup)
      .max(8)
      .default([])
      .meta({
        description:
          'Nodes that the member gets by itself when pods need them, such as autoscaled node groups. ' +
          'What they would offer counts as capacity, but pods go to nodes that are there first.',
        ...listMap('name'),
      }),
  })
  .prefault({})
  .describe('What part of the member the virtual nodes offer.');
