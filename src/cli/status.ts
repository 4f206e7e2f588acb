import type { Command } from 'commander';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../api/placement-policy.ts';
import { WORKLOAD_MIGRATIONS } from '../api/workload-migration.ts';
import { WORKLOAD_REBALANCERS } from '../api/workload-rebalancer.ts';
import { releasedFrom } from '../api/released.ts';
import type { Event, Pod } from '../kube/core-v1.ts';
import type { Lease } from '../kube/lease.ts';
import type { KubeObject } from '../kube/object.ts';
import { EVENTS, LEASES, PODS } from '../kube/resource.ts';
import { missingNote } from './clusters.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import { reasonsToAsk, stayReasons } from './held-pods.ts';
import type { FleetFacts } from './cluster-summary.ts';
import { readFleet } from './fleet.ts';
import {
  clusterFlags,
  outputFlags,
  systemNamespaceFlag,
  watchFlag,
  type OutputFlags,
  type SystemFlags,
  type WatchFlags,
} from './flags.ts';
import { documented, type Format } from './output.ts';
import { overview, type Overview } from './overview.ts';
import { overviewText } from './overview-text.ts';
import { repeatedly } from './repeat.ts';
import { painted } from './terminal.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { MissingRight, type Viewer } from './viewer.ts';
import { RELEASED_POD_STAYS } from './why/refused-end.ts';

type Flags = ClusterFlags & OutputFlags & WatchFlags & SystemFlags;
const FORMATS: readonly Format[] = ['table', 'wide', 'json', 'yaml'];
/** Moves the cursor to the first line and clears all below it. */
const CLEAR = '\u001b[H\u001b[2J\u001b[3J';

export function addStatus(program: Command, cli: Cli): void {
  const command = program
    .command('status')
    .summary('everything on one screen: managers, members, pods held back, moves, policies')
    .description(
      'Shows on one screen who works for the members, how these are, which pods are held back and why, deletions that wait for a ' +
        'confirmation, pods on their way out, what was ordered to move and waits for what, and policies that have no effect. With --watch the screen is drawn again as things change.',
    );
  watchFlag(outputFlags(systemNamespaceFlag(clusterFlags(command)), FORMATS)).action(
    async (flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        if (flags.watch === true) return await watchStatus(cli, host, flags);
        const { found, missing } = await readOverview(host, flags.systemNamespace, cli.terminal.now());
        cli.terminal.out(shown(cli, found, flags.output));
        for (const right of missing) cli.terminal.note(missingNote(right));
        return EXIT.ok;
      }),
  );
}

async function watchStatus(cli: Cli, host: Viewer, flags: Flags) {
  const { output } = flags;
  if (output === 'json' || output === 'yaml') {
    throw new CliError('--watch draws a screen', { exitCode: EXIT.usage, fix: 'leave --watch or -o out' });
  }
  const { terminal } = cli;
  let last = '';
  return await repeatedly(terminal, async () => {
    const { found } = await readOverview(host, flags.systemNamespace, terminal.now());
    const screen = shown(cli, found, output);
    if (screen === last) return;
    last = screen;
    terminal.out(terminal.isTty.out ? `${CLEAR}${screen}` : `${screen}\n`);
  });
}

function shown(cli: Cli, found: Overview, format: Format): string {
  if (format === 'json' || format === 'yaml') return documented({ kind: 'Status', ...found }, format);
  const bold = (text: string): string => painted(cli.terminal, 'bold', text);
  return overviewText(found, cli.terminal.now(), { wide: format === 'wide', bold });
}

export async function readOverview(
  host: Viewer,
  systemNamespace: string,
  now: number,
): Promise<{ found: Overview; missing: string[] }> {
  const [fleet, leases, unbound, own, clusterWide, migrations, rebalancers] = await Promise.all([
    readFleet(host),
    host.tryList<Lease>(LEASES, { namespace: systemNamespace }),
    host.tryList<Pod>(PODS, { fieldSelector: 'spec.nodeName=,status.phase=Pending' }),
    host.tryList<KubeObject>(PLACEMENT_POLICIES),
    host.tryList<KubeObject>(CLUSTER_PLACEMENT_POLICIES),
    host.tryList<KubeObject>(WORKLOAD_MIGRATIONS),
    host.tryList<KubeObject>(WORKLOAD_REBALANCERS),
  ]);
  const stays = await eventsOfStays(host, fleet.facts);
  const policies = [
    { resource: PLACEMENT_POLICIES.plural, objects: own },
    { resource: CLUSTER_PLACEMENT_POLICIES.plural, objects: clusterWide },
  ].flatMap(({ resource, objects }) =>
    objects instanceof MissingRight ? [] : objects.map((object) => ({ resource, object })),
  );
  const isUnknown = own instanceof MissingRight && clusterWide instanceof MissingRight;
  const found = overview(
    {
      fleet: fleet.facts,
      leases: leases instanceof MissingRight ? undefined : leases,
      unbound: unbound instanceof MissingRight ? undefined : unbound,
      policies: isUnknown ? undefined : policies,
      migrations: migrations instanceof MissingRight ? undefined : migrations,
      rebalancers: rebalancers instanceof MissingRight ? undefined : rebalancers,
      stays: stays instanceof MissingRight ? undefined : stays,
    },
    now,
  );
  const missing = [leases, unbound, own, clusterWide, migrations, rebalancers, stays].flatMap((one) =>
    one instanceof MissingRight ? [one.right] : [],
  );
  return { found, missing: [...new Set([...fleet.missing, ...missing])] };
}

/** Why pods stay that are to go: asked only where some are. */
async function eventsOfStays(host: Viewer, facts: FleetFacts): Promise<Event[] | MissingRight> {
  const { pods = [] } = facts;
  const isReleased = (pod: Pod): boolean => releasedFrom(pod) !== undefined;
  const reasons = [...(pods.some(isReleased) ? [RELEASED_POD_STAYS] : []), ...reasonsToAsk(stayReasons(facts), pods)];
  const found = await Promise.all(
    reasons.map(
      async (reason) =>
        await host.tryList<Event>(EVENTS, { fieldSelector: `involvedObject.kind=Pod,reason=${reason}` }),
    ),
  );
  return (
    found.find((one) => one instanceof MissingRight) ?? found.flatMap((one) => (one instanceof MissingRight ? [] : one))
  );
}
