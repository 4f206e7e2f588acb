import { deletionToken, type KeptDeletions } from '../members/kept-deletions.ts';
import { wasBreakerOpen } from '../members/written-status.ts';
import type { ActingMember } from './acting-member.ts';
import type { VirtualNodes } from './virtual-nodes.ts';

/** Deletions of copies that all virtual nodes of a member hold back, and the administrator's word that they may be done. */
export class HeldDeletions {
  readonly #acting: ActingMember;
  readonly #nodes: () => VirtualNodes;
  /** As the virtual nodes said last; before all of them have, as a former process left it. */
  #breakerOpen: boolean;

  constructor(acting: ActingMember, nodes: () => VirtualNodes) {
    this.#acting = acting;
    this.#nodes = nodes;
    this.#breakerOpen = wasBreakerOpen(acting.member().status);
  }

  readonly breakerOpen = (): boolean => this.#breakerOpen;

  kept(): KeptDeletions | undefined {
    const parts = this.#nodes()
      .scopes()
      .map(({ pods }) => pods.orphanedPods);
    const kept = {
      uids: parts.flatMap(({ uids }) => uids),
      open: parts.some(({ open }) => open),
      hostWentBack: parts.some(({ hostWentBack }) => hostWentBack),
    };
    // A virtual node that has not started may hold some back, too: until then the former process' answer stands.
    return kept.open || kept.uids.length > 0 || parts.length === this.#nodes().size ? kept : undefined;
  }

  confirm(token: string): void {
    const uids = this.kept()?.uids ?? [];
    if (uids.length === 0 || token !== deletionToken(uids)) return;
    const { logger, event } = this.#acting;
    logger.warn({ count: uids.length }, 'an administrator confirmed deletions that were held back');
    event('Normal', 'DeletionsConfirmed', `The deletion of ${uids.length} pods that were kept was confirmed.`);
    for (const { pods } of this.#nodes().scopes()) pods.confirmDeletions(new Set(uids));
  }

  /** Some virtual node began or ceased to hold some back. */
  readonly changed = (): void => {
    const kept = this.kept();
    if (kept === undefined) return;
    if (kept.open && !this.#breakerOpen) {
      const message =
        'More host pods vanished at once than is believed: their copies in the member are kept until an administrator confirms the deletions. See condition DeletionsAllowed.';
      this.#acting.event('Warning', 'DeletionBreakerOpen', message);
    }
    this.#breakerOpen = kept.open;
  };
}
