import {
  CLUSTER_PLACEMENT_POLICIES,
  PLACEMENT_POLICIES,
  type PlacementPolicy,
  type PlacementPolicyStatus,
} from '../api/placement-policy.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { patch } from '../kube/verbs.ts';
import { policyStatus } from '../placement/policy-conditions.ts';
import { policyWarnings, selectorWarnings } from '../placement/policy-warnings.ts';
import type { HostView } from './host-view.ts';

export interface PolicyStatusWriterOptions {
  host: KubeClient;
  view: HostView;
  /** Wall clock in ms. */
  clock: () => number;
}

/** Says on each placement policy whether it is in use, and what in it contradicts itself or the clusters there are. */
export class PolicyStatusWriter {
  readonly #o: PolicyStatusWriterOptions;

  constructor(options: PolicyStatusWriterOptions) {
    this.#o = options;
  }

  /** `key`: namespace and name, or the name alone of a ClusterPlacementPolicy. Throws what the host answers. */
  async bringUpToDate(key: string, signal: AbortSignal): Promise<void> {
    const { host, view, clock } = this.#o;
    const known = view.policies.get(key);
    if (known === undefined) return;
    const { metadata, policy, problems, status: before } = known;
    const status = policyStatus({
      generation: metadata.generation ?? 0,
      problems,
      warnings: policy === undefined || problems.length > 0 ? [] : this.#warnings(policy),
      before,
      now: clock(),
    });
    if (isSame(before, status)) return;
    const { namespace, name } = metadata;
    const resource = namespace === undefined ? CLUSTER_PLACEMENT_POLICIES : PLACEMENT_POLICIES;
    try {
      await patch(
        host,
        resource,
        { namespace, name },
        { status },
        { type: 'merge', subresource: 'status' },
        { signal },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  #warnings(policy: PlacementPolicy): string[] {
    const { nodes, owners } = this.#o.view;
    const follows = (apiVersion: string, kind: string): boolean => owners.follows(apiVersion, kind);
    return [...selectorWarnings(policy, follows), ...policyWarnings(policy, nodes.clusters())];
  }
}

function isSame(a: PlacementPolicyStatus | undefined, b: PlacementPolicyStatus): boolean {
  return jsonEqual(a, b);
}
