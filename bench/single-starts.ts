import type { Cluster } from '../hack/cluster.ts';
import type { Say } from '../hack/progress.ts';
import { makeNamespace } from './bench-namespace.ts';
import type { SingleStarts } from './burst-figures.ts';
import type { DrivenProgram } from './driven-program.ts';
import type { Load, Spread } from './load-driver.ts';
import { LoadProcess } from './load-process.ts';

const PODS = 60;
const PATIENCE_MS = 240_000;

/**
 * What a pod waits for at its start because it is written down first that it is to be made: pods one after the other, so that none waits
 * for others, of each kind in a fresh namespace of the same process.
 */
export async function startSingly(o: {
  host: Cluster;
  member: Cluster;
  program: DrivenProgram;
  say: Say;
}): Promise<SingleStarts> {
  const { host, member, program, say } = o;
  const of = async (restartPolicy: Load['restartPolicy']): Promise<Spread> => {
    const namespace = `singly-${restartPolicy.toLowerCase()}`;
    await Promise.all([host, member].map((cluster) => makeNamespace(cluster, namespace)));
    const load = await LoadProcess.start({
      host: host.adminAccess,
      member: member.adminAccess,
      namespace,
      node: program.node,
      pods: PODS,
      inFlight: 1,
      outageTolerations: true,
      restartPolicy,
    });
    try {
      const { toMember } = (await load.order({ do: 'create-singly' }, PATIENCE_MS)).report;
      say(
        `${PODS} pods one after the other, restartPolicy ${restartPolicy}: in the member after ${toMember.p50.toFixed(4)} s (p50)`,
      );
      return toMember;
    } finally {
      await load.close();
    }
  };
  const running = await program.start();
  try {
    const plain = await of('Always');
    return { pods: PODS, plain, ahead: await of('Never') };
  } catch (error) {
    say(`${program.name}: the end of its log\n${running.logTail(30)}`);
    throw error;
  } finally {
    await program.stop();
  }
}
