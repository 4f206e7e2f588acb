import { LRUCache } from 'lru-cache';
import { MEMBER_CONSTRAINTS_ANNOTATION, MIRRORED_CONDITION } from '../api/marks.ts';
import type { OverridePolicy } from '../api/override-policy.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { NodeSelector, Pod } from '../kube/core-v1.ts';
import { isNamedAsTokens } from '../kube/token-volume.ts';
import type { Amounts } from '../kube/amounts.ts';
import type { FitAnswer } from '../capacity/fit-answer.ts';
import { BoundRequests } from '../capacity/bound-requests.ts';
import { withHostCount } from '../capacity/host-count.ts';
import { boundedRequestOf, type FitRequest } from '../capacity/fit-request.ts';
import type { Offer } from '../capacity/ledger.ts';
import type { MemberCapacity } from '../capacity/member-capacity.ts';
import type { Candidate, Victims } from '../capacity/victims.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import { isFinished } from '../api/pod-phase.ts';
import { conditionOf } from '../kube/conditions.ts';
import { Expiries } from '../kube/expiries.ts';
import { atMost } from '../kube/lru-limit.ts';
import { mayBeMadeStill, roomIsKeptUntil } from '../pods/passing-holds.ts';
import type { ServiceAccountsPort } from '../pods/pod-ports.ts';
import type { RenderedPod } from '../pods/render-pod.ts';
import { type TranslateContext, translateScheduling } from '../pods/translate.ts';

interface Known {
  readonly policies: readonly OverridePolicy[];
  readonly answer: Answer;
  /** Where policies may change them: what it runs in the member. */
  readonly images?: readonly string[];
}

type Answer = FitRequest | { readonly refused: string } | { readonly unknown: string };

export interface VirtualNodeFitOptions {
  readonly nodeName: string;
  readonly member: string;
  readonly capacity: MemberCapacity;
  readonly ready: () => boolean;
  /** Why it is not ready, for people, where that is known. */
  readonly problem?: () => string | undefined;
  readonly memberNamespaceOf: (hostNamespace: string) => string | undefined;
  readonly modeOf: ServiceAccountsPort['modeOf'];
  readonly translateContext: (hostPod: Pod, memberNamespace: string, mode: ServiceAccountMode) => TranslateContext;
  /** What its translation depends on besides the pod and policies; other objects once any of it has changed. */
  readonly depends: () => readonly unknown[];
  /** Override policies have been read. */
  readonly policiesAreKnown: () => boolean;
  /** Those that may concern pods of a namespace. The same list until one of them changes. */
  readonly policies: (hostNamespace: string) => readonly OverridePolicy[];
  /** How much of these images the nodes of the member have, 0 to 100. */
  readonly imageShare: (images: readonly string[]) => number | undefined;
  /** The whole pod with policies applied, which is needed only where there are any. */
  readonly render: (hostPod: Pod) => RenderedPod;
  /** Why claims of a pod cannot be used in the member; each pod of a template has its own. */
  readonly claimRefusal: (hostPod: Pod) => { message: string } | undefined;
  /** The nodes of the member that volumes of the pod's claims are limited to, as far as that is known. */
  readonly volumePlaces: (hostPod: Pod) => readonly NodeSelector[];
  /** Told when the requests of the pods that are bound to the node changed. */
  readonly boundChanged?: () => void;
  /** Wall clock, in ms since 1970. */
  readonly clock: () => number;
  /** Asks the member itself whether it has a node for the pod; undefined: it does not say. */
  readonly readHasNode: (podUid: string, signal: AbortSignal) => Promise<boolean | undefined>;
}

const NO_POD = 'its override policies make no pod that can be read: a field of it has a value of the wrong type';

/** Shapes of pods whose translation is remembered. */
const MAX_SHAPES = 512;

/** The room behind one virtual node: asks the member's nodes about pods of the host as they will be there. */
export class VirtualNodeFit implements VirtualNodeCapacity {
  readonly nodeName: string;
  readonly member: string;
  readonly #o: VirtualNodeFitOptions;
  readonly #requests = new LRUCache<string, Known>(atMost(MAX_SHAPES));
  readonly #bound = new BoundRequests();
  /** Bound pods whose room is kept for some time, by UID. */
  readonly #kept = new Expiries<Pod>();
  #depends: readonly unknown[] = [];
  #ended = false;

  constructor(options: VirtualNodeFitOptions) {
    this.#o = options;
    this.nodeName = options.nodeName;
    this.member = options.member;
  }

  get ready(): boolean {
    return this.#o.ready();
  }

  get problem(): string | undefined {
    return this.#o.problem?.();
  }

  request(hostPod: Pod): Answer {
    return this.#know(hostPod).answer;
  }

  images(hostPod: Pod): number | undefined {
    return this.#o.imageShare(this.#know(hostPod).images ?? imagesOf(hostPod));
  }

  #know(hostPod: Pod): Pick<Known, 'answer' | 'images'> {
    this.#forgetWhatChanged();
    if (!this.#o.policiesAreKnown()) return { answer: { unknown: 'the override policies have not been read yet' } };
    const refusal = this.#o.claimRefusal(hostPod);
    if (refusal !== undefined) return { answer: { refused: refusal.message } };
    const policies = this.#o.policies(hostPod.metadata.namespace ?? '');
    const account = this.#o.modeOf(hostPod);
    if ('hold' in account) return { answer: { refused: account.hold.message } };
    if ('wait' in account) return { answer: { unknown: account.wait } };
    const volumes = this.#o.volumePlaces(hostPod);
    const places = volumes.length === 0 ? '' : ` ${JSON.stringify(volumes)}`;
    const shape = `${account.mode} ${policies.length === 0 ? shapeOf(hostPod) : wholeShapeOf(hostPod)}${places}`;
    const known = this.#requests.get(shape);
    if (known?.policies === policies) return known;
    const found = { policies, ...this.#render(hostPod, policies, account.mode, volumes) };
    if (!('unknown' in found.answer)) this.#requests.set(shape, found);
    return found;
  }

  fits(request: FitRequest): FitAnswer {
    this.#endKept();
    return this.#o.capacity.fits(request);
  }

  slots(request: FitRequest, upTo: number): number {
    this.#endKept();
    return this.#o.capacity.slots(request, upTo);
  }

  largestFreeSlot(request: FitRequest): Amounts | undefined {
    return this.#o.capacity.largestFreeSlot(request);
  }

  victims(request: FitRequest, candidates: readonly Candidate[]): Victims | undefined {
    return this.#o.capacity.victims(request, candidates);
  }

  reserve(podUid: string, request: FitRequest, insteadOf?: readonly string[]): void {
    this.#o.capacity.reserve(podUid, request, 'choice', insteadOf);
  }

  release(podUid: string): void {
    this.#o.capacity.release(podUid);
  }

  lift(podUid: string): boolean {
    return this.#o.capacity.lift(podUid);
  }

  putBack(podUid: string): void {
    this.#o.capacity.putBack(podUid);
  }

  holds(podUid: string): boolean {
    return this.#o.capacity.holds(podUid);
  }

  async hasNode(podUid: string, signal: AbortSignal): Promise<boolean | undefined> {
    return this.#o.capacity.wasPlaced(podUid) || (await this.#o.readHasNode(podUid, signal));
  }

  /** What the Node shows, once all pods that are bound to it are known; undefined for one that is not wanted. */
  offer(): Offer | undefined {
    this.#endKept();
    return this.#o.capacity.offer(this.nodeName, this.#bound.sum);
  }

  /**
   * For the informer of host pods that are bound to this node. The host's scheduler counts them all; whatever the member was never
   * asked to run still needs its room there. Both are known from the pods alone, so they are known again after a restart.
   */
  readonly hostPodHandler = {
    added: (pod: Pod): void => this.noteBound(pod),
    updated: (pod: Pod): void => this.noteBound(pod),
    deleted: ({ metadata: { uid = '' } }: Pod): void => {
      this.#kept.delete(uid);
      this.#o.capacity.release(uid, 'binding');
      if (this.#bound.delete(uid)) this.#o.boundChanged?.();
    },
  };

  /** A pod that is bound to this node, as it is now; also when what it will ask for in the member may have changed. */
  noteBound(pod: Pod): void {
    if (this.#ended) return;
    const { uid = '', deletionTimestamp } = pod.metadata;
    const mirrored = conditionOf(pod, MIRRORED_CONDITION)?.status;
    const isOver = deletionTimestamp !== undefined && !mayBeMadeStill(pod);
    const until = roomIsKeptUntil(pod);
    const isSettled = mirrored === 'True' || until <= this.#o.clock() || isOver || isFinished(pod);
    if (isSettled || until === Number.POSITIVE_INFINITY) this.#kept.delete(uid);
    else this.#kept.set(uid, pod, until);
    const request = isSettled ? undefined : this.request(pod);
    if (request !== undefined && 'key' in request) this.#o.capacity.reserve(uid, request, 'binding');
    // A pod that the member has been shown stands there for itself until it has finished.
    else if (mirrored !== 'True' || isFinished(pod)) this.#o.capacity.release(uid, 'binding');
    // While it is not known what a pod will take there, it is taken to be what the host counts: that is not offered anew.
    const isUnknown = request !== undefined && 'unknown' in request;
    if (isUnknown ? this.#bound.delete(uid) : this.#bound.set(uid, pod)) this.#o.boundChanged?.();
  }

  #endKept(): void {
    for (const pod of this.#kept.takeEnded(this.#o.clock())) this.noteBound(pod);
  }

  /** Nobody tells of pods that are bound to it any more. For good. */
  end(): void {
    this.#ended = true;
    for (const uid of this.#bound.uids()) this.#o.capacity.release(uid, 'binding');
  }

  #render(
    hostPod: Pod,
    policies: readonly OverridePolicy[],
    mode: ServiceAccountMode,
    volumes: readonly NodeSelector[],
  ): Omit<Known, 'policies'> {
    const { memberNamespaceOf, translateContext, render, nodeName } = this.#o;
    const pod = markable(hostPod);
    if (policies.length > 0) {
      try {
        const rendered = render(pod);
        if ('unknown' in rendered) return { answer: rendered };
        if ('hold' in rendered) return { answer: { refused: rendered.hold.message } };
        const request = boundedRequestOf(withOverhead(rendered.pod, hostPod), nodeName, volumes);
        const answer = 'key' in request ? withHostCount(request, hostPod) : request;
        return { answer, images: imagesOf(rendered.pod) };
      } catch {
        // Policies may put any JSON anywhere, and only the member's API server would say so.
        return { answer: { refused: NO_POD } };
      }
    }
    const namespace = memberNamespaceOf(hostPod.metadata.namespace ?? '');
    if (namespace === undefined) return { answer: { refused: 'its namespace has no place there' } };
    const translation = translateScheduling(pod, translateContext(pod, namespace, mode));
    if (translation.kind === 'refused') return { answer: { refused: translation.message } };
    return { answer: boundedRequestOf(withOverhead(translation.pod, hostPod), nodeName, volumes) };
  }

  #forgetWhatChanged(): void {
    const now = this.#o.depends();
    if (!isSameList(now, this.#depends)) this.#requests.clear();
    this.#depends = now;
  }
}

function isSameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index += 1) if (one[index] !== other[index]) return false;
  return true;
}

const images = new WeakMap<Pod, readonly string[]>();

/** Listed once, as a hundred members are asked about the same pod. */
function imagesOf(pod: Pod): readonly string[] {
  const known = images.get(pod);
  if (known !== undefined) return known;
  const { initContainers = [], containers } = pod.spec;
  const all = [...initContainers, ...containers].map(({ image }) => image).filter((image) => image !== undefined);
  const listed = [...new Set(all)];
  images.set(pod, listed);
  return listed;
}

/** The member's RuntimeClass will say what it adds; until then it is taken to be what the host's class of that name adds. */
function withOverhead(pod: Pod, { spec: { overhead, runtimeClassName } }: Pod): Pod {
  if (overhead === undefined || pod.spec.runtimeClassName !== runtimeClassName) return pod;
  return { ...pod, spec: { ...pod.spec, overhead } };
}

/** A pod that is only being thought about may have no UID yet; whether it can be marked is no question of room. */
function markable(hostPod: Pod): Pod {
  const { uid, name } = hostPod.metadata;
  if (uid !== undefined && name !== '') return hostPod;
  return { ...hostPod, metadata: { ...hostPod.metadata, uid: uid ?? 'none', name: name === '' ? 'none' : name } };
}

const shapes = new WeakMap<Pod, string>();
const wholeShapes = new WeakMap<Pod, string>();

/** All that decides where a pod can run, as a text; the same for all pods of a template. */
function shapeOf(pod: Pod): string {
  return remembered(shapes, pod, () => {
    const { namespace, labels, annotations } = pod.metadata;
    const constraints = annotations?.[MEMBER_CONSTRAINTS_ANNOTATION];
    const { containers, initContainers, volumes, hostname: _, nodeName: _node, ...spec } = pod.spec;
    const demand = ({ name, resources, ports, restartPolicy }: Pod['spec']['containers'][number]): unknown => [
      name,
      resources,
      ports,
      restartPolicy,
    ];
    const claims = volumes
      ?.filter(({ name }) => !isNamedAsTokens(name))
      .map(({ name: _name, ...source }) => Object.keys(source));
    const paths = volumes?.map(({ hostPath }) => hostPath?.path).filter((path) => path !== undefined);
    const demands = [containers.map(demand), initContainers?.map(demand)];
    return JSON.stringify([namespace, labels, constraints, spec, demands, claims, paths]);
  });
}

/** The same where policies may look at, and change, anything. */
function wholeShapeOf(pod: Pod): string {
  return remembered(wholeShapes, pod, () => {
    const { namespace, labels, annotations, ownerReferences } = pod.metadata;
    const { containers, volumes, hostname: _, nodeName: _node, ...spec } = pod.spec;
    const parts = containers.map(({ volumeMounts, ...container }) => [
      container,
      volumeMounts?.filter(({ name }) => !isNamedAsTokens(name)),
    ]);
    const owners = ownerReferences?.map(({ kind, name }) => [kind, name]);
    const own = volumes?.filter(({ name }) => !isNamedAsTokens(name));
    return JSON.stringify([namespace, labels, annotations, owners, spec, parts, own]);
  });
}

/** Shapes by their texts: a hundred members look them up for each pod, and texts of a KiB or two are slow keys. */
const names = new LRUCache<string, string>({ max: 16 * MAX_SHAPES });
let shapesNamed = 0;

/** A short name for what `make` says of the pod; the same for the same text, as long as the text is not forgotten. */
function remembered(memory: WeakMap<Pod, string>, pod: Pod, make: () => string): string {
  const known = memory.get(pod);
  if (known !== undefined) return known;
  const text = make();
  let name = names.get(text);
  if (name === undefined) {
    shapesNamed += 1;
    name = String(shapesNamed);
    names.set(text, name);
  }
  memory.set(pod, name);
  return name;
}
