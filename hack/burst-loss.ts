import { parse } from 'yaml';
import type { BurstLab } from './burst-lab.ts';
import type { BurstStage } from './burst-stage.ts';
import type { Cluster } from './cluster.ts';
import { manifest } from './manifest.ts';
import { GiveUp } from './until.ts';

/** Revisions as in Moment. */
export interface Loss {
  /** When `a` was cut off. */
  cut: number;
  /** Up to here others took the places of its pods. */
  replaced: number;
  /** Up to here the pods went back to it, or had stayed for {@link STAY_MS} after it answered. */
  settled: number;
}

/** Twice as long as pods wait that are to go home, in ms. */
const STAY_MS = 30_000;

/** Cuts member `a` off while it has three of twenty pods, lets it answer again once `b` has three more, and they go home. */
export async function loseMember(lab: BurstLab, stage: BurstStage): Promise<Loss> {
  await lab.host.apply(manifest('samples/burst/failover.yaml'));
  const { cut, replaced } = await cutOff(lab, stage);
  const settled = await stage.reach(
    'a has its pods again',
    ({ ready, ...is }) => ready === 20 && is.a === 3 && is.b === 7,
  );
  return { cut, replaced, settled };
}

/** The same by a policy that says nothing of going home: they stay in `b`. */
export async function loseMemberForGood(lab: BurstLab, stage: BurstStage): Promise<Loss> {
  stage.say('the policy says no more that pods go home');
  await sayNothingOfHome(lab.host);
  const { cut, replaced } = await cutOff(lab, stage);
  const answered = Date.now();
  const settled = await stage.reach('they stay in b', ({ a }) => {
    if (a > 0) throw new GiveUp(`${String(a)} pods went back to a`);
    return Date.now() - answered >= STAY_MS;
  });
  return { cut, replaced, settled };
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
    const isReplaced = stage.reach('b has what a had', ({ ready, ...is }) => ready === 20 && is.a === 0 && is.b === 10);
    return { cut, replaced: await isReplaced };
  } finally {
    server?.signal('SIGCONT');
    stage.say('a answers again');
  }
}
