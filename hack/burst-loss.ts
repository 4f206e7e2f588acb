import type { BurstLab } from './burst-lab.ts';
import type { BurstStage } from './burst-stage.ts';
import { manifest } from './manifest.ts';

/** Revisions as in Moment. */
export interface Loss {
  /** When `a` was cut off. */
  cut: number;
  /** Up to here others took the places of its pods. */
  replaced: number;
  /** Up to here the pods went back to it. */
  home: number;
}

/** Cuts member `a` off while it has three of twenty pods, and lets it answer again once `b` has three more. */
export async function loseMember({ host, members }: BurstLab, stage: BurstStage): Promise<Loss> {
  await host.apply(manifest('samples/burst/failover.yaml'));
  const server = members.find(({ name }) => name === 'a')?.component('kube-apiserver');
  const cut = stage.history.now.revision;
  stage.say('a does not answer any more');
  server?.signal('SIGSTOP');
  let replaced: number;
  try {
    replaced = await stage.reach('b has what a had', ({ ready, ...is }) => ready === 20 && is.a === 0 && is.b === 10);
  } finally {
    server?.signal('SIGCONT');
  }
  stage.say('a answers again');
  const home = await stage.reach(
    'a has its pods again',
    ({ ready, ...is }) => ready === 20 && is.a === 3 && is.b === 7,
  );
  return { cut, replaced, home };
}
