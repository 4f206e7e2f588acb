import { NODE_LABEL } from '../../../src/api/marks.ts';
import { hostUidOf } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { isOfProgram } from '../sim-process.ts';
import type { Report } from './report.ts';

/** A permit holds for five minutes, and what was permitted is done within one. */
const WINDOW_MS = 4 * 60_000;

/** What was sent before has arrived by then. */
const ON_THE_WAY_MS = 60_000;

/** Of the host pod with that UID: nothing but its absence says that it is gone. */
type IsMissing = (hostUid: string) => boolean;

/** I2: few copies are ended because their host pods merely cannot be found. */
export class MissingOracle {
  readonly #report: Report;
  /** UIDs of host pods of which each process was told that they are being or were deleted: `process uid`. */
  readonly #told = new Set<string>();
  /** Copies that were ended, by `process node`: UID and when, in ms. */
  readonly #ended = new Map<string, Map<string, number>>();
  /** By virtual node, how many copies it had, and when, in ms. */
  readonly #counts = new Map<string, { at: number; count: number }[]>();
  /** Since when each member's deletions have been held back, in ms, and of which virtual nodes. */
  readonly #held = new Map<string, { since: number; nodes: Set<string> }>();
  /** From when on an administrator lets all go. */
  confirmed = false;

  constructor(report: Report) {
    this.#report = report;
  }

  received({ outgoing, owner }: Call, text: string): void {
    if (owner === undefined || !outgoing.path.includes('/pods') || !text.includes('elet')) return;
    for (const line of text.split('\n')) {
      if (!line.startsWith('{"type":"DELETED"') && !line.includes('"deletionTimestamp"')) continue;
      for (const [, uid] of line.matchAll(/"uid":"([^"]+)"/g)) this.#told.add(`${owner.name} ${uid}`);
    }
  }

  /**
   * The program, or anybody, writes a MemberCluster; the member has those pods. What is held back is told by member, and held back by
   * virtual node: of those where more are missing than may be ended.
   */
  memberCluster({ object, by, at }: Change, isMissing: IsMissing, pods: readonly SimObject[]): void {
    const { conditions = [] } = (object['status'] ?? {}) as { conditions?: { type: string; status: string }[] };
    const allowed = conditions.find(({ type }) => type === 'DeletionsAllowed')?.status;
    const isHeld = allowed === 'False';
    const { name } = object.metadata;
    const held = this.#held.get(name) ?? { since: at, nodes: new Set() };
    if (allowed === 'True' && isOfProgram(by) && !this.confirmed) {
      for (const node of held.nodes) this.#letGo(by, name, node, isMissing, pods);
    }
    if (!isHeld) this.#held.delete(name);
    else this.#held.set(name, held);
    const nodeOf = ({ metadata }: SimObject): string => metadata.labels?.[NODE_LABEL] ?? '';
    for (const node of new Set(isHeld ? pods.map(nodeOf) : [])) {
      const there = pods.filter((pod) => nodeOf(pod) === node);
      const missing = there.filter((pod) => isMissing(hostUidOf(pod) ?? '')).length;
      if (missing + this.#endedOf(node, at) > permitsFor(there.length)) held.nodes.add(node);
    }
  }

  /** Deletions of the node's pods are held back no more, and no administrator said so. */
  #letGo(by: string, member: string, node: string, isMissing: IsMissing, pods: readonly SimObject[]): void {
    const there = pods.filter(({ metadata }) => metadata.labels?.[NODE_LABEL] === node);
    const missing = there.filter(
      (pod) => pod.metadata.deletionTimestamp === undefined && isMissing(hostUidOf(pod) ?? ''),
    ).length;
    if (missing <= permitsFor(there.length)) return;
    this.#report(
      'I2',
      `${by} holds no deletions back in ${member} any more, although ${missing} pods of ${node} are missing in the host`,
    );
  }

  /** How many were ended of a virtual node lately. */
  #endedOf(node: string, now: number): number {
    const ended = [...this.#ended]
      .filter(([key]) => key.endsWith(` ${node}`))
      .flatMap(([, uids]) => [...uids.values()]);
    return ended.filter((at) => now - at < WINDOW_MS).length;
  }

  /** The most copies that the virtual node of this one had when any of them was ended lately: by so many permits are given. */
  #most(object: SimObject, at: number, pods: readonly SimObject[]): number {
    const node = object.metadata.labels?.[NODE_LABEL] ?? '';
    let count = 0;
    for (const pod of pods) if (pod.metadata.labels?.[NODE_LABEL] === node) count += 1;
    const counts = (this.#counts.get(node) ?? []).filter((one) => at - one.at < WINDOW_MS);
    counts.push({ at, count });
    this.#counts.set(node, counts);
    // One that is gone at once is not counted any more.
    return Math.max(...counts.map((one) => one.count)) + 1;
  }

  /** The program ends a copy in a member, which has those pods. */
  deletes({ by, object, cluster, at }: Change, isMissing: IsMissing, pods: readonly SimObject[]): void {
    const uid = hostUidOf(object) ?? '';
    const most = this.#most(object, at, pods);
    if (this.confirmed || !isMissing(uid) || this.#told.has(`${by} ${uid}`)) return;
    const node = object.metadata.labels?.[NODE_LABEL] ?? '';
    const held = this.#held.get(cluster.name);
    if (held?.nodes.has(node) === true && at - held.since > ON_THE_WAY_MS) {
      this.#report('I2', `${by} ends a pod of ${node} in ${cluster.name} although deletions are held back`);
    }
    const key = `${by} ${node}`;
    const ended = new Map([...(this.#ended.get(key) ?? [])].filter(([, time]) => at - time < WINDOW_MS));
    // A copy without a grace period is marked and gone by one request: two changes, and one copy that was ended.
    ended.set(object.metadata.uid, at);
    this.#ended.set(key, ended);
    if (ended.size > permitsFor(most)) {
      this.#report(
        'I2',
        `${by} ends ${ended.size} pods of ${node} in ${cluster.name} whose host pods are merely missing`,
      );
    }
  }
}

/** How many copies may be ended of a virtual node that has so many, because their host pods are merely missing. */
function permitsFor(copies: number): number {
  return Math.max(5, Math.floor(copies / 10));
}
