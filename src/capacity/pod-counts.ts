import { LRUCache } from 'lru-cache';
import { atMost } from '../kube/lru-limit.ts';
import type { NodeTable } from './node-table.ts';
import type { NamespaceLabels, LabelledPod, PodTerm } from './pod-terms.ts';

/** A pod on a node. */
export interface CountedPod extends LabelledPod {
  readonly row: number;
  /** Its own required anti-affinity, which keeps others away. */
  readonly antiAffinity: readonly PodTerm[];
  readonly deleting: boolean;
}

/** Pods that count, by row; rows without any are missing. */
export type RowCounts = ReadonlyMap<number, number>;

interface Counter {
  /** How much there is to ask of each pod. */
  readonly terms: number;
  readonly counts: Map<number, number>;
  readonly byNamespaceLabels: boolean;
  includes(pod: CountedPod): boolean;
}

interface KeptAway {
  readonly term: PodTerm;
  /** Pods with that term, by row. */
  readonly counts: Map<number, number>;
}

/** Asked of every pod that comes or goes. */
const MAX_TERMS = 256;
const MAX_REMEMBERED = 1_024;

/**
 * The pods of a member as rules about other pods need them: how many of a kind are on each node, counted once and then kept
 * up to date pod by pod.
 */
export class PodCounts {
  readonly #pods: () => Iterable<CountedPod>;
  readonly #counters = new LRUCache<string, Counter>({ maxSize: MAX_TERMS, sizeCalculation: ({ terms }) => terms });
  readonly #keptAway = new Map<string, KeptAway>();
  /** Terms of others that mean a pod, by what the pod is. */
  readonly #meant = new LRUCache<string, readonly KeptAway[]>(atMost(MAX_REMEMBERED));
  readonly #namespaceLabels: NamespaceLabels;

  /** `pods`: all that were added and not removed. */
  constructor(pods: () => Iterable<CountedPod>, namespaceLabels: NamespaceLabels) {
    this.#pods = pods;
    this.#namespaceLabels = namespaceLabels;
  }

  add(pod: CountedPod): void {
    this.#account(pod, 1);
  }

  remove(pod: CountedPod): void {
    this.#account(pod, -1);
  }

  /** Labels of a namespace have changed. */
  namespacesChanged(): void {
    this.#meant.clear();
    for (const [key, { byNamespaceLabels }] of this.#counters.entries()) {
      if (byNamespaceLabels) this.#counters.delete(key);
    }
  }

  /** No pod anywhere keeps others away. */
  get keepsNobodyAway(): boolean {
    return this.#keptAway.size === 0;
  }

  /** Pods that the term means. */
  countsOf(term: PodTerm): RowCounts {
    return this.#counter(`term ${term.key}`, 1, term.byNamespaceLabels, (pod) =>
      term.means(pod, this.#namespaceLabels),
    );
  }

  /** Pods that all of the terms mean. */
  countsOfAll(terms: readonly PodTerm[]): RowCounts {
    return this.#counter(
      `all ${terms.map(({ key }) => key).join(' ')}`,
      terms.length,
      terms.some(({ byNamespaceLabels }) => byNamespaceLabels),
      (pod) => this.meantByAll(terms, pod),
    );
  }

  meantByAll(terms: readonly PodTerm[], pod: LabelledPod): boolean {
    return terms.every((term) => term.means(pod, this.#namespaceLabels));
  }

  /** Pods of one namespace that are not being deleted and that `counts` accepts; `key` names it. */
  countsWhere(key: string, namespace: string, counts: (labels: LabelledPod['labels']) => boolean): RowCounts {
    return this.#counter(
      `spread ${namespace} ${key}`,
      1,
      false,
      (pod) => !pod.deleting && pod.namespace === namespace && counts(pod.labels),
    );
  }

  /** Anti-affinity of pods that are there against a pod that wants to come. `key` stands for namespace and labels. */
  against(key: string, pod: LabelledPod): readonly KeptAway[] {
    let found = this.#meant.get(key);
    if (found === undefined) {
      found = [...this.#keptAway.values()].filter(({ term }) => term.means(pod, this.#namespaceLabels));
      this.#meant.set(key, found);
    }
    return found;
  }

  #counter(key: string, terms: number, byNamespaceLabels: boolean, includes: Counter['includes']): RowCounts {
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      counter = { terms, counts: new Map(), byNamespaceLabels, includes };
      for (const pod of this.#pods()) if (includes(pod)) count(counter.counts, pod.row, 1);
      this.#counters.set(key, counter);
    }
    return counter.counts;
  }

  #account(pod: CountedPod, times: 1 | -1): void {
    for (const counter of this.#counters.values()) {
      if (counter.includes(pod)) count(counter.counts, pod.row, times);
    }
    for (const term of pod.antiAffinity) {
      let entry = this.#keptAway.get(term.key);
      if (entry === undefined) {
        entry = { term, counts: new Map() };
        this.#keptAway.set(term.key, entry);
        this.#meant.clear();
      }
      count(entry.counts, pod.row, times);
      if (entry.counts.size === 0) {
        this.#keptAway.delete(term.key);
        this.#meant.clear();
      }
    }
  }
}

function count(counts: Map<number, number>, row: number, times: 1 | -1): void {
  const now = (counts.get(row) ?? 0) + times;
  if (now === 0) counts.delete(row);
  else counts.set(row, now);
}

/** Sums of counts by the value that nodes have under a topology key; nodes without it do not count. */
export function byDomain(counts: RowCounts, topologyKey: string, table: NodeTable): Map<string, number> {
  const domains = new Map<string, number>();
  for (const [row, number] of counts) {
    const domain = domainOf(row, topologyKey, table);
    if (domain !== undefined) domains.set(domain, (domains.get(domain) ?? 0) + number);
  }
  return domains;
}

export function domainOf(row: number, topologyKey: string, table: NodeTable): string | undefined {
  const labels = table.node(row)?.metadata.labels;
  return labels !== undefined && Object.hasOwn(labels, topologyKey) ? labels[topologyKey] : undefined;
}
