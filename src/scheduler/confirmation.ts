import { LRUCache } from 'lru-cache';
import { EXTENDER_RESOURCE } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { clusterInWords } from '../api/cluster.ts';
import { failing, passing } from './extender-wire.ts';
import type { ExtenderArgs, FilterResult } from './extender-wire.ts';
import type { HostView } from './host-view.ts';
import type { PlacementQuestions } from './placement-questions.ts';

export interface ConfirmationOptions {
  view: HostView;
  questions: PlacementQuestions;
  /** In ms. */
  monotonic: () => number;
}

/** Between the two questions lie milliseconds. */
const ANSWER_MS = 10_000;
/** Answers that are kept, at the most. */
const MAX_ANSWERS = 4_096;

/**
 * The second question about pods that ask for {@link EXTENDER_RESOURCE}. A scheduler that must go on for all other pods while
 * nobody answers (`ignorable: true`) skips the first one then, or when it takes too long; these pods it asks about once more, and
 * does not go on without this answer. What was decided stands; where nothing was, a node passes if the pod fits there.
 */
export class Confirmation {
  readonly #o: ConfirmationOptions;
  /** Nodes by pod UID. */
  readonly #answers = new LRUCache<string, { nodes: ReadonlySet<string>; until: number }>(atMost(MAX_ANSWERS));

  constructor(options: ConfirmationOptions) {
    this.#o = options;
  }

  /** What the first question was answered. */
  note(pod: Pod, { NodeNames }: FilterResult): void {
    if (!isMarked(pod)) return;
    const until = this.#o.monotonic() + ANSWER_MS;
    this.#answers.set(pod.metadata.uid ?? '', { nodes: new Set(NodeNames), until });
  }

  confirm({ pod, nodeNames }: ExtenderArgs): FilterResult {
    const { view, questions, monotonic } = this.#o;
    const answer = this.#answers.get(pod.metadata.uid ?? '');
    const reasons: Record<string, string> = {};
    const passed = nodeNames.filter((name) => {
      if (answer !== undefined && answer.until > monotonic()) {
        if (answer.nodes.has(name)) return true;
        reasons[name] = `${clusterInWords(view.nodes.clusterOf(name))}: it was not chosen for the pod`;
        return false;
      }
      const member = view.nodes.memberOf(name);
      if (member === undefined) return true;
      // Whether its rules tolerate that was not asked.
      const tainted = view.nodes.whyTainted(member, []);
      if (tainted !== undefined) {
        reasons[name] = `${clusterInWords(member)}: ${tainted}`;
        return false;
      }
      const { room, nodes } = questions.room(pod, member, [name], { upTo: 1 });
      if (nodes.length > 0) return true;
      reasons[name] = `${clusterInWords(member)}: ${room.impossible ?? room.why ?? 'it has no room for the pod'}`;
      return false;
    });
    return passed.length > 0 ? passing(passed) : failing(reasons);
  }
}

function isMarked({ spec }: Pod): boolean {
  return spec.containers.some(({ resources }) => Object.hasOwn(resources?.requests ?? {}, EXTENDER_RESOURCE));
}
