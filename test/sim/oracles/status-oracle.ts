import { asPod, isFinal, phaseOf } from '../pod-shapes.ts';
import type { SimObject } from '../sim-cluster.ts';
import type { Report } from './report.ts';

/** By status of a stored object, which is frozen. */
const withControl = new WeakMap<object, boolean>();
const CONTROL = /\\u00(?:0[0-8bcef]|1[0-9a-f]|7f)/;

/** I19: what the program writes of a host pod does not take back what it showed. And nobody's terminal is told what to do. */
export function judgeStatus(object: SimObject, previous: SimObject, report: Report): void {
  const { name } = object.metadata;
  const [now, before] = [asPod(object).status ?? {}, asPod(previous).status ?? {}];
  if (hasControl(now) && !hasControl(before)) {
    report('text', `host pod ${name} shows control characters`);
  }
  if (isMisshapen(now) && !isMisshapen(before)) {
    report('shape', `host pod ${name} shows what no API server would store`);
  }
  if (before.startTime !== undefined && now.startTime !== before.startTime) {
    report('I19', `host pod ${name} began at ${before.startTime}, now at ${String(now.startTime)}`);
  }
  if (phaseOf(previous) === 'Running' && phaseOf(object) === 'Pending') {
    report('I19', `host pod ${name} was Running and is Pending`);
  }
  if (isFinal(previous)) return;
  for (const container of before.containerStatuses ?? []) {
    const after = now.containerStatuses?.find((one) => one.name === container.name);
    if (after === undefined) report('I19', `host pod ${name} does not show container ${container.name} any more`);
    else if (after.restartCount < container.restartCount) {
      report('I19', `host pod ${name}: ${container.restartCount} restarts become ${after.restartCount}`);
    }
  }
}

/** As hostile members make it of their own pods. */
function isMisshapen(told: { reason?: unknown; message?: unknown; startTime?: unknown }): boolean {
  const texts = [told.reason, told.message, told.startTime];
  return texts.some((text) => text !== undefined && text !== null && typeof text !== 'string');
}

function hasControl(status: object): boolean {
  let known = withControl.get(status);
  if (known === undefined) {
    known = CONTROL.test(JSON.stringify(status));
    withControl.set(status, known);
  }
  return known;
}
