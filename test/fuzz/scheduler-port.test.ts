import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { VIRTUAL_NODE_TAINT } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { stringifyJson } from '../../src/kube/json.ts';
import { controllerOf } from '../../src/kube/owner-references.ts';
import { parseExtenderArgs, parsePreemptionArgs } from '../../src/scheduler/extender-wire.ts';
import { AskedScheduler, HOST_NODES, LOW, SETS, VIRTUAL } from './asked-scheduler.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { changed, text } from './inputs.ts';

const NODES = [...HOST_NODES, ...Object.keys(VIRTUAL)];

const ownerOf = (name: keyof typeof SETS) => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name: `${name}-1`,
  uid: SETS[name],
  controller: true,
});

/** As kube-scheduler sends them: of a Deployment that a policy keeps in one member, of another one, and of nobody. */
const pods = (['kept', 'web', undefined] as const).map((name, index) => ({
  metadata: {
    name: `p-${String(index)}`,
    namespace: 'shop',
    uid: `uid-${String(index)}`,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { app: 'web', 'pod-template-hash': '1' },
    annotations: { 'example.com/any': 'x' },
    ...(name === undefined ? {} : { ownerReferences: [ownerOf(name)] }),
  },
  spec: {
    containers: [{ name: 'main', resources: { requests: { cpu: '1', memory: '1Gi' } } }],
    tolerations: [{ key: VIRTUAL_NODE_TAINT, operator: 'Exists' }],
    priority: 1_000,
  },
  status: { phase: 'Pending' },
}));
const questions = pods.flatMap((Pod) => [NODES, ['east']].map((NodeNames) => ({ Pod, Nodes: null, NodeNames })));
const preemptions = pods.map((Pod) => ({
  Pod,
  NodeNameToMetaVictims: {
    'local-1': { Pods: [{ UID: 'theirs' }], NumPDBViolations: 1 },
    east: { Pods: [{ UID: LOW[0] }], NumPDBViolations: 0 },
    west: { Pods: [], NumPDBViolations: 0 },
  },
}));

const who = fc.constantFrom(...Array<string>(9).fill('system:kube-scheduler'), 'somebody');
const bodyOf = (samples: readonly object[]): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 12, arbitrary: changed(...samples).map((body) => stringifyJson(body)) },
    { weight: 1, arbitrary: text },
  );
const slots = fc.record(Object.fromEntries(Object.keys(VIRTUAL).map((name) => [name, fc.constantFrom(0, 1, 5)])));

interface Filtered {
  readonly NodeNames: string[];
  readonly FailedAndUnresolvableNodes: Record<string, string>;
  readonly FailedNodes?: Record<string, string>;
  readonly Error: string;
}

/** What came of the questions that could be read. */
const seen = { passed: 0, kept: 0, ranked: 0, evicting: 0, refused: 0, strangers: 0 };

let asked: AskedScheduler;
beforeAll(async () => {
  asked = await AskedScheduler.start();
});
afterAll(() => asked?.close());

function parsed<T>(read: (body: unknown) => T, body: string): T | undefined {
  return throwsOnly([Error], () => read(JSON.parse(body)));
}

/** A policy says where it may run, whatever else is said in the question. */
function isKept(pod: Pod): boolean {
  return pod.metadata.namespace === 'shop' && isDeepStrictEqual(controllerOf(pod), ownerOf('kept'));
}

function checkNodes(pod: Pod, answered: readonly string[], all: readonly string[]): void {
  expect(all).toEqual(expect.arrayContaining([...answered]));
  if (!isKept(pod) || answered.length === 0) return;
  expect(answered.filter((name) => VIRTUAL[name] !== 'west')).toEqual([]);
  seen.kept += 1;
}

/** Nothing is an error of the program, and nobody else is answered. Answers whether the question was one. */
async function checkCaller(caller: string, refused: boolean): Promise<boolean> {
  expect(await asked.times('failed')).toBe(0);
  if (caller === 'somebody') {
    expect(refused).toBe(true);
    seen.strangers += 1;
  } else if (refused) seen.refused += 1;
  return !refused;
}

describe('the port that schedulers ask', () => {
  fuzz(
    'names nodes of the question alone, and where a policy allows',
    fc.tuple(who, fc.constantFrom('filter', 'confirm'), bodyOf(questions), slots),
    { share: 1_500 },
    async ([caller, verb, body, room]) => {
      for (const [name, free] of Object.entries(room)) asked.slots.set(name, free);
      const answer = (await asked.ask(caller, verb, body)) as Filtered;
      const args = parsed(parseExtenderArgs, body);
      if (!(await checkCaller(caller, answer.Error !== '')) || args === undefined) {
        expect(answer).toMatchObject({ NodeNames: [], FailedAndUnresolvableNodes: {}, Error: expect.any(String) });
        return;
      }
      checkNodes(args.pod, answer.NodeNames, args.nodeNames);
      const failed = Object.keys({ ...answer.FailedAndUnresolvableNodes, ...answer.FailedNodes });
      expect(args.nodeNames).toEqual(expect.arrayContaining(failed));
      expect(failed.filter((name) => answer.NodeNames.includes(name))).toEqual([]);
      if (answer.NodeNames.length > 0) seen.passed += 1;
    },
  );

  fuzz(
    'ranks each node of the question, in steps that a scheduler knows',
    fc.tuple(who, bodyOf(questions)),
    { share: 500 },
    async ([caller, body]) => {
      const answer = (await asked.ask(caller, 'prioritize', body)) as { Host: string; Score: number }[];
      const args = parsed(parseExtenderArgs, body);
      const mayAsk = caller !== 'somebody' && args !== undefined;
      await checkCaller(caller, !mayAsk);
      expect(answer.map(({ Host }) => Host)).toEqual(mayAsk ? args.nodeNames : []);
      for (const { Score } of answer) expect([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).toContain(Score);
      if (answer.length > 0) seen.ranked += 1;
    },
  );

  fuzz(
    'has nobody evicted but whom a scheduler named, or who is of less priority behind the node',
    fc.tuple(who, bodyOf(preemptions), slots),
    { share: 1_500 },
    async ([caller, body, room]) => {
      for (const [name, free] of Object.entries(room)) asked.slots.set(name, free);
      const answer = await asked.ask(caller, 'preempt', body);
      const args = parsed(parsePreemptionArgs, body);
      if (!(await checkCaller(caller, typeof answer === 'string')) || args === undefined) {
        expect(typeof answer).toBe('string');
        return;
      }
      const { NodeNameToMetaVictims: victims } = answer as {
        NodeNameToMetaVictims: Record<string, { Pods: { UID: string }[] }>;
      };
      checkNodes(args.pod, Object.keys(victims), [...args.victims.keys()]);
      for (const [node, { Pods }] of Object.entries(victims)) {
        const named = args.victims.get(node)?.uids ?? [];
        const allowed = [...named, ...(VIRTUAL[node] === undefined ? [] : LOW)];
        for (const { UID } of Pods) expect(allowed).toContain(UID);
        if (Pods.length > 0) seen.evicting += 1;
      }
    },
  );

  fuzz('has answered most of them, so that the above says something', fc.constant(seen), { share: 1 }, (all) => {
    expect(all.ranked).toBeGreaterThan(all.refused / 10);
    for (const times of Object.values(all)) expect(times * 1_000).toBeGreaterThanOrEqual(Math.floor(all.ranked / 100));
  });
});
