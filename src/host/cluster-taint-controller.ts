import type { Logger } from 'pino';
import {
  CLUSTER_TAINT_POLICIES,
  type ClusterTaintPolicy,
  type ClusterTaintPolicyStatus,
  parseClusterTaintPolicy,
  readClusterTaintPolicyStatus,
} from '../api/cluster-taint-policy.ts';
import { MEMBER_CLUSTERS, type MemberCluster } from '../api/member-cluster.ts';
import type { PolicyTaint } from '../api/member-cluster-status.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { ifThere } from '../kube/if-there.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { lookAgain } from '../kube/look-again.ts';
import { identifying, type KubeObject } from '../kube/object.ts';
import { patchStatusAsRead } from '../kube/patch-status.ts';
import { apiVersionOf } from '../kube/resource.ts';
import { taintInWords } from '../kube/taints.ts';
import { get, patch } from '../kube/verbs.ts';
import { policyTaints } from '../placement/policy-taints.ts';
import { taintPolicyStatus } from '../placement/taint-policy-status.ts';
import { ConditionAges } from './condition-ages.ts';

/** Between two looks, in ms. */
const LOOK_MS = 2_000;

/** A policy as the cache has it, readable or not. */
interface CachedPolicy extends KubeObject {
  readonly problems: readonly string[];
  readonly policy: ClusterTaintPolicy | undefined;
  readonly status: ClusterTaintPolicyStatus | undefined;
}

export interface ClusterTaintControllerOptions {
  host: KubeClient;
  /** All MemberClusters; undefined while they are not known. */
  members: () => readonly MemberCluster[] | undefined;
  events: Pick<EventRecorder, 'record'>;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  /** Wall clock in ms, to be written on objects. */
  clock?: () => number;
}

/**
 * Gives members the taints that ClusterTaintPolicies say, in `status.taints`. Every replica does: what is written follows from
 * what objects say, for that version of the MemberCluster only, so who comes second finds it done.
 */
export class ClusterTaintController {
  readonly #o: ClusterTaintControllerOptions;
  readonly #policies: Informer<CachedPolicy>;
  readonly #ages: ConditionAges;

  constructor(options: ClusterTaintControllerOptions) {
    const { host, logger, metrics } = options;
    this.#o = options;
    this.#ages = new ConditionAges(monotonic);
    this.#policies = new Informer({
      client: host,
      resource: CLUSTER_TAINT_POLICIES,
      transform: readPolicy,
      logger,
      metrics,
    });
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = (error: unknown): void =>
      this.#o.logger.warn(`taints of members are not as ClusterTaintPolicies say: ${describeError(error)}`);
    const looking = lookAgain(async () => await this.#look(signal), { everyMs: LOOK_MS, failed, signal });
    await Promise.all([this.#policies.run(signal), looking]);
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { members, clock = Date.now } = this.#o;
    const fleet = members();
    if (fleet === undefined) return;
    this.#ages.observe(fleet);
    if (!this.#policies.hasSynced) return;
    const readable = [...this.#policies.values()].flatMap(({ policy }) => policy ?? []);
    const gone = new Set<string>();
    for (const name of new Set(fleet.flatMap(({ status }) => (status?.taints ?? []).map(({ policy }) => policy)))) {
      if (await this.#isGone(name, signal)) gone.add(name);
    }
    const tainted = new Map<string, string[]>();
    for (const member of fleet) {
      const taints = policyTaints(member, readable, gone, clock(), (one) => this.#ages.forMs(member, one));
      if (!jsonEqual(taints, member.status?.taints ?? [])) await this.#taint(member, taints, signal);
      for (const policy of new Set(taints.map((one) => one.policy))) {
        tainted.set(policy, [...(tainted.get(policy) ?? []), member.metadata.name]);
      }
    }
    for (const cached of this.#policies.values()) {
      const taintedClusters = (tainted.get(cached.metadata.name) ?? []).toSorted();
      const status = taintPolicyStatus({ ...cached, taintedClusters, members: fleet, now: clock() });
      if (!jsonEqual(cached.status, status)) await this.#tell(cached, status, signal);
    }
  }

  /** A list that lacks it may be wrong: it is read once more. */
  async #isGone(name: string, signal: AbortSignal): Promise<boolean> {
    if (this.#policies.get(name) !== undefined) return false;
    try {
      await get(this.#o.host, CLUSTER_TAINT_POLICIES, { name }, { signal });
      return false;
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
  }

  async #taint(member: MemberCluster, taints: readonly PolicyTaint[], signal: AbortSignal): Promise<void> {
    const how = { signal, fieldManager: 'spillway' };
    if (await patchStatusAsRead(this.#o.host, MEMBER_CLUSTERS, member.metadata, { taints }, how))
      this.#tellChange(member, taints);
  }

  #tellChange({ metadata, status }: MemberCluster, taints: readonly PolicyTaint[]): void {
    const { events, logger } = this.#o;
    const { name, uid } = metadata;
    const subject = { apiVersion: apiVersionOf(MEMBER_CLUSTERS), kind: MEMBER_CLUSTERS.kind, name, uid };
    const before = new Map((status?.taints ?? []).map((one) => [taintInWords(one), one.policy]));
    const after = new Map(taints.map((one) => [taintInWords(one), one.policy]));
    const tell = (reason: string, message: string): void => {
      events.record(subject, 'Normal', reason, message);
      logger.info({ member: name }, message);
    };
    for (const [taint, policy] of after)
      if (!before.has(taint)) tell('ClusterTainted', `ClusterTaintPolicy ${policy} added the taint ${taint}`);
    for (const [taint, policy] of before)
      if (!after.has(taint)) tell('ClusterTaintRemoved', `the taint ${taint} of ClusterTaintPolicy ${policy} is gone`);
  }

  async #tell({ metadata }: CachedPolicy, status: ClusterTaintPolicyStatus, signal: AbortSignal): Promise<void> {
    const { name, uid } = metadata;
    const how = { type: 'merge', subresource: 'status', fieldManager: 'spillway' } as const;
    await ifThere(
      patch(this.#o.host, CLUSTER_TAINT_POLICIES, { name }, { metadata: { uid }, status }, how, { signal }),
    );
  }
}

/** What it is now; one that cannot be read stays as it was. */
function readPolicy(raw: KubeObject): CachedPolicy {
  const { generation, creationTimestamp } = raw.metadata;
  const metadata = {
    ...identifying(raw.metadata),
    ...(generation === undefined ? {} : { generation }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
  const parsed = parseClusterTaintPolicy({ ...raw, metadata });
  const found =
    'policy' in parsed ? { policy: parsed.policy, problems: [] } : { policy: undefined, problems: parsed.problems };
  return { metadata, ...found, status: readClusterTaintPolicyStatus(raw) };
}
