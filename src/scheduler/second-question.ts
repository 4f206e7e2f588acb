import { LRUCache } from 'lru-cache';
import { EXTENDER_RESOURCE } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { clusterInWords } from '../api/cluster.ts';
import { failing, passing } from './extender-wire.ts';
import type { ExtenderArgs, FilterResult } from './extender-wire.ts';
import type { HostView } from './host-view.ts';

/** By which verb a scheduler asks which nodes may take a pod. */
export type FilterVerb = 'filter' | 'confirm';

export interface SecondQuestionOptions {
  readonly view: Pick<HostView, 'nodes'>;
  /** In ms. */
  readonly monotonic: () => number;
}

interface FirstAnswer {
  readonly verb: FilterVerb;
  readonly nodes: ReadonlySet<string>;
  /** Of the pod, as it was sent: in one attempt a scheduler goes by what it knew when that began. */
  readonly resourceVersion: string | undefined;
  /** Monotonic, in ms. */
  readonly until: number;
}

/** Between the two questions lie milliseconds. */
const ANSWER_MS = 10_000;
/** Answers that are kept, at the most. */
const MAX_ANSWERS = 4_096;

/**
 * Pods that ask for {@link EXTENDER_RESOURCE} are asked about twice in one attempt. A scheduler that must go on for all other pods
 * while nobody answers (`ignorable: true`) may skip `filter`; about these it asks `confirm` as well, and does not go on without an
 * answer. The first question decides, and the other one is answered the same, once: kube-scheduler asks extenders that are not
 * ignorable first, in whatever order its configuration has them. Another replica may have been asked the other one.
 */
export class SecondQuestion {
  readonly #o: SecondQuestionOptions;
  /** By pod UID. */
  readonly #answers = new LRUCache<string, FirstAnswer>(atMost(MAX_ANSWERS));

  constructor(options: SecondQuestionOptions) {
    this.#o = options;
  }

  /** What the first question was answered. */
  note(verb: FilterVerb, pod: Pod, { NodeNames }: FilterResult): void {
    if (!isMarked(pod)) return;
    const { uid = '', resourceVersion } = pod.metadata;
    const until = this.#o.monotonic() + ANSWER_MS;
    this.#answers.set(uid, { verb, nodes: new Set(NodeNames), resourceVersion, until });
  }

  /** The attempt is over, or its place was taken back. */
  forget(podUid: string): void {
    this.#answers.delete(podUid);
  }

  /** Undefined: it is the first one. */
  answer(verb: FilterVerb, { pod, nodeNames }: ExtenderArgs): FilterResult | undefined {
    const { uid = '', resourceVersion } = pod.metadata;
    const first = this.#answers.get(uid);
    if (first === undefined) return undefined;
    this.#answers.delete(uid);
    const isOfAnother = first.verb === verb || first.resourceVersion !== resourceVersion;
    if (isOfAnother || first.until <= this.#o.monotonic()) return undefined;
    const passed = nodeNames.filter((name) => first.nodes.has(name));
    return passed.length > 0 ? passing(passed) : failing(this.#notChosen(nodeNames));
  }

  /** Whether the first question may have been one to another replica, after which only the nodes of its answer are asked about. */
  mayBeNarrowed(verb: FilterVerb, pod: Pod): boolean {
    return verb === 'filter' && isMarked(pod);
  }

  #notChosen(nodeNames: readonly string[]): Record<string, string> {
    const { nodes } = this.#o.view;
    const words = (name: string): string => `${clusterInWords(nodes.clusterOf(name))}: it was not chosen for the pod`;
    return Object.fromEntries(nodeNames.map((name) => [name, words(name)]));
  }
}

/** As kube-scheduler finds who is interested in a pod (HTTPExtender.IsInterested). */
function isMarked({ spec }: Pod): boolean {
  return [...(spec.initContainers ?? []), ...spec.containers].some(({ resources: { requests, limits } = {} }) =>
    [requests, limits].some((amounts) => amounts !== undefined && Object.hasOwn(amounts, EXTENDER_RESOURCE)),
  );
}
