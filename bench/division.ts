import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Say } from '../hack/progress.ts';
import { Workspace } from '../hack/workspace.ts';
import { makeNamespace } from './bench-namespace.ts';
import { DivisionFleet, SEAT } from './division-fleet.ts';
import { grow, shrink, waver, type Round, type Rule } from './division-rounds.ts';
import { measured, type Measurement, type SuiteReport } from './measurement.ts';
import { percent } from './percent.ts';

const MEMBERS = 20;
const REPLICAS = 1_000;
/** What is left of them when the Deployment by weight shrinks. */
const FEWER = 500;
/** How often it grows by one and shrinks again. */
const WAVERS = 10;
/** Writes of deletion costs for each pod that comes: about one, whatever it is of. */
const WAVER_GOAL = 1.5;
/** How long the clusters are looked at before anything happens, in ms. */
const REST_MS = 5_000;

const memberNames = Array.from({ length: MEMBERS }, (_, index) => `m${String(index + 1).padStart(2, '0')}`);
/** From 1 to 20. */
const WEIGHTS = new Map(memberNames.map((name, index) => [name, index + 1]));
/** Pods that fit, from 30 to 106: in all more than are asked for. */
const ROOMS = new Map(memberNames.map((name, index) => [name, 30 + 4 * index]));

const BY_WEIGHT: Rule = {
  title: 'by static weights',
  namespace: 'by-weight',
  replicaScheduling: {
    weightPreference: {
      staticWeightList: [...WEIGHTS].map(([name, weight]) => ({ targetCluster: { clusterNames: [name] }, weight })),
    },
  },
  resources: { requests: { cpu: '10m' } },
  weights: WEIGHTS,
};
const BY_ROOM: Rule = {
  title: 'by free room',
  namespace: 'by-room',
  replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } },
  resources: { requests: { cpu: '10m', [SEAT]: '1' }, limits: { [SEAT]: '1' } },
  weights: ROOMS,
};

/** How a Deployment of 1,000 replicas is divided over 20 members, by ordinary controllers and a stock scheduler that asks. */
export async function division(say: Say): Promise<SuiteReport> {
  const workspace = Workspace.create({ say });
  try {
    const fleet = await DivisionFleet.start(workspace, ROOMS);
    for (const { namespace } of [BY_WEIGHT, BY_ROOM]) {
      for (const cluster of fleet.clusters) await makeNamespace(cluster, namespace);
    }
    const restShare = await shareAtRest(fleet);
    say(`the clusters use ${percent(restShare)} of the machine at rest`);
    const rounds: [what: string, round: Round][] = [];
    const done = (what: string, round: Round): void => {
      rounds.push([what, round]);
      say(describe(what, round));
    };
    done(`0 to ${REPLICAS} ${BY_WEIGHT.title}`, await grow(fleet, BY_WEIGHT, REPLICAS));
    const wavered = await waver(fleet, BY_WEIGHT, REPLICAS, WAVERS);
    const wavering = `${REPLICAS} to ${REPLICAS + 1} and back, ${WAVERS} times, ${BY_WEIGHT.title}`;
    say(describe(wavering, wavered));
    done(`${REPLICAS} to ${FEWER} ${BY_WEIGHT.title}`, await shrink(fleet, BY_WEIGHT, REPLICAS, FEWER));
    done(`0 to ${REPLICAS} ${BY_ROOM.title}`, await grow(fleet, BY_ROOM, REPLICAS));
    return {
      suite: 'division',
      failures: [],
      measurements: [
        ...rounds.flatMap(([what, round]) => figures(what, round)),
        ...waverFigures(wavering, wavered),
        measured('division: peak memory', (fleet.manager.usage()?.peakRssBytes ?? Number.NaN) / 2 ** 20, 'MB', 'lower'),
      ],
      notes: notes([...rounds, [wavering, wavered]], restShare),
    };
  } finally {
    await workspace.close();
  }
}

/** What all these clusters and the manager use of the machine while nothing happens, 0 to 1. */
async function shareAtRest(fleet: DivisionFleet): Promise<number> {
  const total = (): number => [...fleet.usage()].reduce((sum, usage) => sum + (usage?.cpuSeconds ?? 0), 0);
  const [before, began] = [total(), performance.now()];
  await sleep(REST_MS);
  return (total() - before) / (((performance.now() - began) / 1000) * cpus().length);
}

function figures(what: string, round: Round): Measurement[] {
  const name = (text: string): string => `${what}: ${text}`;
  const { pods, bound, done, ordered, cpuSeconds, cpuSecondsAfter, requests, wrong } = round;
  const grown = !Number.isNaN(bound);
  const perPod = (cluster: 'host' | 'members', key: string): number => (requests[cluster].get(key) ?? 0) / pods;
  const calls = (cluster: 'host' | 'members', key: string, goal: number | null): Measurement =>
    measured(name(`${key} per pod at the ${cluster}`), perPod(cluster, key), 'calls', 'lower', goal);
  const all = [...requests.host, ...requests.members].reduce((sum, [, count]) => sum + count, 0);
  return [
    measured(name('members that differ from the exact division'), wrong.length, 'members', 'lower', 0),
    ...(grown
      ? [
          measured(name('bound'), pods / bound, 'pods/s', 'higher'),
          measured(name('Running'), pods / done, 'pods/s', 'higher'),
        ]
      : [measured(name('gone'), pods / done, 'pods/s', 'higher')]),
    measured(name('from there until deletion costs are at rest'), ordered - done, 's', 'lower'),
    measured(name(`CPU until all are ${grown ? 'Running' : 'gone'}`), cpuSeconds, 'CPU-s', 'lower'),
    measured(name('CPU after that, deletion costs'), cpuSecondsAfter, 'CPU-s', 'lower'),
    measured(name('CPU per pod in all'), ((cpuSeconds + cpuSecondsAfter) / pods) * 1000, 'CPU-ms', 'lower'),
    ...(grown
      ? [calls('members', 'create pods', 1), calls('host', 'patch pods/status', 2)]
      : [calls('members', 'delete pods', 1), calls('host', 'delete pods', 1)]),
    // Deletion costs: once for each pod that takes its place in the order of removal.
    calls('host', 'patch pods', grown ? 1 : null),
    measured(name('all calls per pod'), all / pods, 'calls', 'lower'),
  ];
}

/** Each pod that comes takes its place in the order of removal, and the others keep theirs, however many there are. */
export function waverFigures(
  what: string,
  { pods, cpuSeconds, cpuSecondsAfter, requests, wrong }: Round,
): Measurement[] {
  const all = [...requests.host, ...requests.members].reduce((sum, [, count]) => sum + count, 0);
  const perPod = (count: number): number => count / pods;
  return [
    measured(`${what}: members that differ from the exact division`, wrong.length, 'members', 'lower', 0),
    measured(
      `${what}: patch pods per pod that came at the host`,
      perPod(requests.host.get('patch pods') ?? 0),
      'calls',
      'lower',
      WAVER_GOAL,
    ),
    measured(`${what}: all calls per pod that came`, perPod(all), 'calls', 'lower'),
    measured(`${what}: CPU per pod that came`, perPod(cpuSeconds + cpuSecondsAfter) * 1000, 'CPU-ms', 'lower'),
  ];
}

function notes(rounds: readonly [what: string, round: Round][], restShare: number): string[] {
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts]
      .sort(([, a], [, b]) => b - a)
      .map(([key, count]) => `${key} ${count}`)
      .join(', ') || 'none';
  return [
    `A Deployment of ${REPLICAS} replicas in a host without nodes of its own, whose kube-scheduler asks Spillway as shipped ` +
      `(both questions, time limit 1 s). The ${MEMBERS} members are real clusters, each with its own etcd, API server, ` +
      'controllers, scheduler and one node that kwok plays; all of them share the cores of this machine with the host and use ' +
      `${percent(restShare)} of it at rest. One round each.`,
    `Weights are 1 to ${MEMBERS}; free room is 30 to ${30 + 4 * (MEMBERS - 1)} pods. The exact division is worked out by the ` +
      'bench itself, seat by seat. Times are from the request. The pods come with tolerations for outages, so that what is patched is deletion costs. The Deployment shrinks once deletion costs have been at rest for 3 s.',
    `Programs that have nothing to do with the bench used ${percent(Math.max(...rounds.map(([, round]) => round.othersShare)))} ` +
      'of the machine in the worst round.',
    ...rounds
      .filter(([, { wrong }]) => wrong.length > 0)
      .map(([what, { wrong }]) => `${what}: not as they should be: ${wrong.join(', ')}.`),
    ...rounds.map(
      ([what, { requests }]) =>
        `All requests of ${what}. Host: ${list(requests.host)}. Members: ${list(requests.members)}.`,
    ),
  ];
}

function describe(what: string, { bound, done, ordered, cpuSeconds, cpuSecondsAfter, wrong }: Round): string {
  return (
    `${what}: ${Number.isNaN(bound) ? 'gone' : `bound after ${bound.toFixed(1)} s, Running`} after ${done.toFixed(1)} s, ` +
    `costs at rest after ${ordered.toFixed(1)} s, ${cpuSeconds.toFixed(1)} + ${cpuSecondsAfter.toFixed(1)} CPU-s, ` +
    `${wrong.length} members differ`
  );
}
