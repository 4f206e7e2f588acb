import { hostKeyOf } from '../api/host-key.ts';
import { HOST_LABEL, NODE_LABEL, UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyFor, splitKey } from '../kube/object.ts';
import { mirroredUid } from './host-status.ts';
import { VIRTUAL_NODE_INDEX } from './pod-indexes.ts';
import { HOST_POD_INDEX, type MemberPort, type NamespacesPort } from './pod-ports.ts';

/** Which of our member pods for one key counts, and one that must not be beside it. */
interface Copies {
  memberPod: Pod | undefined;
  /** One more copy of the same host pod, in another namespace: of a creation that came to something late. */
  second: Pod | undefined;
}

interface OwnCopiesOptions {
  member: Pick<MemberPort, 'pods'>;
  hostId: string;
  nodeName: string;
  namespaces: Pick<NamespacesPort, 'memberNamespaceOf'>;
}

/** Our pods in the member that run for pods of one virtual node, by the keys of these. */
export class OwnCopies {
  readonly #o: OwnCopiesOptions;

  constructor(options: OwnCopiesOptions) {
    this.#o = options;
  }

  /** The key of the host pod that a member pod of ours, on this virtual node, runs for. */
  hostKeyOf(pod: Pod): string | undefined {
    const { labels } = pod.metadata;
    if (labels?.[HOST_LABEL] !== this.#o.hostId || labels[NODE_LABEL] !== this.#o.nodeName) return undefined;
    return hostKeyOf(pod);
  }

  /** Our member pods of this virtual node: those of other node pools of the member say nothing of it. */
  get all(): readonly Pod[] {
    return this.#o.member.pods.byIndex(VIRTUAL_NODE_INDEX, this.#o.nodeName);
  }

  /** Our member pods of that key. */
  of(key: string): readonly Pod[] {
    return this.#o.member.pods.byIndex(HOST_POD_INDEX, `${this.#o.nodeName}/${key}`);
  }

  /** Whether another copy of its host pod is there. */
  hasAnother(key: string, gone: Pod): boolean {
    const uid = gone.metadata.labels?.[UID_LABEL];
    return this.of(key).some(({ metadata }) => metadata.labels?.[UID_LABEL] === uid);
  }

  /** The one of that key; else whatever sits at its place in the member. */
  at(key: string, hostPod: Pod | undefined): Copies {
    const own = this.of(key);
    if (own.length > 0) return chooseCopy(own, hostPod);
    const { namespace = '', name } = splitKey(key);
    const memberNamespace = this.#o.namespaces.memberNamespaceOf(namespace);
    const memberPod =
      memberNamespace === undefined ? undefined : this.#o.member.pods.get(keyFor(memberNamespace, name));
    return { memberPod, second: undefined };
  }
}

/**
 * Chooses among our member pods `own` that run for one host namespace and name: a former one first, which has to go before
 * all else; of several copies of this very host pod the one that it remembers, else the oldest that is not being deleted.
 */
function chooseCopy(own: readonly Pod[], hostPod: Pod | undefined): Copies {
  const uid = hostPod?.metadata.uid;
  const former = own.find(({ metadata }) => metadata.labels?.[UID_LABEL] !== uid);
  if (hostPod === undefined || former !== undefined || own.length < 2) {
    return { memberPod: former ?? own[0], second: undefined };
  }
  const remembered = mirroredUid(hostPod);
  const [memberPod, ...others] = own.toSorted(
    (one, other) =>
      Number(other.metadata.uid === remembered) - Number(one.metadata.uid === remembered) ||
      Number(isLeaving(one)) - Number(isLeaving(other)) ||
      bornOf(one) - bornOf(other) ||
      ((one.metadata.uid ?? '') < (other.metadata.uid ?? '') ? -1 : 1),
  );
  // What has another name was not made by us, whatever labels somebody gave it.
  const second = others.find((pod) => pod.metadata.name === hostPod.metadata.name && !isLeaving(pod));
  return { memberPod, second };
}

function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function bornOf({ metadata: { creationTimestamp } }: Pod): number {
  return creationTimestamp === undefined ? 0 : Date.parse(creationTimestamp);
}
