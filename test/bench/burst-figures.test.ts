import { describe, expect, it } from 'vitest';
import { compareBursts, GIVES_TOLERATIONS, type Turn, WRITES_AHEAD } from '../../bench/burst-figures.ts';

const spread = { p50: 1, p99: 2 };

function turn(program: string, running: number, overrides: Partial<Turn> = {}): Turn {
  return {
    program,
    pods: 1000,
    create: { created: 1, running, toRunning: spread, toMember: spread, lag: spread },
    restLag: program === 'spillway' ? spread : undefined,
    delete: { gone: 3, toGone: spread, hostAfterMember: spread },
    cpuSeconds: 1,
    peakRssBytes: 100 * 2 ** 20,
    othersShare: 0,
    hostRequests: new Map([
      ['patch pods/status', 1000],
      ['delete pods', 1000],
    ]),
    memberRequests: new Map([
      ['create pods', 1000],
      ['delete pods', 1000],
    ]),
    ...overrides,
  };
}

const setting = { nodes: 5, inFlight: 16, rounds: 3 };
const find = (turns: Turn[], name: string) =>
  compareBursts(turns, setting).measurements.find((one) => one.name === name);

describe('compareBursts', () => {
  it('compares the turns round by round, and takes the median', () => {
    const turns = [5, 4, 100].map((running) => turn('floor', running));
    turns.push(...[10, 16, 1].map((running) => turn('spillway', running)));
    const ratio = find(turns, 'burst 1000: throughput against the floor driver');
    expect(ratio).toMatchObject({ value: 0.5, ok: false, goal: 0.7 });
    expect(find(turns, 'burst 1000: throughput, floor')?.value).toBe(200);
  });

  it('tells apart what it costs to give pods tolerations', () => {
    const hostRequests = new Map([['patch pods', 1000]]);
    const giving = turn(GIVES_TOLERATIONS, 20, { cpuSeconds: 9, hostRequests });
    const turns = [turn('floor', 5), turn('spillway', 10, { cpuSeconds: 6 }), giving];
    const name = 'burst 1000, tolerations given by the manager:';
    expect(find(turns, `${name} patch pods per pod at the host`)).toMatchObject({ value: 1, ok: true });
    expect(find(turns, `${name} CPU against pods that come with them`)?.value).toBe(1.5);
    expect(find(turns, 'burst 1000: throughput against the floor driver')?.value).toBe(0.5);
  });

  it('tells apart what it costs to write ahead, in a burst and at the start of a pod', () => {
    const hostRequests = new Map([['patch pods/status', 2100]]);
    const create = { created: 1, running: 12, toRunning: spread, toMember: { p50: 3, p99: 4 }, lag: spread };
    const ahead = turn(WRITES_AHEAD, 20, { cpuSeconds: 9, hostRequests, create });
    const turns = [turn('floor', 5), turn('spillway', 10, { cpuSeconds: 6 }), ahead];
    const starts = { pods: 60, plain: { p50: 0.02, p99: 1 }, ahead: { p50: 0.05, p99: 1 } };
    const { measurements } = compareBursts(turns, setting, starts);
    const named = (name: string) => measurements.find((one) => one.name === name);
    const name = 'burst 1000, written ahead:';
    expect(named(`${name} patch pods/status per pod at the host`)).toMatchObject({ value: 2.1, goal: 2, ok: false });
    expect(named(`${name} create to copy in member p99`)?.value).toBe(4);
    expect(named(`${name} CPU against pods that may run twice`)).toMatchObject({ value: 1.5, ok: true });
    const single = '60 pods one after the other: create to copy in member p50,';
    expect(named(`${single} later where written ahead`)).toMatchObject({ value: 0.03, goal: 0.02, ok: false });
    expect(find(turns, `${single} written ahead`)).toBeUndefined();
    expect(find(turns, 'burst 1000: throughput against the floor driver')?.value).toBe(0.5);
  });

  it('holds requests per pod against the traffic rule', () => {
    const wasteful = turn('spillway', 5, {
      hostRequests: new Map([
        ['patch pods/status', 2500],
        ['delete pods', 1000],
        ['create events', 10],
        ['get pods', 400],
      ]),
    });
    const turns = [turn('floor', 5), wasteful];
    expect(find(turns, 'burst 1000: patch pods/status per pod at the host, spillway')).toMatchObject({
      value: 2.5,
      ok: false,
    });
    expect(find(turns, 'burst 1000: create events per pod at the host, spillway')).toMatchObject({
      value: 0.01,
      ok: false,
    });
    expect(find(turns, 'burst 1000: other calls per pod at the host, spillway')).toMatchObject({
      value: 0.4,
      ok: false,
    });
    expect(find(turns, 'burst 1000: create pods per pod at the member, spillway')).toMatchObject({
      value: 1,
      ok: true,
    });
  });

  it('reports the lag of status at rest only of a program that follows every change', () => {
    const turns = [turn('floor', 5), turn('spillway', 5)];
    const name = (program: string): string => `burst 1000: status from member to host at rest p99, ${program}`;
    expect(find(turns, name('spillway'))).toMatchObject({ value: 2, goal: 0.1, ok: false });
    expect(find(turns, name('floor'))).toBeUndefined();
  });

  it('speaks of the floor alone where Spillway took no turn', () => {
    const { measurements } = compareBursts([turn('floor', 5)], setting);
    expect(measurements.some(({ name }) => name.includes('against'))).toBe(false);
    expect(measurements.every(({ goal }) => goal === null)).toBe(true);
  });
});
