import type { Pod } from '../kube/core-v1.ts';
import { type Taint, taintInWords } from '../kube/taints.ts';
import type { PlacedMember } from '../placement/placed-pods.ts';

/**
 * How long this process has seen each taint of a member, and pods against it. Starts again after a restart, so tolerations never
 * end too early.
 */
export class TaintAges {
  readonly #monotonic: () => number;
  /** By member, virtual node and taint, in monotonic ms. */
  #since = new Map<string, number>();
  /** Members with taints. */
  #tainted: ReadonlySet<string> = new Set();
  /** By UID, pods that came to such a member, and when, in monotonic ms. Others were there before any of its taints. */
  readonly #came = new Map<string, { readonly member: string; readonly at: number }>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** All members as they are now. */
  observe(members: readonly PlacedMember[]): void {
    const now = this.#monotonic();
    const keys = members.map(({ name, nodeTaints, outOfService, clusterTaints }) => {
      const nodes = [...nodeTaints, ...outOfService].flatMap(([node, taints]) =>
        taints.map((taint) => keyOf(name, node, taint)),
      );
      return [name, [...nodes, ...clusterTaints.map((taint) => keyOf(name, undefined, taint))]] as const;
    });
    this.#since = new Map(keys.flatMap(([, own]) => own.map((key) => [key, this.#since.get(key) ?? now])));
    this.#tainted = new Set(keys.flatMap(([name, own]) => (own.length > 0 ? name : [])));
    for (const [uid, { member }] of this.#came) if (!this.#tainted.has(member)) this.#came.delete(uid);
  }

  /** The pod was bound to a virtual node of the member, or is seen for the first time there. */
  podCame({ metadata: { uid = '' } }: Pod, member: string): void {
    if (this.#tainted.has(member) && !this.#came.has(uid)) this.#came.set(uid, { member, at: this.#monotonic() });
  }

  podGone({ metadata: { uid = '' } }: Pod): void {
    this.#came.delete(uid);
  }

  /** Of a taint of a virtual node, or of the member as a whole (undefined). In ms. */
  ageMs(member: string, node: string | undefined, taint: Taint): number {
    const since = this.#since.get(keyOf(member, node, taint));
    return since === undefined ? 0 : this.#monotonic() - since;
  }

  /** How long the pod has been there with that taint, in ms: from the later of the two, as for Kubernetes' own taint manager. */
  againstMs(pod: Pod, member: string, node: string | undefined, taint: Taint): number {
    const at = this.#came.get(pod.metadata.uid ?? '')?.at;
    const ageMs = this.ageMs(member, node, taint);
    return at === undefined ? ageMs : Math.min(ageMs, this.#monotonic() - at);
  }
}

function keyOf(member: string, node: string | undefined, taint: Taint): string {
  return `${member}/${node ?? ''} ${taintInWords(taint)}`;
}
