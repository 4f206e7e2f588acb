import { GANG_LABEL } from '../../../src/api/marks.ts';
import { releasedFrom } from '../../../src/api/released.ts';
import { asPod, isFinal, isReady } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import type { World } from '../world.ts';
import { MigrationOracle } from './migration-oracle.ts';
import { PolicyEdits } from './policy-edits.ts';
import { RehearsalOracle } from './rehearsal-oracle.ts';
import type { Report } from './report.ts';

/** What was so a moment ago may be so still in the caches of those who watch late, in ms. */
const LATE_MS = 90_000;
/** No pod is moved for the loss of its member before that, in ms. */
const LOST_AFTER_MS = 15_000;
/** Pods are where an edited policy wants them by then, in ms: moves keep a pace. */
const EDITED_MS = 15 * 60_000;
/** Make another pod as soon as one is on its way out. */
const REPLACING_AT_ONCE = new Set(['ReplicaSet']);

export interface MoveFacts {
  /** By the word of an administrator nothing runs on that Node. */
  readonly isOutOfService: (nodeName: string) => boolean;
  /** Whether a pod runs, by its UID, and did so at the same time as all of its gang for some time before that moment (ms). */
  readonly ranWhole: (uid: string, at: number) => boolean;
}

/** I11: a pod that may have begun is moved only for a reason that stands, not where that is only rehearsed, and replaced unseen only where two do no harm. */
export class MovesOracle {
  readonly #world: World;
  readonly #report: Report;
  readonly #facts: MoveFacts;
  readonly #migrations = new MigrationOracle();
  readonly #rehearsals = new RehearsalOracle();
  readonly #edits = new PolicyEdits();
  /** Until when each member was lost, or tainted with effect NoExecute, by its object in the host; Infinity while it is. */
  readonly #lost = new Map<string, number>();
  readonly #lostSince = new Map<string, number>();
  readonly #tainted = new Map<string, number>();
  /** By UID of the pod: since when it has had a node. */
  readonly #bound = new Map<string, number>();
  /** By UID of the pod: since when it has not been Ready in the host, and until when it was. */
  readonly #ill = new Map<string, number>();
  readonly #ready = new Map<string, { pod: SimObject; until: number }>();

  constructor(world: World, report: Report, facts: MoveFacts) {
    this.#world = world;
    this.#report = report;
    this.#facts = facts;
  }

  /** `hasBegun`: a copy of the pod was there. */
  changed(change: Change, hasBegun: (uid: string) => boolean): void {
    const { cluster, object, previous, by, at } = change;
    if (cluster !== this.#world.host) return;
    this.#migrations.changed(change);
    this.#rehearsals.changed(change);
    this.#edits.changed(change);
    if (object['kind'] === 'MemberCluster') this.#member(object, at);
    if (object['kind'] === 'Pod') this.#health(change);
    const isMoved =
      object['kind'] === 'Pod' &&
      isOfProgram(by) &&
      previous !== undefined &&
      previous.metadata.deletionTimestamp === undefined &&
      object.metadata.deletionTimestamp !== undefined &&
      !isFinal(previous) &&
      !isOut(previous);
    const isReleased =
      object['kind'] === 'Pod' && isOfProgram(by) && previous !== undefined && isOut(object) && !isOut(previous);
    if (isReleased) this.#released(change);
    if (isMoved && hasBegun(object.metadata.uid)) this.#moved(change);
  }

  #member({ metadata: { name }, spec, status }: SimObject & { spec?: unknown; status?: unknown }, at: number): void {
    type Taints = { effect: string }[];
    const { conditions = [], taints = [] } = (status ?? {}) as {
      conditions?: { type: string; status: string }[];
      taints?: Taints;
    };
    const { clusterTaints = [] } = (spec ?? {}) as { clusterTaints?: Taints };
    const isLost = conditions.some((one) => one.type === 'Reachable' && one.status === 'False');
    note(this.#lost, name, at, isLost);
    if (!isLost) this.#lostSince.delete(name);
    else if (!this.#lostSince.has(name)) this.#lostSince.set(name, at);
    note(
      this.#tainted,
      name,
      at,
      [...clusterTaints, ...taints].some(({ effect }) => effect === 'NoExecute'),
    );
  }

  /** As pods that are not to end before others are Ready. */
  #released({ object, by, at }: Change): void {
    const { member, isLost, isTainted } = this.#standing(object, at);
    const waits = releasedFrom(asPod(object))?.lost === true;
    if (waits && !isLost)
      this.#report('I11', `${by} lets ${object.metadata.name} wait for ${member}, which is not lost`);
    this.#kept({ object, by, at }, member);
    const isWanted = isTainted || this.#isMigrated(object, member, at) || this.#edits.within(EDITED_MS, at);
    if (waits || isWanted || this.#isAlike(object, member, at)) return;
    this.#report(
      'I11',
      `${by} releases ${object.metadata.name} in ${member}, which is not tainted, and others are elsewhere`,
    );
  }

  /** Nobody ordered it, and its policy has such moves rehearsed. */
  #kept({ object, by, at }: Pick<Change, 'object' | 'by' | 'at'>, member: string): void {
    if (this.#rehearsals.keeps(object, at, LATE_MS) && !this.#isMigrated(object, member, at))
      this.#report('I11', `${by} moves ${object.metadata.name} out of ${member}, which its policy only rehearses`);
  }

  /** Its workload is to leave that member. */
  #isMigrated(object: SimObject, member: string, at: number): boolean {
    return this.#migrations.wants(object, member, at, LATE_MS);
  }

  #standing(object: SimObject, at: number): { member: string; isLost: boolean; isTainted: boolean } {
    const { nodeName = '' } = asPod(object).spec;
    const members = [...this.#world.members.keys()];
    const member = members.find((name) => nodeName === name || nodeName.startsWith(`${name}-`)) ?? nodeName;
    const isSo = (until: ReadonlyMap<string, number>): boolean => at - (until.get(member) ?? -LATE_MS) < LATE_MS;
    return { member, isLost: isSo(this.#lost), isTainted: isSo(this.#tainted) };
  }

  /** All of its controller are in that cluster, or were a moment ago: rules may ask for two of them. */
  #isAlike(object: SimObject, member: string, at: number): boolean {
    const owner = controllerUid(object);
    const others = [...this.#world.host.list('/api/v1/pods')].filter(
      (pod) =>
        controllerUid(pod) === owner &&
        pod.metadata.deletionTimestamp === undefined &&
        !isFinal(pod) &&
        asPod(pod).spec.nodeName !== undefined &&
        this.#standing(pod, at).member !== member,
    );
    return owner !== undefined && others.every(({ metadata }) => at - (this.#bound.get(metadata.uid) ?? at) < LATE_MS);
  }

  #health({ object, previous, type, at }: Change): void {
    const { uid } = object.metadata;
    if (asPod(object).spec.nodeName !== undefined && !this.#bound.has(uid)) this.#bound.set(uid, at);
    const isWell = type !== 'DELETED' && isReady(object);
    if (isWell) this.#ready.set(uid, { pod: object, until: Number.POSITIVE_INFINITY });
    else if (previous !== undefined && isReady(previous)) this.#ready.set(uid, { pod: object, until: at });
    if (isWell) this.#ill.delete(uid);
    else if (!this.#ill.has(uid)) this.#ill.set(uid, at);
    if (type === 'DELETED') this.#ill.delete(uid);
  }

  /** It is not Ready, and another one of its controller was, in another cluster, a moment ago. */
  #isIll(object: SimObject, member: string, at: number): boolean {
    if (!this.#ill.has(object.metadata.uid)) return false;
    const owner = controllerUid(object);
    return [...this.#ready.values()].some(
      ({ pod, until }) =>
        owner !== undefined &&
        controllerUid(pod) === owner &&
        at - until < LATE_MS &&
        this.#standing(pod, at).member !== member,
    );
  }

  #moved({ object, by, at }: Change): void {
    const { member, isLost, isTainted } = this.#standing(object, at);
    if (object.metadata.labels?.[GANG_LABEL] !== undefined) {
      if (!isLost && !isTainted && this.#facts.ranWhole(object.metadata.uid, at))
        this.#report('I11', `${by} evicts ${object.metadata.name} from ${member}, where all of its gang ran`);
      return;
    }
    this.#kept({ object, by, at }, member);
    // Nothing is known of a pod whose member does not answer: that it is ill, or where others are, is no reason then.
    const isKnown = at - (this.#lostSince.get(member) ?? at) < LOST_AFTER_MS;
    const isIll = isKnown && (this.#isIll(object, member, at) || this.#isAlike(object, member, at));
    const isMigrated = this.#isMigrated(object, member, at);
    const isEdited = this.#edits.within(EDITED_MS, at);
    if (!isLost && !isTainted && !isIll && !isMigrated && !isEdited) {
      this.#report(
        'I11',
        `${by} moves ${object.metadata.name} out of ${member}, which is neither lost nor tainted, and others are elsewhere, and it is not ill beside them`,
      );
    }
    const kind = object.metadata.ownerReferences?.find(({ controller }) => controller === true)?.kind ?? 'nobody';
    const isOut = isLost && this.#facts.isOutOfService(asPod(object).spec.nodeName ?? '');
    // One that is evicted ends in its member before the next one of its name begins.
    const isInTurn = (isIll || isMigrated || isEdited) && kind === 'StatefulSet';
    if (!isTainted && !isOut && !isInTurn && !REPLACING_AT_ONCE.has(kind)) {
      this.#report('I11', `${by} moves ${object.metadata.name} of ${kind} out of ${member}, where it may still run`);
    }
  }
}

function controllerUid({ metadata }: SimObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

function note(until: Map<string, number>, member: string, at: number, isSo: boolean): void {
  if (isSo) until.set(member, Number.POSITIVE_INFINITY);
  else if (until.get(member) === Number.POSITIVE_INFINITY) until.set(member, at);
}

function isOut(pod: SimObject): boolean {
  return releasedFrom(asPod(pod)) !== undefined;
}
