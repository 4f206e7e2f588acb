import type { MemberCluster } from '../api/member-cluster.ts';
import type { MemberConnection } from './connection.ts';
import { isEdited } from './is-edited.ts';
import { MemberLink } from './member-link.ts';
import type { MemberLinkOptions } from './member-link.ts';
import type { ObservedScope, StartObserved } from './member-scope.ts';

export interface MemberObserverOptions extends Pick<
  MemberLinkOptions<ObservedScope>,
  'host' | 'hostId' | 'name' | 'clientMetrics' | 'informerMetrics' | 'logger'
> {
  /** Whether nothing stands in the way of this MemberCluster. */
  mayStart: (member: MemberCluster) => boolean;
  start: StartObserved;
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
  /** A connection that has led to another cluster: what its caches hold may be of that one. */
  #misled: MemberConnection | undefined;

  constructor(options: MemberObserverOptions) {
    const { mayStart, start, ...rest } = options;
    this.#o = options;
    this.#link = new MemberLink<ObservedScope>({
      ...rest,
      member: () => this.#member,
      pinned: () => this.#pinned,
      leaseHeld: 'never',
      start: (connection, signal) => {
        const member = this.#member;
        if (member === undefined || this.#pinned === undefined || !mayStart(member)) return undefined;
        return start(member, connection, signal);
      },
      changed: () => this.#identityChanged(),
    });
  }

  /** The MemberCluster as it is now. */
  update(member: MemberCluster): void {
    const before = this.#pinned;
    const edited = isEdited(this.#member, member);
    this.#member = member;
    if (edited) this.#link.scope?.changed(member);
    this.#link.memberChanged();
    if (before !== this.#pinned) this.#link.connection?.repinned();
  }

  /** Something changed that may have stood in the way. */
  lookAgain(): void {
    this.#link.lookAgain();
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

  #identityChanged(): void {
    const { connection } = this.#link;
    if (connection?.observedIdentity === undefined || this.#pinned === undefined) return;
    if (!connection.identityOk()) this.#misled = connection;
    else if (this.#misled === connection) this.#link.reconnect();
  }
}
