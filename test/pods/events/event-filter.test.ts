import { describe, expect, it, test } from 'vitest';
import { matchesFields, parseFieldSelector } from '../../fixtures/memory-api/field-selector.ts';
import { eventSelector, passesFilter, type PodEvents } from '../../../src/pods/events/event-filter.ts';
import { hostPod } from '../../fixtures/pods.ts';

const healthy = hostPod();
const deleting = hostPod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });

describe('which Events are worth telling', () => {
  it('all warnings, also of pods that are being deleted', () => {
    expect(passesFilter('Problems', { type: 'Warning', reason: 'FailedMount' }, healthy)).toBe(true);
    expect(passesFilter('Problems', { type: 'Warning', reason: 'SomethingNobodyKnows' }, healthy)).toBe(true);
    expect(passesFilter('Problems', { type: 'Warning', reason: 'FailedKillPod' }, deleting)).toBe(true);
  });

  test.each(['Scheduled', 'Pulling', 'Pulled', 'Created', 'Started', 'SuccessfulAttachVolume', 'AddedInterface', ''])(
    'not %j, which healthy pods cause',
    (reason) => {
      expect(passesFilter('Problems', { type: 'Normal', reason }, healthy)).toBe(false);
      expect(passesFilter('Problems', { reason }, healthy)).toBe(false);
    },
  );

  test.each([
    'BackOff',
    'Preempted',
    'NotTriggerScaleUp',
    'TriggeredScaleUp',
    'TaintManagerEviction',
    'SandboxChanged',
  ])('%s, which explains something', (reason) => {
    expect(passesFilter('Problems', { type: 'Normal', reason }, healthy)).toBe(true);
  });

  it('killing, unless that is what its owner or the end of the pod wanted', () => {
    const killing = {
      type: 'Normal',
      reason: 'Killing',
      message: 'Container app failed liveness probe, will be restarted',
    };
    expect(passesFilter('Problems', killing, healthy)).toBe(true);
    expect(passesFilter('Problems', killing, deleting)).toBe(false);
    expect(passesFilter('Problems', { ...killing, message: 'Stopping container app' }, healthy)).toBe(false);
  });
});

describe('what the member is asked for', () => {
  const asked = (event: object, events: PodEvents = 'Problems'): boolean =>
    matchesFields(parseFieldSelector(eventSelector(events)), event);

  it('Events about pods, without those of every healthy one', () => {
    const involvedObject = { kind: 'Pod' };
    expect(asked({ involvedObject, reason: 'FailedScheduling' })).toBe(true);
    expect(asked({ involvedObject, reason: 'BackOff' })).toBe(true);
    expect(asked({ involvedObject, reason: 'Started' })).toBe(false);
    expect(asked({ involvedObject: { kind: 'Node' }, reason: 'FailedScheduling' })).toBe(false);
  });

  it('all about pods where an administrator wants them all', () => {
    expect(asked({ involvedObject: { kind: 'Pod' }, reason: 'Started' }, 'All')).toBe(true);
    expect(asked({ involvedObject: { kind: 'Node' }, reason: 'Started' }, 'All')).toBe(false);
    expect(passesFilter('All', { type: 'Normal', reason: 'Started' }, healthy)).toBe(true);
  });
});
