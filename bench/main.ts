import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { sayOnStderr } from '../hack/progress.ts';
import { repositoryRoot } from '../hack/repository.ts';
import { burst } from './burst.ts';
import { capacity } from './capacity.ts';
import { division } from './division.ts';
import { extender } from './extender.ts';
import { kube } from './kube.ts';
import { describeMachine } from './machine.ts';
import type { SuiteReport } from './measurement.ts';
import { moves } from './moves.ts';
import { renderResults, writeResults } from './results.ts';
import { restart } from './restart.ts';
import { scheduler } from './scheduler.ts';
import { services } from './services.ts';
import { streams } from './streams.ts';

interface Flags {
  only?: string[];
  pods: number[];
  rounds: number;
  held: number;
  services: number;
  members: number;
  trips: number;
  floorOnly: boolean;
  output: string;
}

const SUITES = [
  'burst',
  'restart',
  'streams',
  'kube',
  'scheduler',
  'division',
  'moves',
  'services',
  'extender',
  'capacity',
];

const flags = new Command('bench')
  .description('Measures Spillway against floors and direct access, and writes results/latest.json and RESULTS.md.')
  .option('--only <suites>', `comma-separated: ${SUITES.join(', ')} (default: all)`, suites)
  .option('--pods <sizes>', 'comma-separated sizes of bursts', sizes, [1000, 3000])
  .option('--rounds <count>', 'turns of each program', count, 3)
  .option('--held <pods>', 'pods that run while the manager is killed and started again', count, 10_000)
  .option('--services <count>', 'Services that stand in each member', count, 1_000)
  .option('--members <count>', 'members in which they do', count, 10)
  .option('--trips <count>', 'exec round trips on each path', count, 60)
  .option('--floor-only', 'bursts without Spillway: what this machine allows', false)
  .option('--output <dir>', 'where the results go', join(repositoryRoot(), 'bench'))
  .parse()
  .opts<Flags>();

function suites(text: string): string[] {
  const names = text.split(',');
  const unknown = names.filter((name) => !SUITES.includes(name));
  if (unknown.length > 0) throw new InvalidArgumentError(`no such suite: ${unknown.join(', ')}`);
  return names;
}

function sizes(text: string): number[] {
  return text.split(',').map((one) => count(one));
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number above 0');
  return value;
}

const machine = describeMachine();
const say = sayOnStderr;
const runs: [suite: string, run: () => Promise<SuiteReport>][] = [
  ['burst', () => burst({ sizes: flags.pods, rounds: flags.rounds, floorOnly: flags.floorOnly, say })],
  ['restart', () => restart({ pods: flags.held, rounds: Math.min(2, flags.rounds), say })],
  ['streams', () => streams({ trips: flags.trips, say })],
  ['kube', () => kube(say)],
  ['scheduler', () => scheduler({ rounds: flags.rounds, say })],
  ['division', () => division(say)],
  ['moves', () => moves(say)],
  ['services', () => services({ services: flags.services, members: flags.members, say })],
  ['extender', () => extender(say)],
  ['capacity', () => capacity(say)],
];
const reports: SuiteReport[] = [];
for (const [suite, run] of runs) {
  if (flags.only?.includes(suite) === false) continue;
  try {
    reports.push(await run());
  } catch (error) {
    // What other suites found is worth keeping.
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    say(`${suite} failed: ${message}`);
    reports.push({ suite, measurements: [], notes: [], failures: [message.split('\n', 1)[0] ?? ''] });
  }
}
const when = new Date();
writeResults(flags.output, reports, machine, when);
process.stdout.write(renderResults(reports, machine, when));
if (reports.some(({ failures }) => failures.length > 0)) process.exitCode = 1;
