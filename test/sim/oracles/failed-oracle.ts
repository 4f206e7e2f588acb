import { MIRRORED_CONDITION } from '../../../src/api/marks.ts';
import { asPod } from '../pod-shapes.ts';
import type { SimObject } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { createdFor } from './creation-calls.ts';
import type { Report } from './report.ts';

/** With them whoever answers may have carried out all the same what it was asked for: somebody before it gave up waiting. */
const GAVE_UP = 408;

/**
 * I10: what is transient never makes a pod Failed. One that is not being deleted fails only when a copy of it was there, or when
 * nobody can know whether there was one: a creation that was sent was not refused, or the pod itself says that one was begun, which may
 * have been cut off before it was sent.
 */
export class FailedOracle {
  readonly #report: Report;
  /** By UID of the host pod: creations that were sent, and not refused. */
  readonly #open = new Map<string, Set<Call>>();

  constructor(report: Report) {
    this.#report = report;
  }

  sent(call: Call): void {
    const uid = createdFor(call);
    if (uid === undefined) return;
    const open = this.#open.get(uid);
    if (open === undefined) this.#open.set(uid, new Set([call]));
    else open.add(call);
  }

  received(call: Call): void {
    const { status } = call;
    if (status < 400 || status >= 500 || status === GAVE_UP) return;
    const uid = createdFor(call);
    if (uid !== undefined) this.#open.get(uid)?.delete(call);
  }

  /** The program let a host pod fail that was not at its end. `hadCopy`: one was seen in a member. */
  failed(object: SimObject, previous: SimObject, by: string, hadCopy: boolean): void {
    const { uid, name, deletionTimestamp } = object.metadata;
    if (hadCopy || deletionTimestamp !== undefined || (this.#open.get(uid)?.size ?? 0) > 0) return;
    if (isBegun(previous)) return;
    const { reason } = asPod(object).status ?? {};
    this.#report('I10', `${by} lets host pod ${name} fail (${reason}), which had no copy, nor can it have had one`);
  }
}

/** It says that its copy is about to be made, and that it is not known what came of it. */
function isBegun(hostPod: SimObject): boolean {
  const { conditions = [] } = asPod(hostPod).status ?? {};
  return conditions.some(({ type, status }) => type === MIRRORED_CONDITION && status === 'Unknown');
}
