import { HOST_LABEL } from '../api/marks.ts';
import { isFinished } from '../api/pod-phase.ts';
import { ENFORCE_LABEL, enforcedLevel, POD_SECURITY_LEVELS, type PodSecurityLevel } from '../api/pod-security.ts';
import type { Namespace, Pod } from '../kube/core-v1.ts';
import type { InformerHandler } from '../kube/informer.ts';
import { keyOf } from '../kube/object.ts';
import { someOf } from '../kube/some-of.ts';
import { nodePowersOf } from './node-powers.ts';

/** So many namespaces are named. */
const MAX_NAMED = 5;

/** What is to be said of Pod Security in the member. */
export interface PodSecurityFinding {
  status: 'True' | 'False';
  reason: 'NoLevelSet' | 'OtherLevels' | 'LevelsSet';
  message: string;
}

export interface PodSecurityOptions {
  hostId: string;
  pods: { on(handler: InformerHandler<Pod>): () => void };
  namespaces: { get(name: string): Namespace | undefined; values(): Iterable<Namespace>; readonly hasSynced: boolean };
  /** The level of namespaces that are made. Asked each time. */
  wanted: () => PodSecurityLevel;
}

/**
 * Whether namespaces of the member say what pods of the host may do to its nodes. Their labels are their owner's: they are
 * read here and never changed.
 */
export class PodSecurity {
  readonly #o: PodSecurityOptions;
  /** Pods of the host that have power over their nodes: where, and by which fields. */
  readonly #powerful = new Map<string, { namespace: string; powers: readonly string[] }>();

  constructor(options: PodSecurityOptions) {
    this.#o = options;
  }

  /** Follows the pods from now on. Returns how to stop that. */
  follow(): () => void {
    const note = (pod: Pod): void => this.#note(pod);
    const off = this.#o.pods.on({
      added: note,
      updated: note,
      deleted: (pod) => this.#powerful.delete(keyOf(pod)),
    });
    return () => {
      off();
      this.#powerful.clear();
    };
  }

  /** The condition `PodSecuritySet` of the MemberCluster; undefined while it is not known. Cheap. */
  finding(): PodSecurityFinding | undefined {
    const { namespaces } = this.#o;
    if (!namespaces.hasSynced) return undefined;
    return this.#withoutLevel() ?? this.#weaker() ?? LEVELS_SET;
  }

  #note(pod: Pod): void {
    const { namespace = '', labels } = pod.metadata;
    const powers = labels?.[HOST_LABEL] === this.#o.hostId && !isFinished(pod) ? nodePowersOf(pod) : [];
    if (powers.length === 0) this.#powerful.delete(keyOf(pod));
    else this.#powerful.set(keyOf(pod), { namespace, powers });
  }

  #withoutLevel(): PodSecurityFinding | undefined {
    const counts = new Map<string, number>();
    const fields = new Set<string>();
    for (const { namespace, powers } of this.#powerful.values()) {
      const found = this.#o.namespaces.get(namespace);
      if (found === undefined || enforcedLevel(found.metadata.labels) !== undefined) continue;
      counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
      for (const power of powers) fields.add(power);
    }
    const names = [...counts.keys()].toSorted();
    const [first] = names;
    if (first === undefined) return undefined;
    const sum = [...counts.values()].reduce((all, one) => all + one);
    const pods =
      sum === 1 ? '1 pod of the host has power over its node' : `${sum} pods of the host have power over their nodes`;
    const where = names.length === 1 ? 'a namespace of the member that sets' : 'namespaces of the member that set';
    const listed = someOf(names.map((name) => `${name} (${counts.get(name) ?? 0})`));
    const message =
      `${pods} (${[...fields].toSorted().join(', ')}), in ${where} no Pod Security level: ${listed}. ` +
      `The owner of the member says whether that is meant: kubectl label namespace ${first} ${ENFORCE_LABEL}=privileged there, ` +
      'or =baseline, which refuses such pods from then on.';
    return { status: 'False', reason: 'NoLevelSet', message };
  }

  /** Of the namespaces that were made for the host, those that allow more than new ones would. */
  #weaker(): PodSecurityFinding | undefined {
    const wanted = this.#o.wanted();
    const others: string[] = [];
    const levels = new Map<string, string>();
    for (const { metadata } of this.#o.namespaces.values()) {
      if (metadata.labels?.[HOST_LABEL] !== this.#o.hostId || metadata.deletionTimestamp !== undefined) continue;
      const level = enforcedLevel(metadata.labels);
      if (strictness(level) >= strictness(wanted)) continue;
      others.push(metadata.name);
      levels.set(metadata.name, level ?? 'none');
    }
    if (others.length === 0) return undefined;
    others.sort();
    const what = others.length === 1 ? '1 namespace allows' : `${others.length} namespaces allow`;
    const message =
      `Of those that Spillway made in the member, ${what} more than spec.namespaces.podSecurity (${wanted}): ` +
      `${someOf(others.map((name) => `${name} (${levels.get(name) ?? ''})`))}. The level is written when a namespace is made, and never changed. ` +
      `The owner of the member can: kubectl label --overwrite namespace ${others.slice(0, MAX_NAMED).join(' ')} ${ENFORCE_LABEL}=${wanted}`;
    return { status: 'True', reason: 'OtherLevels', message };
  }
}

const LEVELS_SET: PodSecurityFinding = {
  status: 'True',
  reason: 'LevelsSet',
  message: 'No pod of the host has power over its node without a Pod Security level of its namespace that says so.',
};

/** No level at all allows as much as `privileged`, unless the cluster has another one by default, which cannot be seen. */
function strictness(level: PodSecurityLevel | undefined): number {
  return level === undefined ? -1 : POD_SECURITY_LEVELS.indexOf(level);
}
