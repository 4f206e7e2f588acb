import { jsonEqual, type JsonObject } from '../../../src/kube/json-equal.ts';
import type { Change, SimObject } from '../sim-cluster.ts';

const KINDS: ReadonlySet<unknown> = new Set(['PlacementPolicy', 'ClusterPlacementPolicy']);

/** When somebody last said otherwise than before where pods belong. */
export class PolicyEdits {
  /** In ms. */
  #at = Number.NEGATIVE_INFINITY;

  changed({ object, previous, type, by, at }: Change): void {
    if (!KINDS.has(object['kind']) || by === 'setup') return;
    if (type !== 'MODIFIED' || !jsonEqual(placementOf(object), placementOf(previous))) this.#at = at;
  }

  /** Whether that was less than so long before that moment, in ms. */
  within(ms: number, at: number): boolean {
    return at - this.#at < ms;
  }
}

function placementOf(policy: SimObject | undefined): unknown {
  return (policy?.['spec'] as JsonObject | undefined)?.['placement'];
}
