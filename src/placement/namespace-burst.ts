import { BURST_LABEL } from '../api/marks.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import { placement } from '../api/placement.ts';
import { compilePlacement } from './compiled-placement.ts';
import type { CompiledPlacement } from './compiled-placement.ts';
import type { OwnerChain } from './owner-chain.ts';

let compiled: CompiledPlacement | undefined;

/** What the label of a namespace stands for: local first, then any member by score. */
export function burstPlacement(): CompiledPlacement {
  compiled ??= compilePlacement(
    placement.parse({
      clusterAffinity: { clusterNames: [LOCAL], overflowAffinities: [{ affinityName: 'members', exclude: [LOCAL] }] },
    }),
  );
  return compiled;
}

/** Whether pods may leave the host because of the label of their namespace. */
export function mayBurst(namespaceLabels: Readonly<Record<string, string>> | undefined, chain: OwnerChain): boolean {
  if (namespaceLabels?.[BURST_LABEL] !== 'enabled') return false;
  return !chain.some(({ metadata }) => metadata.labels?.[BURST_LABEL] === 'disabled');
}

/** Whether every pod of the namespace is given the toleration of virtual nodes, so that it says nothing about one pod. */
export function givesToleration(namespaceLabels: Readonly<Record<string, string>> | undefined): boolean {
  const value = namespaceLabels?.[BURST_LABEL];
  return value === 'enabled' || value === 'policies';
}
