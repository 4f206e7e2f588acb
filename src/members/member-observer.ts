import type { MemberCluster } from '../api/member-cluster.ts';
import { isEdited } from './is-edited.ts';
import { MemberLink } from './member-link.ts';
import type { ClusterSeen, MemberLinkOptions } from './member-link.ts';
import type { ObservedScope, StartObserved } from './member-scope.ts';

export interface MemberObserverOptions extends Pick<
  MemberLinkOptions<ObservedScope>,
  'host' | 'hostId' | 'name' | 'clientMetrics' | 'informerMetrics' | 'logger'
> {
  start: StartObserved;
  /** That cluster answers in the place of the member. Default: nobody else has to know. */
  anotherSeen?: (other: ClusterSeen) => void;
}

/**
 * A look at a member that another replica acts for. It reads the same Secret and keeps a connection of its own that can
 * only read. Which cluster the member is the MemberCluster's status says: nothing is pinned here, and while another
 * cluster answers nothing that it says counts.
 */
export class MemberObserver {
  readonly #o: MemberObserverOptions;
  readonly #link: MemberLink<ObservedScope>;
  #member: MemberCluster | undefined;

  constructor(options: MemberObserverOptions) {
    const { start, anotherSeen, ...rest } = options;
    this.#o = options;
    this.#link = new MemberLink<ObservedScope>({
      ...rest,
      member: () => this.#member,
      pinned: () => this.#pinned,
      leaseHeld: 'never',
      start: (connection, signal) => {
        const member = this.#member;
        if (member === undefined || this.#pinned === undefined) return undefined;
        return start(member, connection, signal);
      },
      changed: () => {
        const { seen } = this.#link;
        const pinned = this.#pinned;
        if (seen !== undefined && pinned !== undefined && seen.identity !== pinned) anotherSeen?.(seen);
      },
    });
  }

  /** The MemberCluster as it is now. */
  update(member: MemberCluster): void {
    const before = this.#pinned;
    const edited = isEdited(this.#member, member);
    this.#member = member;
    if (edited) this.#link.scope?.changed(member);
    this.#link.memberChanged();
    if (before === this.#pinned) return;
    // What was cached of the former cluster says nothing about this one.
    if (before !== undefined) this.#link.reconnect();
    else this.#link.connection?.repinned();
  }

  /** Something changed that may have stood in the way. */
  resync(): void {
    this.#link.resync();
  }

  /** Works until the signal aborts. May be run again after that. */
  async run(signal: AbortSignal): Promise<void> {
    this.#o.logger.info('observing the member');
    await this.#link.run(signal);
    this.#o.logger.info('the member is not observed any more');
  }

  get #pinned(): string | undefined {
    return this.#member?.status?.identity;
  }
}
