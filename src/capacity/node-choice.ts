import { MEMBER_LABEL, NODE_LABEL } from '../api/marks.ts';
import type { Affinity, Node, NodeSelector, PodSpec, Toleration } from '../kube/core-v1.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import { conditionOf } from '../kube/conditions.ts';
import { nodesChosenBy } from '../kube/node-selector.ts';
import { firstUntolerated } from '../kube/taints.ts';
import type { Taint } from '../kube/taints.ts';

/** What a pod thinks of a node, whatever room the node has; in the order in which kube-scheduler asks. */
export const VERDICT = { suits: 0, hidden: 1, unusable: 2, tainted: 3, notChosen: 4 } as const;
export type Verdict = (typeof VERDICT)[keyof typeof VERDICT];

/** Selectors, affinity to nodes and tolerations of a pod, and the nodes that its volumes can be used on. */
export interface NodeChoice {
  /** Equal for equal choices. */
  readonly key: string;
  verdict(node: Node): Verdict;
  /** Why a node does not suit, for people. */
  reason(node: Node): string;
  /** The taints of the node with a hard effect are tolerated. */
  tolerates(node: Node): boolean;
  /** Node selector and required node affinity allow the node; volumes are not asked. */
  chooses(node: Node): boolean;
}

const CORDONED: Taint = { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' };
const NOT_READY: Taint = { key: 'node.kubernetes.io/not-ready', value: '', effect: 'NoSchedule' };
/** Taints by which the member's own controllers say that a node is not ready. */
const SAID_NOT_READY: ReadonlySet<string> = new Set([NOT_READY.key, 'node.kubernetes.io/unreachable']);

/** `volumes`: the nodes that each volume of the pod is limited to, for those that are. */
export function nodeChoiceOf(
  spec: Pick<PodSpec, 'nodeSelector' | 'affinity' | 'tolerations'>,
  volumes: readonly NodeSelector[] = [],
): NodeChoice {
  const { nodeSelector, affinity, tolerations = [] } = spec;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const chosen: { nodeSelector?: Record<string, string>; affinity?: Affinity } = {
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(required === undefined
      ? {}
      : { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } }),
  };
  return new CompiledChoice(
    canonicalJson([nodeSelector ?? {}, required?.nodeSelectorTerms ?? null, tolerations.map(withoutSeconds), volumes]),
    nodesChosenBy(chosen),
    tolerations,
    volumes.map((required) =>
      nodesChosenBy({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } }),
    ),
  );
}

/** How long a taint is tolerated does not matter for getting there. */
function withoutSeconds({ key = '', operator = 'Equal', value = '', effect = '' }: Toleration): readonly string[] {
  return [key, operator, value, effect];
}

class CompiledChoice implements NodeChoice {
  readonly key: string;
  readonly chooses: (node: Node) => boolean;
  readonly #tolerations: readonly Toleration[];
  readonly #volumes: readonly ReturnType<typeof nodesChosenBy>[];

  constructor(
    key: string,
    chooses: (node: Node) => boolean,
    tolerations: readonly Toleration[],
    volumes: readonly ReturnType<typeof nodesChosenBy>[],
  ) {
    this.key = key;
    this.chooses = chooses;
    this.#tolerations = tolerations;
    this.#volumes = volumes;
  }

  verdict(node: Node): Verdict {
    if (isVirtual(node)) return VERDICT.hidden;
    if (this.#whyUnusable(node) !== undefined) return VERDICT.unusable;
    if (!this.tolerates(node)) return VERDICT.tainted;
    return this.chooses(node) && this.#reachesVolumes(node) ? VERDICT.suits : VERDICT.notChosen;
  }

  reason(node: Node): string {
    const unusable = this.#whyUnusable(node);
    if (unusable !== undefined) return unusable;
    const taint = firstUntolerated(this.#tolerations, node.spec?.taints ?? []);
    if (taint === undefined) {
      return this.chooses(node)
        ? 'a volume of the pod is elsewhere'
        : "does not match the pod's node selector or affinity";
    }
    const value = taint.value === undefined || taint.value === '' ? '' : `=${taint.value}`;
    return `untolerated taint ${taint.key}${value}:${taint.effect}`;
  }

  tolerates(node: Node): boolean {
    return firstUntolerated(this.#tolerations, node.spec?.taints ?? []) === undefined;
  }

  /** As the VolumeBinding plugin asks: a volume knows nothing of a node but its labels. */
  #reachesVolumes({ metadata }: Node): boolean {
    if (this.#volumes.length === 0) return true;
    const node = { metadata: { ...metadata, name: '' } };
    return this.#volumes.every((reaches) => reaches(node));
  }

  /**
   * Beside what kube-scheduler looks at, a node that is being removed or that has stopped being Ready a moment ago, before
   * its taint has come.
   */
  #whyUnusable(node: Node): string | undefined {
    if (node.metadata.deletionTimestamp !== undefined) return 'being removed';
    if (node.spec?.unschedulable === true && firstUntolerated(this.#tolerations, [CORDONED]) !== undefined) {
      return 'cordoned';
    }
    const ready = conditionOf(node, 'Ready');
    if (ready?.status === 'True') return undefined;
    const said = node.spec?.taints?.some(({ key }) => SAID_NOT_READY.has(key)) === true;
    return said || firstUntolerated(this.#tolerations, [NOT_READY]) === undefined ? undefined : 'not ready';
  }
}

/** A virtual node of a member that is a host itself: what it offers is somebody else's. */
function isVirtual({ metadata: { labels = {} } }: Node): boolean {
  return Object.hasOwn(labels, NODE_LABEL) || Object.hasOwn(labels, MEMBER_LABEL);
}
