import { describe, expect, it } from 'vitest';
import { type EventSubject, hostEventOf } from '../../../src/pods/events/host-event.ts';
import { eventProjection, type MemberEvent } from '../../../src/pods/events/member-event.ts';
import { Scale } from '../../../src/kube/scale.ts';
import { hostPod } from '../../fixtures/pods.ts';

const POD: EventSubject = { kind: 'Pod', metadata: hostPod().metadata };
const NOW = Date.parse('2026-11-21T08:00:00.250Z');

/** As a kubelet writes them. */
const pull: MemberEvent = {
  metadata: { name: 'web-0.17f', namespace: 'p-shop', uid: 'event-1', creationTimestamp: '2026-11-21T07:00:00Z' },
  involvedObject: {
    kind: 'Pod',
    namespace: 'p-shop',
    name: 'web-0',
    uid: 'member-uid',
    fieldPath: 'spec.containers{app}',
  },
  type: 'Warning',
  reason: 'Failed',
  message: 'Failed to pull image "nope:1": not found',
  source: { component: 'kubelet', host: 'real-1' },
  reportingComponent: 'kubelet',
  count: 3,
  firstTimestamp: '2026-11-21T07:00:00Z',
  lastTimestamp: '2026-11-21T07:01:00Z',
  eventTime: null,
};

/** As a scheduler writes them: the newer fields, seen through core/v1. */
const unschedulable: MemberEvent = {
  metadata: { name: 'web-0.18a', namespace: 'p-shop', uid: 'event-2', creationTimestamp: '2026-11-21T07:00:00Z' },
  involvedObject: { kind: 'Pod', namespace: 'p-shop', name: 'web-0', uid: 'member-uid' },
  type: 'Warning',
  reason: 'FailedScheduling',
  message: '0/1 nodes are available: 1 Insufficient cpu.',
  source: {},
  reportingComponent: 'default-scheduler',
  firstTimestamp: null,
  lastTimestamp: null,
  eventTime: '2026-11-21T07:00:00.123456Z',
  series: { count: 5, lastObservedTime: '2026-11-21T07:10:00.654321Z' },
};

describe('the host Event for a member Event', () => {
  it('says what a kubelet said, about the host pod', () => {
    expect(hostEventOf(pull, POD, 'east', NOW)).toEqual({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: 'shop', name: expect.stringMatching(/^web-0\.[0-9a-f]{16}$/) },
      involvedObject: {
        apiVersion: 'v1',
        kind: 'Pod',
        namespace: 'shop',
        name: 'web-0',
        uid: 'host-uid',
        fieldPath: 'spec.containers{app}',
      },
      type: 'Warning',
      reason: 'Failed',
      message: 'Failed to pull image "nope:1": not found',
      source: { component: 'east/kubelet', host: 'real-1' },
      reportingComponent: 'spillway',
      reportingInstance: 'east',
      count: 3,
      firstTimestamp: '2026-11-21T07:00:00Z',
      lastTimestamp: '2026-11-21T07:01:00Z',
    });
  });

  it('names the cluster where host and member have a component of that name, and reads series', () => {
    expect(hostEventOf(unschedulable, POD, 'east', NOW)).toMatchObject({
      message: 'Cluster "east": 0/1 nodes are available: 1 Insufficient cpu.',
      source: { component: 'east/default-scheduler' },
      count: 5,
      firstTimestamp: '2026-11-21T07:00:00Z',
      lastTimestamp: '2026-11-21T07:10:00Z',
    });
  });

  it('has a name that depends on the member Event alone', () => {
    const name = (event: MemberEvent): string => hostEventOf(event, POD, 'east', NOW).metadata.name;
    expect(name({ ...pull, count: 9, message: 'other words' })).toBe(name(pull));
    expect(name({ ...pull, metadata: { ...pull.metadata, uid: 'event-9' } })).not.toBe(name(pull));
  });

  it('keeps hostile texts out', () => {
    const hostile: MemberEvent = {
      ...pull,
      type: 'Fatal',
      reason: '\u001b[31m',
      message: `\u001b[2J\u202eevil\nline two\0${'x'.repeat(5000)}`,
      source: { component: `a\nb${'c'.repeat(500)}`, host: 'h\r\n' },
      involvedObject: { ...pull.involvedObject, fieldPath: `f\u0007${'y'.repeat(500)}` },
      count: -4,
      firstTimestamp: 'yesterday',
      lastTimestamp: 'tomorrow',
    };
    const made = hostEventOf(hostile, POD, 'east', NOW);
    expect(JSON.stringify(made)).not.toMatch(/\u202e|\\u00|\\[nrt]/);
    expect(made).toMatchObject({ type: 'Normal', reason: '[31m', count: 1 });
    expect(made.message).toContain('evil line two');
    expect(Buffer.byteLength(made.message)).toBeLessThanOrEqual(1024);
    expect(Buffer.byteLength(made.source?.component ?? '')).toBeLessThanOrEqual(260);
    expect(Buffer.byteLength(made.involvedObject.fieldPath ?? '')).toBeLessThanOrEqual(253);
    expect(made.lastTimestamp).toBe('2026-11-21T07:00:00Z');
  });

  it('takes now where the member tells no time at all, and keeps the order of first and last', () => {
    const { creationTimestamp: _, ...metadata } = pull.metadata;
    const timeless = { ...pull, metadata, firstTimestamp: null, lastTimestamp: null };
    expect(hostEventOf(timeless, POD, 'east', NOW)).toMatchObject({
      firstTimestamp: '2026-11-21T08:00:00Z',
      lastTimestamp: '2026-11-21T08:00:00Z',
    });
    const reversed = { ...pull, firstTimestamp: '2026-11-21T07:05:00Z' };
    expect(hostEventOf(reversed, POD, 'east', NOW).firstTimestamp).toBe('2026-11-21T07:01:00Z');
  });
});

describe('what is kept of a member Event', () => {
  it('has all that the host Event is made of', () => {
    for (const event of [pull, unschedulable]) {
      const whole = { ...event, metadata: { ...event.metadata, managedFields: [{}], labels: { a: 'b' } } };
      const kept = eventProjection(whole);
      expect(kept.metadata).not.toHaveProperty('managedFields');
      expect(hostEventOf(kept, POD, 'east', NOW)).toEqual(hostEventOf(event, POD, 'east', NOW));
    }
  });

  it('takes little memory while it waits, whatever a member put into it', () => {
    const much = 'x'.repeat(2 ** 20);
    const hostile = {
      ...pull,
      metadata: { ...pull.metadata, annotations: { much }, creationTimestamp: much },
      involvedObject: { ...pull.involvedObject, name: much, fieldPath: much, much },
      reason: much,
      message: `\u001b[31m${much}`,
      source: { component: much, host: much, much },
      series: { count: 2, lastObservedTime: much, much },
      reportingComponent: much,
      eventTime: much,
    };
    const kept = eventProjection(hostile);
    expect(new Scale().weigh(kept)).toBeLessThan(8_192);
    expect(kept.message).toMatch(/^\[31mxxx/);
  });
});
