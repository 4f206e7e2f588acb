import type { Logger } from 'pino';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, type PlacementPolicyStatus } from '../api/placement-policy.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isNotFound } from '../kube/errors.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Lease } from '../kube/lease.ts';
import type { KubeObject } from '../kube/object.ts';
import { patchStatusAsRead } from '../kube/patch-status.ts';
import { LEASES, type Resource } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { timestamp } from '../kube/timestamps.ts';
import { get, list } from '../kube/verbs.ts';

/** Between two looks, in ms. */
const PERIOD_MS = 60_000;
/** A replica that answered schedulers and was not heard of for so long is away, in ms. */
const AWAY_MS = 120_000;
const REASON = 'NoSchedulerComponent';
const MESSAGE =
  'no replica of the manager answers schedulers, so the policy has no effect: add scheduler to components in its configuration (docs/guides/scheduling.md)';

type Policy = KubeObject & { status?: Partial<PlacementPolicyStatus> };

export interface UnheededPoliciesOptions {
  host: KubeClient;
  /** Of the Lease that a replica holds which answers schedulers. */
  namespace: string;
  leaseName: string;
  events: Pick<EventRecorder, 'record'>;
  logger: Logger;
  /** Wall clock in ms. */
  clock: () => number;
}

/**
 * Where no replica answers schedulers, those that do something else say so on placement policies, which would be silently without
 * effect otherwise. Who answers schedulers takes it back.
 */
export class UnheededPolicies {
  readonly #o: UnheededPoliciesOptions;

  constructor(options: UnheededPoliciesOptions) {
    this.#o = options;
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let complained = '';
    // Another replica may have to take its Lease first.
    await pause(PERIOD_MS, signal);
    while (!signal.aborted) {
      try {
        await this.look(signal);
        complained = '';
      } catch (error) {
        const words = describeError(error);
        if (!signal.aborted && words !== complained) {
          this.#o.logger.info(`nobody answers schedulers, and policies cannot be told so: ${words}`);
        }
        complained = words;
      }
      await pause(PERIOD_MS, signal);
    }
  }

  /** Throws what the host answers. */
  async look(signal: AbortSignal): Promise<void> {
    if (await this.#isAnswered(signal)) return;
    for (const resource of [PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES]) {
      const { items } = await list<Policy>(this.#o.host, resource, { signal });
      for (const policy of items) await this.#write(resource, policy, signal);
    }
  }

  async #isAnswered(signal: AbortSignal): Promise<boolean> {
    const { host, namespace, leaseName, clock } = this.#o;
    try {
      const { spec } = await get<Lease>(host, LEASES, { namespace, name: leaseName }, { signal });
      const renewed = Date.parse(spec?.renewTime ?? '');
      return (spec?.holderIdentity ?? '') !== '' && clock() - renewed < AWAY_MS;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  async #write(resource: Resource, policy: Policy, signal: AbortSignal): Promise<void> {
    const { host, clock, events } = this.#o;
    const { namespace, name, uid, generation = 0 } = policy.metadata;
    const conditions = policy.status?.conditions ?? [];
    const before = conditions.find(({ type }) => type === 'Effective');
    if (before?.status === 'False' && before.reason === REASON) return;
    const effective = {
      type: 'Effective',
      status: 'False',
      observedGeneration: generation,
      lastTransitionTime: before?.status === 'False' ? before.lastTransitionTime : timestamp(clock()),
      reason: REASON,
      message: MESSAGE,
    };
    const status = { conditions: [...conditions.filter(({ type }) => type !== 'Effective'), effective] };
    // Else another replica was first, or it is gone.
    if (!(await patchStatusAsRead(host, resource, policy.metadata, status, { signal }))) return;
    const { kind, group, version } = resource;
    events.record({ apiVersion: `${group}/${version}`, kind, namespace, name, uid }, 'Warning', REASON, MESSAGE);
  }
}
