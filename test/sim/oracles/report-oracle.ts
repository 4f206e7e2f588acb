import { isJsonObject, jsonEqual, type JsonObject } from '../../../src/kube/json-equal.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import type { Report } from './report.ts';

/** So often within that time (ms) may be said of a Node what was said before: a report that is sent again, or one of each of two lives. */
const MOST = 6;
const OF_MS = 60_000;

/** Nodes are not reported over and over while nothing changes but the time of the report. */
export class ReportOracle {
  readonly #report: Report;
  /** By name of the Node, when something was written that was there already, in ms. */
  readonly #needless = new Map<string, readonly number[]>();

  constructor(report: Report) {
    this.#report = report;
  }

  changed({ object, previous, by, at, type }: Change): void {
    if (object['kind'] !== 'Node' || type !== 'MODIFIED' || previous === undefined || !isOfProgram(by)) return;
    // What is written beside the status has other reasons.
    if (!jsonEqual(object.metadata.annotations, previous.metadata.annotations)) return;
    if (!jsonEqual(facts(object), facts(previous))) return;
    const { name } = object.metadata;
    const times = [...(this.#needless.get(name) ?? []).filter((time) => at - time < OF_MS), at];
    this.#needless.set(name, times);
    if (times.length <= MOST) return;
    this.#report(
      'reports',
      `${by} reports Node ${name} ${String(times.length)} times within a minute, and nothing new`,
    );
  }
}

/** All that a Node says, without when it was said. */
function facts({ spec, status, metadata: { labels } }: SimObject): JsonObject {
  const { conditions, ...others } = isJsonObject(status) ? status : {};
  const list = Array.isArray(conditions) ? conditions : [];
  const timeless = list.map((one) => {
    const { lastHeartbeatTime: _at, ...said } = isJsonObject(one) ? one : {};
    return said;
  });
  return { spec: spec ?? {}, labels: labels ?? {}, status: { ...others, conditions: timeless } };
}
