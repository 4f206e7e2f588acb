import { parse } from 'yaml';
import type { Moment } from './burst-history.ts';
import type { BurstLab } from './burst-lab.ts';
import type { BurstStage } from './burst-stage.ts';
import type { Loss } from './burst-verdict.ts';
import type { Cluster } from './cluster.ts';
import { manifest } from './manifest.ts';
import { GiveUp } from './until.ts';

/** Twice as long as pods wait that are to go home, in ms. */
const STAY_MS = 30_000;

/** Cuts member `a` off while it has three of twenty pods, lets it answer again once `b` has three more, and they go home. */
export async function loseMember(lab: BurstLab, stage: BurstStage): Promise<Loss> {
  await lab.host.apply(manifest('samples/burst/failover.yaml'));
  const { cut, replaced } = await cutOff(lab, stage);
  const isBack = ({ ready, a, b }: Moment): boolean => ready === 20 && a === 3 && b === 7;
  return { cut, replaced, settled: await reached(stage, 'a has its pods again', isBack), goesHome: true };
}

/** The same by a policy that says nothing of going home: they stay in `b`. */
export async function loseMemberForGood(lab: BurstLab, stage: BurstStage): Promise<Loss> {
  stage.say('the policy says no more that pods go home');
  await sayNothingOfHome(lab.host);
  const { cut, replaced } = await cutOff(lab, stage);
  const answered = Date.now();
  const settled = await reached(stage, 'they stay in b', ({ a }) => {
    if (a > 0) throw new GiveUp(`${String(a)} pods went back to a`);
    return Date.now() - answered >= STAY_MS;
  });
  return { cut, replaced, settled, goesHome: false };
}

async function sayNothingOfHome(host: Cluster): Promise<void> {
  const policy = parse(manifest('samples/burst/failover.yaml')) as { spec: { failover: Record<string, unknown> } };
  const { repatriate: _, ...failover } = policy.spec.failover;
  await host.apply([{ ...policy, spec: { ...policy.spec, failover } }]);
}

async function cutOff({ members }: BurstLab, stage: BurstStage): Promise<Pick<Loss, 'cut' | 'replaced'>> {
  const server = members.find(({ name }) => name === 'a')?.component('kube-apiserver');
  const cut = stage.history.now.revision;
  stage.say('a does not answer any more');
  server?.signal('SIGSTOP');
  try {
    const isReplaced = ({ ready, a, b }: Moment): boolean => ready === 20 && a === 0 && b === 10;
    return { cut, replaced: await reached(stage, 'b has what a had', isReplaced) };
  } finally {
    server?.signal('SIGCONT');
    stage.say('a answers again');
  }
}

/** What is never reached is told, and how it is then is judged (burst-verdict.ts). */
async function reached(stage: BurstStage, what: string, isSo: (now: Moment) => boolean): Promise<number> {
  try {
    return await stage.reach(what, isSo);
  } catch (error) {
    if (stage.isBlind) throw error;
    stage.say(error instanceof Error ? error.message : String(error));
    return stage.history.now.revision;
  }
}
