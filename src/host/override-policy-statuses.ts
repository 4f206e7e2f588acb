import type { Logger } from 'pino';
import type { OverridePolicy, OverridePolicyKind } from '../api/override-policy.ts';
import { CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES } from '../api/override-policy.ts';
import type { OverridePolicyStatus } from '../api/override-policy-status.ts';
import { Breath } from '../kube/breath.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isRightMissing } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import type { Pod } from '../kube/core-v1.ts';
import { lookAgain } from '../kube/look-again.ts';
import { keyOf } from '../kube/object.ts';
import { patch } from '../kube/verbs.ts';
import {
  absentWarning,
  customKindsOf,
  contradictionsIn,
  overridePolicyStatus,
  overrideWarnings,
  unreadWarning,
} from '../overrides/policy-findings.ts';
import { addedContainers } from '../overrides/added-containers.ts';
import { alikePods, type PodsIn } from '../overrides/alike-pods.ts';
import { containerWarnings, type KnownPods } from '../overrides/named-containers.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import type { Cluster } from '../api/cluster.ts';
import type { OwnerKinds } from './owner-kinds.ts';

/** Between two looks, in ms. */
const LOOK_MS = 3_000;

/** A policy as it was seen last, whether it can be read or not. */
export interface SeenPolicy {
  readonly kind: OverridePolicyKind;
  readonly metadata: { name: string; namespace?: string; uid?: string; generation?: number };
  readonly status: OverridePolicyStatus | undefined;
  readonly problems: readonly string[];
  /** Undefined while it cannot be read. */
  readonly policy: OverridePolicy | undefined;
}

export interface OverridePolicyStatusesOptions {
  host: KubeClient;
  policies: { seen(): Iterable<SeenPolicy>; unknown(): object | undefined };
  /** All members; undefined while they are not known. */
  members: () => readonly Cluster[] | undefined;
  kinds: Pick<OwnerKinds, 'whyUnread' | 'isAbsent'>;
  podsIn: PodsIn;
  /** By what the policy may choose the pod; undefined: not known yet. */
  identitiesOf: (pod: Pod, policy: OverridePolicy) => OverrideSubject['identities'] | undefined;
  logger: Logger;
}

/** What is the same for all policies in one look. */
type Look = Pick<KnownPods, 'members' | 'alikeIn' | 'added'>;

/**
 * Says on each override policy whether it is in use, and whether the members, kinds and containers that it is for are there. Every replica that
 * finds it otherwise writes it: what is written is the same, and who comes second finds it so. Of containers only those who act for the members
 * of the rule know; to the others what is said of them stays as it is.
 */
export class OverridePolicyStatuses {
  readonly #o: OverridePolicyStatusesOptions;

  constructor(options: OverridePolicyStatusesOptions) {
    this.#o = options;
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = (error: unknown): void =>
      this.#o.logger.warn(`the status of override policies is not written: ${describeError(error)}`);
    await lookAgain(async () => await this.#look(signal), { everyMs: LOOK_MS, failed, signal });
  }

  /** Whoever may write a policy must keep neither the others from their status nor this process from anything else. */
  async #look(signal: AbortSignal): Promise<void> {
    const { policies, podsIn, logger } = this.#o;
    const members = this.#o.members();
    if (members === undefined || policies.unknown() !== undefined) return;
    const breath = new Breath();
    const readable = [...policies.seen()].flatMap(({ policy }) => policy ?? []);
    const look = { members, alikeIn: alikePods(podsIn), added: addedContainers(readable) };
    for (const seen of policies.seen()) {
      await breath.take();
      if (signal.aborted) return;
      try {
        await this.#say(seen, look, signal);
      } catch (error) {
        // Without the right none would be written. Else the next look tries it again.
        if (signal.aborted || isRightMissing(error)) throw error;
        const { kind, metadata } = seen;
        logger.warn(`the status of ${kind} ${keyOf({ metadata })} is not written: ${describeError(error)}`);
      }
    }
  }

  async #say(
    { kind, metadata, status: before, problems, policy }: SeenPolicy,
    look: Look,
    signal: AbortSignal,
  ): Promise<void> {
    const { generation = 0 } = metadata;
    const warnings = policy === undefined ? [] : await this.#warnings(policy, look, before, signal);
    const status = overridePolicyStatus({ generation, problems, warnings, before, now: Date.now() });
    if (!jsonEqual(before, status)) await this.#write(kind, metadata, status, signal);
  }

  async #warnings(
    policy: OverridePolicy,
    look: Look,
    before: OverridePolicyStatus | undefined,
    signal: AbortSignal,
  ): Promise<string[]> {
    const identitiesOf = (pod: Pod): OverrideSubject['identities'] | undefined => this.#o.identitiesOf(pod, policy);
    return [
      // First, as what has no room at the end is cut, and those who do not know the pods would not find it there.
      ...containerWarnings(policy, { ...look, identitiesOf, before: contradictionsIn(before) }),
      ...overrideWarnings(policy, look.members),
      ...(await this.#unread(policy, signal)),
    ];
  }

  async #unread(policy: OverridePolicy, signal: AbortSignal): Promise<string[]> {
    const { kinds } = this.#o;
    const warnings: string[] = [];
    for (const chosen of customKindsOf(policy)) {
      if (!chosen.byLabels) {
        if (await kinds.isAbsent(chosen, signal)) warnings.push(absentWarning(chosen));
        continue;
      }
      const why = await kinds.whyUnread(chosen, signal);
      if (why !== undefined) warnings.push(unreadWarning(chosen, why));
    }
    return warnings;
  }

  async #write(
    kind: OverridePolicyKind,
    { namespace, name, uid }: SeenPolicy['metadata'],
    status: OverridePolicyStatus,
    signal: AbortSignal,
  ): Promise<void> {
    const resource = kind === 'OverridePolicy' ? OVERRIDE_POLICIES : CLUSTER_OVERRIDE_POLICIES;
    const body = { metadata: { uid }, status };
    const how = { type: 'merge', subresource: 'status', fieldManager: 'spillway' } as const;
    await ifThere(patch(this.#o.host, resource, { namespace, name }, body, how, { signal }));
  }
}
