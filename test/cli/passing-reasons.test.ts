import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import { memberSteps } from '../../src/cli/why/member-steps.ts';
import type { PodFacts } from '../../src/cli/why/pod-facts.ts';
import { REASON_HELP } from '../../src/cli/why/reason-help.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { roomIsKeptUntil } from '../../src/pods/passing-holds.ts';
import { hostPod } from '../fixtures/pods.ts';

/*
 * Three places say of a reason to hold a pod back whether it passes: what is done with its room in the member (pods/passing-holds.ts), what
 * `kubectl spillway why` says (cli/why/member-steps.ts), and the page that people read. They agree but for what is listed here.
 */

const NOW = Date.parse('2026-03-01T12:00:00Z');

/** Its room is kept, and nobody is told that it passes by itself. */
const ROOM_ONLY = new Map([
  [
    'FormerPodLeaving',
    'as a rule it does within seconds; it is said only after 10 s, and then a dead node may keep the former pod',
  ],
]);
/** It passes by itself, and its room is not kept. */
const WORDS_ONLY = new Map([
  [
    'NamespaceTerminating',
    'everything in the namespace has to go first, which may take far longer than others should wait for the room',
  ],
]);
/** The page says that they pass, and none holds a pod back by itself: an Event, or a right that somebody has to grant. */
const NO_HOLDS = new Set([
  'TokenNotRefreshed',
  'FailedToReadMandatoryConfigMap',
  'FailedToReadMandatorySecret',
  'FailedToReadOptionalConfigMap',
  'FailedToReadOptionalSecret',
]);
/** Nothing is to be done about them, and they are no holds either: Events about something optional, and an end. */
const NOTHING_TO_DO = new Set(['OptionalConfigMapNotFound', 'OptionalSecretNotFound', 'NeverStarted']);

function held(reason: string): Pod {
  const lastTransitionTime = new Date(NOW).toISOString();
  const conditions = [{ type: MIRRORED_CONDITION, status: 'False' as const, reason, message: '', lastTransitionTime }];
  return hostPod({ status: { phase: 'Pending', reason, conditions } });
}

function waits(pod: Pod): boolean {
  const unknown = { namespaceLabels: undefined, members: undefined, nodes: undefined, policies: undefined };
  const others = { placement: undefined, schedulerAnswers: true, memberServed: true, gang: undefined };
  const chain: PodFacts['chain'] = [{ ...pod, apiVersion: 'v1', kind: 'Pod' }];
  const facts: PodFacts = { pod, chain, now: NOW, events: [], ...unknown, ...others };
  return memberSteps(facts, 'east', 'east')[0]?.state === 'waits';
}

const where = (passes: (reason: string) => boolean): string[] => [...REASON_HELP.keys()].filter(passes).toSorted();
const keepsRoom = where((reason) => roomIsKeptUntil(held(reason)) > NOW);
const isSaid = where((reason) => waits(held(reason)));

test('the room of a pod is kept for what is said to pass by itself, but for what is listed', () => {
  expect(keepsRoom.filter((reason) => !isSaid.includes(reason))).toEqual([...ROOM_ONLY.keys()]);
  expect(isSaid.filter((reason) => !keepsRoom.includes(reason))).toEqual([...WORDS_ONLY.keys()]);
  expect(isSaid.length).toBeGreaterThan(4);
});

test('what is said to pass by itself is what the page says of it', () => {
  const rows = readFileSync('docs/reference/events.md', 'utf8')
    .split('\n')
    .map((row) => row.split(' | '));
  const passing = rows.flatMap(([names = '', , passes = '']) =>
    /^(?:yes|by itself$)/.test(passes.trim()) ? [...names.matchAll(/`([A-Z]\w+)`/g)].map(([, name = '']) => name) : [],
  );
  const said = new Set(passing.filter((reason) => REASON_HELP.has(reason) && !NO_HOLDS.has(reason)));
  expect([...said].toSorted()).toEqual(isSaid);
});

test('whoever has nothing to do about a reason is told that it passes', () => {
  const nothingToDo = where((reason) => REASON_HELP.get(reason)?.help === undefined && !NOTHING_TO_DO.has(reason));
  expect(nothingToDo.filter((reason) => !isSaid.includes(reason))).toEqual([]);
});
