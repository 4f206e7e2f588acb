import { type FencingState, MOST_FENCED_PODS, readFencing } from '../api/fencing.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { isOlder } from '../kube/resource-version.ts';
import { get, patch } from '../kube/verbs.ts';

/** By UID, what is to be written of pods; null: to be taken out. */
type Changes = Map<string, string | null>;

export interface FencingRecordOptions {
  host: KubeClient;
  /** Name and UID of the MemberCluster. */
  member: { name: string; uid: string | undefined };
}

/**
 * `status.fencing` of a MemberCluster: which virtual nodes are out of service, and which pods were ended for that. What counts here
 * is only what the API server has stored. Writes of pods that come together go as one; each touches its own keys only. What a node's
 * word is worth goes back and forth, and is bound to the version that it was made for, lest one that is carried out late comes last.
 */
export class FencingRecord {
  readonly #o: FencingRecordOptions;
  #stored: { version: string; nodes: Map<string, FencingState>; pods: Map<string, string> } | undefined;
  #waiting: Changes = new Map();
  #underWay: Changes = new Map();
  #writing: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(options: FencingRecordOptions) {
    this.#o = options;
  }

  /** What former processes wrote is known. */
  get isRead(): boolean {
    return this.#stored !== undefined;
  }

  get nodes(): ReadonlyMap<string, FencingState> {
    return this.#stored?.nodes ?? new Map<string, FencingState>();
  }

  /** Where each pod ran, by UID. */
  get pods(): ReadonlyMap<string, string> {
    return this.#stored?.pods ?? new Map<string, string>();
  }

  /** Past all caches. @throws what the API server answers */
  async read(signal: AbortSignal): Promise<void> {
    const { host, member } = this.#o;
    try {
      this.#keep(await get<KubeObject>(host, MEMBER_CLUSTERS, { name: member.name }, { signal }));
    } catch (error) {
      // What is not there says nothing of anything, and nothing can be stored in it.
      if (!isNotFound(error)) throw error;
      this.#stored ??= { version: '', nodes: new Map(), pods: new Map() };
    }
  }

  /** @throws what the API server answers: 409 when the object is written to meanwhile */
  async setNode(node: string, state: FencingState | undefined, signal: AbortSignal): Promise<void> {
    await this.read(signal);
    const { uid } = this.#o.member;
    const metadata = { uid, resourceVersion: this.#stored?.version };
    await this.#send({ metadata, status: { fencing: { nodes: { [node]: state ?? null } } } }, signal);
  }

  /** Whether it is stored now that the pod was ended; false: there is no room for another one. @throws what the API server answers */
  async tell(uid: string, where: string, signal: AbortSignal): Promise<boolean> {
    if (this.pods.has(uid)) return true;
    const coming = new Set([...this.#underWay.keys(), ...this.#waiting.keys()]);
    if (!coming.has(uid) && this.pods.size + coming.size >= MOST_FENCED_PODS) return false;
    this.#waiting.set(uid, where);
    await this.#write(signal);
    return this.pods.has(uid);
  }

  /** @throws what the API server answers */
  async forget(uids: Iterable<string>, signal: AbortSignal): Promise<void> {
    for (const uid of uids) this.#waiting.set(uid, null);
    if (this.#waiting.size > 0) await this.#write(signal);
  }

  /** With what others want written by then. */
  async #write(signal: AbortSignal): Promise<void> {
    if (this.#writing === undefined) {
      await this.#begin(signal);
      return;
    }
    this.#next ??= this.#writing.then(
      async () => await this.#begin(signal),
      async () => await this.#begin(signal),
    );
    await this.#next;
  }

  async #begin(signal: AbortSignal): Promise<void> {
    this.#next = undefined;
    const changes = this.#waiting;
    this.#underWay = changes;
    this.#waiting = new Map();
    const { uid } = this.#o.member;
    const body = { metadata: { uid }, status: { fencing: { pods: Object.fromEntries(changes) } } };
    const writing = this.#send(body, signal);
    this.#writing = writing;
    try {
      await writing;
    } finally {
      if (this.#writing === writing) {
        this.#writing = undefined;
        this.#underWay = new Map();
      }
    }
  }

  async #send(body: object, signal: AbortSignal): Promise<void> {
    const { host, member } = this.#o;
    const how = { type: 'merge', subresource: 'status', fieldManager: 'spillway' } as const;
    this.#keep(await patch<KubeObject>(host, MEMBER_CLUSTERS, { name: member.name }, body, how, { signal }));
  }

  /** An older CRD drops what it does not know: then nothing is stored, and nothing is ended. */
  #keep(object: KubeObject): void {
    const { nodes = {}, pods = {} } = readFencing(object);
    const version = object.metadata.resourceVersion ?? '';
    // Answers may come in another order than they were given.
    if (isOlder(version, this.#stored?.version)) return;
    this.#stored = { version, nodes: new Map(Object.entries(nodes)), pods: new Map(Object.entries(pods)) };
  }
}
