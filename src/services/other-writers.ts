import { MEMBER_LABEL } from '../api/marks.ts';
import { monotonic } from '../kube/clock.ts';
import type { KubeObject } from '../kube/object.ts';
import { SinceWhen } from '../kube/since-when.ts';
import type { ServicesMember } from './member-services-options.ts';

type Members = Pick<ServicesMember, 'name' | 'sharesCluster' | 'toldOf'>;

/**
 * Other MemberClusters that stand for the same cluster, by the label of what they wrote there. One of them sees to a Service: the one that
 * wrote it last, as long as it can write; but one that is Flat before one that is Isolated, which knows no endpoints but its own pods.
 *
 * All judge by what the host is told of each of them, so that they come to one answer. Only one that can write itself takes over:
 * else two that both lost the cluster would do so by turns when it is back.
 */
export class OtherWriters {
  readonly #members: Members;
  readonly #stalledMs: number;
  /** Those asked about. */
  readonly #watched = new Set<string>();
  /** By name, that it could not write while this one could. */
  readonly #unable = new SinceWhen();
  readonly #stalled = new Set<string>();

  /** `stalledMs`: for how long another one is seen unable to write before this one takes over. */
  constructor(members: Members, stalledMs: number) {
    this.#members = members;
    this.#stalledMs = stalledMs;
  }

  /** Called about every second. Returns whether one of them has just stalled. */
  look(): boolean {
    let isNews = false;
    for (const writer of this.#watched) {
      const isUnable = this.#isAbler(writer);
      const unableMs = this.#unable.lasting(writer, isUnable, monotonic());
      if (!isUnable) this.#stalled.delete(writer);
      if (!isUnable || unableMs < this.#stalledMs || this.#stalled.has(writer)) continue;
      this.#stalled.add(writer);
      isNews = true;
    }
    return isNews;
  }

  /** Whether it is another one's. */
  isOthers(object: KubeObject): boolean {
    return this.#writerOf(object) !== undefined;
  }

  /** Whether it is another one's that cannot write any more. */
  isAbandoned(object: KubeObject): boolean {
    const writer = this.#writerOf(object);
    return writer !== undefined && this.#hasStalled(writer);
  }

  /** Whether another one sees to the Service. */
  isSeenTo(service: KubeObject): boolean {
    const writer = this.#writerOf(service);
    if (writer === undefined || this.#hasStalled(writer)) return false;
    return !(this.#networkOf(writer) === 'Isolated' && this.#canWrite() && this.#networkOf(this.#name) === 'Flat');
  }

  /** Whether it is another one's slice, and this one does not know better where it should lead. */
  isToStay(slice: KubeObject): boolean {
    const writer = this.#writerOf(slice);
    if (writer === undefined) return false;
    const areFlat = [writer, this.#name].every((name) => this.#networkOf(name) === 'Flat');
    return !(areFlat && this.#hasStalled(writer));
  }

  get #name(): string {
    return this.#members.name;
  }

  #writerOf({ metadata }: KubeObject): string | undefined {
    const writer = metadata.labels?.[MEMBER_LABEL];
    return writer !== undefined && writer !== this.#name && this.#members.sharesCluster(writer) ? writer : undefined;
  }

  #hasStalled(writer: string): boolean {
    this.#watched.add(writer);
    return this.#stalled.has(writer) && this.#isAbler(writer);
  }

  /** Whether this one can write, and that one is known not to. */
  #isAbler(writer: string): boolean {
    return this.#canWrite() && this.#members.toldOf(writer)?.writes === false;
  }

  #canWrite(): boolean {
    return this.#members.toldOf(this.#name)?.writes === true;
  }

  #networkOf(member: string): 'Flat' | 'Isolated' | undefined {
    return this.#members.toldOf(member)?.network;
  }
}
