import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/kube/core-v1.ts';
import { openPatch, pinPatch } from '../../../src/scheduler/gangs/gang-patches.ts';
import { gangStep } from '../../../src/scheduler/gangs/gang.ts';
import { applyMergePatch } from '../../fixtures/apply-merge-patch.ts';

const NOW = Date.parse('2026-01-01T00:10:00Z');
const GATE = [{ name: 'spillway.dev/gang' }];
const OTHERS = [{ name: 'example.com/quota' }];
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();

interface Shape {
  size?: string | null;
  timeout?: string;
  /** Seconds since it got its place, in west unless on the host. */
  placed?: number;
  /** Behind the gate, although it has a place. */
  gated?: boolean;
  local?: boolean;
  bound?: boolean;
  /** A kubelet has it. */
  started?: boolean;
  phase?: 'Succeeded' | 'Failed';
  /** UID of its controller. */
  of?: string;
  /** Seconds since it was made. */
  age?: number;
  /** Behind a gate that is not of Spillway, too. */
  behind?: boolean;
}

function pod(name: string, shape: Shape = {}): Pod {
  const {
    size = '3',
    timeout,
    placed,
    gated = placed === undefined,
    local,
    bound,
    started,
    phase,
    of,
    age = 60,
    behind = false,
  } = shape;
  const annotations = {
    ...(size === null ? {} : { 'spillway.dev/gang-size': size }),
    ...(timeout === undefined ? {} : { 'spillway.dev/gang-timeout-seconds': timeout }),
    ...(placed === undefined ? {} : { 'spillway.dev/gang-placed-at': ago(placed) }),
  };
  return {
    metadata: {
      name,
      namespace: 'shop',
      uid: name,
      creationTimestamp: ago(age),
      labels: { 'spillway.dev/gang': 'ring' },
      annotations,
      ...(of === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: of, uid: of, controller: true }] }),
    },
    spec: {
      containers: [],
      ...(gated || behind ? { schedulingGates: [...(gated ? GATE : []), ...(behind ? OTHERS : [])] } : {}),
      ...(placed === undefined || local === true ? {} : { nodeSelector: { 'spillway.dev/member': 'west' } }),
      ...(bound === true || started === true ? { nodeName: 'west' } : {}),
    },
    status: { ...(started === true ? { startTime: ago(0) } : {}), ...(phase === undefined ? {} : { phase }) },
  };
}

/** All that the pods show is as true as it was. */
const SIGHT = { now: NOW, judgeFrom: 0, spared: new Set<Pod>() };
const names = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name);
const step = (...shapes: Shape[]): Record<string, unknown> => {
  const found = gangStep(
    shapes.map((shape, index) => pod(`p${String(index)}`, shape)),
    SIGHT,
  );
  return {
    ...found,
    ...('pods' in found ? { pods: names(found.pods) } : {}),
    ...('late' in found ? { late: names(found.late) } : {}),
    ...('overdue' in found ? { overdue: names(found.overdue) } : {}),
  };
};

describe('a gang', () => {
  it('is nothing without pods', () => expect(step()).toEqual({ do: 'nothing' }));
  it('waits for the pods that are missing', () => {
    expect(step({}, {})).toEqual({ do: 'gather', present: 2, behindOthers: 0, succeeded: 0, size: 3 });
  });
  it('looks for a place when it is complete', () => {
    const place = { do: 'place', at: undefined, since: undefined, late: [] };
    expect(step({}, {}, {})).toEqual({ ...place, pods: ['p0', 'p1', 'p2'], timeoutMs: 120_000 });
    expect(step({ timeout: '5' }, { timeout: '5' }, { timeout: '5' })).toMatchObject({ timeoutMs: 5_000 });
  });
  it('is placed as a whole when there are more', () => {
    expect(step({}, {}, {}, {})).toMatchObject({ do: 'place', pods: ['p0', 'p1', 'p2', 'p3'] });
  });
  it('is none with more pods than any gang could have', () => {
    const many = Array.from({ length: 10_000 }, () => ({}));
    expect(step(...many)['problem']).toBeUndefined();
    expect(step(...many, {})['problem']).toBe('it has 10001 pods, which is more than 10000');
  });
  it('opens no gate before all pods have the place', () => {
    const pinned = { placed: 10, gated: true };
    expect(step(pinned, {}, pinned)).toEqual({
      do: 'place',
      pods: ['p1'],
      at: 'west',
      since: NOW - 10_000,
      late: ['p0', 'p2'],
      timeoutMs: 120_000,
    });
    expect(step(pinned, pinned)).toEqual({ do: 'hold', pods: ['p0', 'p1'], at: 'west', until: NOW + 110_000 });
    expect(step(pinned, pinned, pinned)).toEqual({ do: 'open', pods: ['p0', 'p1', 'p2'], at: 'west' });
  });
  it('does not count, hold or open a pod behind a gate that somebody else has set, and takes it along once that is gone', () => {
    const behind = { behind: true };
    const waiting = { do: 'gather', present: 2, behindOthers: 1, succeeded: 0, size: 3 };
    expect(step({}, {}, behind)).toEqual(waiting);
    expect(step(behind, behind, behind)).toEqual({ ...waiting, present: 0, behindOthers: 3 });
    expect(step({}, {}, {}, behind)).toMatchObject({ do: 'place', pods: ['p0', 'p1', 'p2'] });
    const pinned = { placed: 10, gated: true };
    expect(step(pinned, pinned, { ...pinned, ...behind })).toMatchObject({ do: 'hold', pods: ['p0', 'p1'] });
    expect(step({ placed: 10 }, { ...pinned, ...behind })).toMatchObject({ do: 'hold', pods: ['p0'] });
    const until = { at: 'west', until: NOW + 110_000 };
    expect(step({ placed: 10 }, { placed: 10, ...behind })).toEqual({ do: 'hold', pods: ['p0'], ...until });
    expect(step({ placed: 10, ...behind }, {})).toMatchObject({ do: 'place', pods: ['p1'], late: [] });
    expect(step({ placed: 10 }, {}, behind)).toMatchObject({ do: 'place', pods: ['p1'], at: 'west' });
  });
  it('opens the gates that are left', () => {
    expect(step({ placed: 10 }, { placed: 10, gated: true })).toEqual({ do: 'open', pods: ['p1'], at: 'west' });
  });
  it('gives up when one never came to the place', () => {
    const pinned = { placed: 120, gated: true };
    expect(step(pinned, pinned, {})).toEqual({ do: 'giveUp', pods: ['p0', 'p1'], overdue: [], at: 'west' });
    expect(step(pinned, pinned)).toMatchObject({ do: 'giveUp' });
  });
  it('is held until all have a node', () => {
    const two = [
      { placed: 100, started: true },
      { placed: 90, bound: true },
    ];
    expect(step(...two, { placed: 80 })).toEqual({ do: 'hold', pods: ['p1', 'p2'], at: 'west', until: NOW + 30_000 });
    expect(step(...two.map((one) => ({ ...one, started: true })))).toEqual({ do: 'nothing' });
  });
  it('gives up when one has no node in time, be it bound in the host', () => {
    const all = { do: 'giveUp', pods: ['p0', 'p1', 'p2'], overdue: ['p1'], at: 'west' };
    expect(step({ placed: 130, started: true }, { placed: 130 }, { placed: 10 })).toEqual(all);
    expect(step({ placed: 130, started: true }, { placed: 130, bound: true }, { placed: 10 })).toEqual(all);
  });
  it('gives up nothing while the host was not followed for long enough', () => {
    const judgeFrom = NOW + 40_000;
    const bound = { placed: 3600, bound: true };
    const open = [pod('p0', bound), pod('p1', bound)];
    expect(gangStep(open, { ...SIGHT, judgeFrom })).toEqual({ do: 'hold', pods: open, at: 'west', until: judgeFrom });
    const pinned = [pod('p0', { placed: 3600, gated: true })];
    expect(gangStep(pinned, { ...SIGHT, judgeFrom })).toEqual({
      do: 'hold',
      pods: pinned,
      at: 'west',
      until: judgeFrom,
    });
  });
  it('does not take pods for late that are known to have a node', () => {
    const open = ['p0', 'p1', 'p2'].map((name) => pod(name, { placed: 3600, bound: true }));
    const hold = { do: 'hold', pods: open, at: 'west', until: NOW + 120_000 };
    expect(gangStep(open, { ...SIGHT, spared: new Set(open) })).toEqual(hold);
    const [first, ...others] = open;
    expect(gangStep(open, { ...SIGHT, spared: new Set(others) })).toMatchObject({ do: 'giveUp', overdue: [first] });
  });
  it('goes on without one that joined later and got no node in time', () => {
    expect(step({ placed: 1000, started: true }, { placed: 130 })).toMatchObject({ do: 'giveUp', pods: ['p1'] });
  });
  it('brings those that come later to where the others are', () => {
    const there = { placed: 1000, started: true };
    expect(step(there, there, {})).toMatchObject({ do: 'place', pods: ['p2'], at: 'west', since: undefined, late: [] });
    expect(step({ ...there, local: true }, {})).toMatchObject({ at: 'local' });
  });
  it('leaves pods alone whose gate somebody else opened', () => {
    expect(gangStep([{ ...pod('p'), spec: { containers: [] } }], SIGHT)).toEqual({ do: 'nothing' });
  });
  it.each<[string, Shape[], string]>([
    ['no size', [{ size: null }], 'gang-size of its pods must be a number from 1 to 10000'],
    ['size 0', [{ size: '0' }], 'must be a number'],
    ['a size in words', [{ size: 'three' }], 'must be a number'],
    ['a size beyond reason', [{ size: '99999999999' }], 'must be a number'],
    ['two sizes', [{ size: '2' }, { size: '3' }], 'do not agree in annotation spillway.dev/gang-size'],
    ['two timeouts', [{ timeout: '5' }, {}], 'do not agree in annotation spillway.dev/gang-timeout-seconds'],
    ['a short timeout', [{ timeout: '1' }], 'must be a number from 5 to 86400'],
  ])('waits with %s', (_what, shapes, problem) => {
    const { do: what, problem: words } = step(...shapes);
    expect(what).toBe('refuse');
    expect(words).toContain(problem);
  });
});

describe('a gang of which some succeeded', () => {
  const done: Shape = { placed: 1000, started: true, phase: 'Succeeded', of: 'job' };
  const failed: Shape = { ...done, phase: 'Failed' };
  const again: Shape = { of: 'job' };

  it('counts them for one that is made anew', () => {
    expect(step(done, done, failed, again)).toMatchObject({ do: 'place', pods: ['p3'], at: undefined, late: [] });
    expect(step(done, done, again)).toMatchObject({ do: 'place', pods: ['p2'] });
  });
  it('does not count those that failed', () => {
    expect(step(done, failed, failed, again)).toEqual({
      do: 'gather',
      present: 1,
      behindOthers: 0,
      succeeded: 1,
      size: 3,
    });
    expect(step(done, failed, failed, again, again)).toMatchObject({ do: 'place', pods: ['p3', 'p4'] });
  });
  it('waits a moment for others that are to go with it', () => {
    expect(step(done, done, { ...again, age: 1 })).toEqual({
      do: 'gather',
      present: 1,
      behindOthers: 0,
      succeeded: 2,
      size: 3,
    });
    expect(step(done, done, again, { ...again, age: 1 })).toMatchObject({ do: 'gather', present: 2 });
    expect(step(done, ...[again, again, again].map((one) => ({ ...one, age: 0 })))).toMatchObject({ do: 'place' });
  });
  it('opens its gate once it has the place', () => {
    const pinned = { ...again, placed: 10, gated: true };
    expect(step(done, done, pinned)).toMatchObject({ do: 'open', pods: ['p2'] });
    // All that wait go together, as they would without those that succeeded.
    expect(step(done, done, pinned, again)).toMatchObject({ do: 'place', pods: ['p3'], at: 'west', late: ['p2'] });
  });
  it('does not count those of a former gang of that name', () => {
    const former = { ...done, of: 'last-night' };
    expect(step(former, former, former, again)).toEqual({
      do: 'gather',
      present: 1,
      behindOthers: 0,
      succeeded: 0,
      size: 3,
    });
    const nobodys = { placed: 1000, started: true, phase: 'Succeeded' } as const;
    expect(step(nobodys, nobodys, nobodys, {})).toMatchObject({ do: 'gather', succeeded: 0 });
  });
  it('counts those of another controller that got their place with one of its own', () => {
    const worker = { ...done, of: 'workers' };
    const launcher = { ...failed, of: 'launcher' };
    expect(step(worker, worker, launcher, { of: 'launcher' })).toMatchObject({ do: 'place', pods: ['p3'] });
    expect(step(worker, worker, { ...launcher, placed: 5 }, { of: 'launcher' })).toMatchObject({ do: 'gather' });
  });
  it('listens to the words of those that have not ended', () => {
    expect(
      step({ ...done, size: '5' }, { ...done, size: null }, { ...again, size: '3' }, { ...again, size: '3' }),
    ).toMatchObject({
      do: 'place',
      pods: ['p2', 'p3'],
    });
  });
  it('does not wait for ever, whichever of its pods end, and how, and are made anew', () => {
    const ends = fc.array(fc.record({ index: fc.nat(5), how: fc.constantFrom('Succeeded', 'Failed', 'gone') }), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), ends, (size, all) => {
        let number = 0;
        /** By the index of the Job; one that succeeded is not made anew. */
        const live = new Map<number, Pod>();
        const finished: Pod[] = [];
        const make = (index: number): void => {
          number += 1;
          live.set(index, pod(`p${String(number)}`, { size: String(size), of: 'job' }));
        };
        const settle = (): void => {
          for (let turns = 0; turns < 4; turns += 1) {
            const now = gangStep([...live.values(), ...finished], SIGHT);
            if (now.do !== 'place' && now.do !== 'open') continue;
            const chosen = new Set(now.pods.map(({ metadata }) => metadata.name));
            for (const [index, one] of live) {
              if (!chosen.has(one.metadata.name)) continue;
              const change = now.do === 'open' ? openPatch(one) : pinPatch(one, now.at ?? 'west', NOW);
              live.set(index, applyMergePatch(one, change) as Pod);
            }
          }
        };
        for (let index = 0; index < size; index += 1) make(index);
        settle();
        for (const { index, how } of all) {
          const one = live.get(index);
          if (one === undefined) continue;
          live.delete(index);
          if (how !== 'gone') finished.push({ ...one, status: { phase: how } });
          if (how !== 'Succeeded') make(index);
          settle();
          expect([...live.values()].every(({ spec }) => spec.schedulingGates?.length === 0)).toBe(true);
        }
      }),
    );
  });
});

describe('the writes', () => {
  it('between any two of them, no gate is open before all pods have one place; and in the end all gates are open', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.array(fc.nat(12), { maxLength: 8 }), (size, endings) => {
        const pods = new Map(
          Array.from({ length: size }, (_, i) => [`p${String(i)}`, pod(`p${String(i)}`, { size: String(size) })]),
        );
        const placeOf = (one: Pod): string | undefined => one.spec.nodeSelector?.['spillway.dev/member'];
        const isOpen = (one: Pod): boolean => (one.spec.schedulingGates ?? []).length === 0;
        const write = (name: string, change: (one: Pod) => object): void => {
          const one = pods.get(name);
          if (one === undefined) throw new Error(name);
          pods.set(name, applyMergePatch(one, change(one)) as Pod);
          const all = [...pods.values()];
          if (all.some(isOpen)) expect(all.map(placeOf)).toEqual(all.map(() => placeOf(all[0] as Pod)));
        };
        // Each ending is a process that is killed after so many writes; the last one is left alone.
        for (const ending of [...endings, 100]) {
          let writes = ending;
          for (;;) {
            const now = gangStep([...pods.values()], SIGHT);
            if (now.do !== 'place' && now.do !== 'open') break;
            const place = now.at ?? ['east', 'west'][ending % 2] ?? 'east';
            const patch = (one: Pod): object => (now.do === 'open' ? openPatch(one) : pinPatch(one, place, NOW));
            for (const name of names(now.pods).slice(0, writes)) write(name, patch);
            writes -= now.pods.length;
            if (writes <= 0) break;
          }
        }
        expect([...pods.values()].every(isOpen)).toBe(true);
      }),
    );
  });

  const pinned = (one: Pod, cluster: string): Pod => applyMergePatch(one, pinPatch(one, cluster, NOW)) as Pod;
  const gated = (spec: object): Pod => ({ ...pod('p'), spec: { containers: [], schedulingGates: GATE, ...spec } });

  it('pin the pod to the member, and open no other gate', () => {
    const other = { name: 'example.com/wait' };
    const after = pinned(gated({ schedulingGates: [other, ...GATE], nodeSelector: { disk: 'ssd' } }), 'west');
    const spec = { containers: [], nodeSelector: { disk: 'ssd', 'spillway.dev/member': 'west' } };
    expect(after.spec).toEqual({ ...spec, schedulingGates: [other, ...GATE] });
    expect(after.metadata.annotations?.['spillway.dev/gang-placed-at']).toBe('2026-01-01T00:10:00Z');
    expect((applyMergePatch(after, openPatch(after)) as Pod).spec).toEqual({ ...spec, schedulingGates: [other] });
  });

  it('keep the pod on the host, in each of its terms', () => {
    const terms = (one: Pod): unknown =>
      one.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
    const off = { key: 'spillway.dev/member', operator: 'DoesNotExist' };
    expect(terms(pinned(gated({}), 'local'))).toEqual([{ matchExpressions: [off] }]);
    const ssd = { key: 'disk', operator: 'Exists' };
    const field = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] };
    const affinity = {
      podAffinity: {},
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [ssd] }, field, {}] },
      },
    };
    const after = pinned(gated({ affinity }), 'local');
    expect(terms(after)).toEqual([{ matchExpressions: [ssd, off] }, { ...field, matchExpressions: [off] }, {}]);
    expect(after.spec.affinity).toHaveProperty('podAffinity');
    expect(after.spec).not.toHaveProperty('nodeSelector');
  });
});
