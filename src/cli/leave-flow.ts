import { FORCE_LEAVE_ANNOTATION } from '../api/marks.ts';
import { isLeaving, MEMBER_CLUSTERS, type MemberCluster } from '../api/member-cluster.ts';
import { isAnswering } from '../api/unreachable.ts';
import { childSignal } from '../kube/child-signal.ts';
import { cleanText } from '../kube/clean-text.ts';
import { monotonic } from '../kube/clock.ts';
import { conditionOf } from '../kube/conditions.ts';
import { counted } from '../kube/counted.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, isAnotherObject, isTransient } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { Informer } from '../kube/informer.ts';
import { keyOf, type KubeObject } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import { patch, remove } from '../kube/verbs.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { askToEvict, NOT_NOW, NOT_NOW_MS, podsOf, untilCordoned } from './drain.ts';
import { drainPlan, type DrainPlan, refusedInWords } from './drain-plan.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { dryRunOption, dryRunWords, type DryRunFlags } from './flags.ts';
import { leavingWords } from './leave-words.ts';
import { refuseLetGo } from './let-go.ts';
import type { MemberFlags } from './member-flags.ts';
import type { Viewer } from './viewer.ts';

export interface LeaveFlags extends MemberFlags, DryRunFlags {
  mode: 'drain' | 'detach' | 'force';
  force?: boolean;
  deleteEmptydirData?: boolean;
  /** False with --no-wait. */
  wait: boolean;
  /** In s. */
  timeout?: number;
}

export type Leaver = KubeObject & Partial<Pick<MemberCluster, 'spec' | 'status'>>;

/** Between two looks at what is still there, in ms. */
const LOOK_MS = 1_000;
const LONGEST_LINE = 2_000;
const PAGE = 'concepts/leaving.md';

/** The end of one member as the person at the terminal follows it. */
export class Leave {
  readonly #cli: Cli;
  readonly #host: Viewer;
  readonly #member: Leaver;
  readonly #name: string;
  readonly #flags: LeaveFlags;
  readonly #until: number;
  /** UIDs of pods that were evicted, or found to be ending, with what is said once they are gone. */
  readonly #going = new Map<string, string>();
  /** When pods that may not go now are asked for again, by UID, and why they may not. */
  readonly #again = new Map<string, { readonly at: number; readonly why: string }>();
  /** UIDs of pods that may not be evicted without a word of the person. */
  readonly #stays = new Set<string>();
  #said = '';

  constructor(cli: Cli, host: Viewer, member: Leaver, flags: LeaveFlags) {
    this.#cli = cli;
    this.#host = host;
    this.#member = member;
    this.#name = member.metadata.name;
    this.#flags = flags;
    this.#until = monotonic() + (flags.timeout ?? Infinity) * 1000;
  }

  async run(): Promise<ExitCode> {
    const { mode, dryRun, wait, timeout } = this.#flags;
    const { terminal } = this.#cli;
    const member = this.#member;
    if (mode === 'force') this.#refuseWhileItAnswers(member);
    const evicts = mode === 'drain' && wait;
    if (evicts) await this.#refuseBarePods(member);
    await this.#delete(member);
    if (mode === 'force') await this.#giveUp(member);
    if (dryRun !== 'none') {
      if (evicts) await this.#evictAll(member);
      return EXIT.ok;
    }
    if (!wait) return EXIT.ok;
    if (evicts) await untilCordoned(terminal, this.#host, this.#name, (timeout ?? Infinity) * 1000);
    const last = await this.#follow(member);
    await refuseLetGo(this.#host, last);
    terminal.out(`membercluster/${this.#name} left\n`);
    const remains = last.status?.leaving?.mayRemain ?? [];
    if (remains.length === 0) return EXIT.ok;
    terminal.out(`\nWhat may remain in the member (${counted(remains.length, 'object')}):\n`);
    for (const one of remains) terminal.out(`  ${cleanText(one, LONGEST_LINE)}\n`);
    return EXIT.findings;
  }

  #refuseWhileItAnswers({ status }: Leaver): void {
    const reachable = conditionOf({ status }, 'Reachable');
    if (reachable === undefined) return;
    const answers = reachable.status === 'True' || (reachable.status === 'False' && isAnswering(reachable.reason));
    if (!answers) return;
    const but = reachable.status === 'True' ? '' : `, though not as it should (${reachable.reason})`;
    throw new CliError(`member ${this.#name} is not given up: it answers${but}`, {
      reason:
        'its pods may run, and others would do their work again; a member that answers leaves in order, and nothing of it is left behind',
      fix: 'use --mode=drain or --mode=detach',
      page: `${PAGE}#a-member-that-is-gone-for-good`,
    });
  }

  /** Before anything is done that cannot be taken back. */
  async #refuseBarePods(member: Leaver): Promise<void> {
    const { refused } = this.#plan(await podsOf(this.#host, member));
    if (refused.length === 0) return;
    throw new CliError(
      `nothing was done to member ${this.#name}: ${counted(refused.length, 'pod')} there would not come back`,
      {
        reason: refusedInWords(refused),
        fix: 'use the flags that the reason names, let these pods end yourself, or use --mode=detach',
        page: 'reference/cli.md#leave',
      },
    );
  }

  #plan(pods: readonly Pod[]): DrainPlan {
    const { force = false, deleteEmptydirData = false } = this.#flags;
    return drainPlan(pods, { force, deleteEmptydirData });
  }

  async #delete(member: Leaver): Promise<void> {
    const { dryRun } = this.#flags;
    const { name, uid } = member.metadata;
    const { terminal } = this.#cli;
    if (isLeaving(member)) {
      terminal.note(`membercluster/${name} is being deleted already`);
      return;
    }
    if (dryRun !== 'client')
      await this.#host.ask('delete memberclusters.spillway.dev', async (signal) => {
        const options = { signal, ...dryRunOption(dryRun) };
        try {
          await remove(this.#host.client, MEMBER_CLUSTERS, { name }, { uid }, options);
        } catch (error) {
          // It has left by the hand of somebody else.
          if (!isAnotherObject(error)) throw error;
        }
      });
    terminal.out(`membercluster/${name} deleted${dryRunWords(dryRun)}\n`);
  }

  /** The word is for this MemberCluster alone, by its UID. */
  async #giveUp(member: Leaver): Promise<void> {
    const { dryRun } = this.#flags;
    const { name, uid = '' } = member.metadata;
    this.#cli.terminal.note(
      'warning: the controllers of its pods make others elsewhere. What still runs in the member then runs twice: be sure that nothing does',
    );
    if (dryRun !== 'client') {
      const body = { metadata: { uid, annotations: { [FORCE_LEAVE_ANNOTATION]: uid } } };
      const how = { type: 'merge', fieldManager: 'kubectl-spillway' } as const;
      await this.#host.ask('patch memberclusters.spillway.dev', async (signal) => {
        const options = { signal, ...dryRunOption(dryRun) };
        // It may have left already.
        await ifThere(patch<KubeObject>(this.#host.client, MEMBER_CLUSTERS, { name }, body, how, options));
      });
    }
    this.#cli.terminal.out(`membercluster/${name} annotated${dryRunWords(dryRun)}\n`);
  }

  /** Until it is gone. Answers what it was at last, of which nothing may be missed: so it is watched. */
  async #follow(member: Leaver): Promise<Leaver> {
    const { terminal } = this.#cli;
    const { name, uid } = member.metadata;
    const stop = childSignal(terminal.signal);
    const informer = new Informer<Leaver>({
      client: this.#host.client,
      resource: MEMBER_CLUSTERS,
      fieldSelector: `metadata.name=${name}`,
    });
    let last = member;
    let isGone = false;
    const see = (now: Leaver): void => {
      // Another one of the name is another cluster.
      if (now.metadata.uid === uid) last = now;
      else isGone = true;
    };
    informer.on({
      added: see,
      updated: see,
      deleted: (object) => {
        see(object);
        isGone = true;
      },
    });
    const following = informer.run(stop.signal);
    try {
      for (;;) {
        isGone ||= informer.hasSynced && informer.get(name) === undefined;
        if (isGone) return last;
        if (informer.problem !== undefined && !informer.hasSynced) this.#say(informer.problem);
        else this.#say(leavingWords(last.status));
        if (this.#flags.mode === 'drain') await this.#evictOnce(last);
        this.#checkTime();
        await pause(LOOK_MS, terminal.signal);
        terminal.signal.throwIfAborted();
      }
    } finally {
      stop.abort();
      await following;
      stop.release();
    }
  }

  /** A cluster that does not answer for a moment is asked again. */
  async #evictOnce(member: Leaver): Promise<void> {
    try {
      await this.#evictAll(member);
    } catch (error) {
      if (!(error instanceof CliError) || !isTransient(error.cause)) throw error;
      this.#say(`${error.message}: ${error.reason ?? ''}`);
    }
  }

  #say(waitingFor: string): void {
    if (waitingFor !== this.#said) this.#cli.terminal.note(`waiting: ${cleanText(waitingFor, LONGEST_LINE)}`);
    this.#said = waitingFor;
  }

  #checkTime(): void {
    if (monotonic() < this.#until) return;
    throw new CliError(`member ${this.#name} has not left within ${String(this.#flags.timeout ?? 0)} s`, {
      reason: this.#said,
      fix: 'it goes on leaving by itself; run the same again to go on with what is still there',
      page: PAGE,
    });
  }

  /** One round: evicts what may go by now, and tells what is gone. */
  async #evictAll(member: Leaver): Promise<void> {
    const { terminal } = this.#cli;
    const { dryRun } = this.#flags;
    const pods = await podsOf(this.#host, member);
    const there = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const [uid, what] of this.#going) {
      if (there.has(uid)) continue;
      this.#going.delete(uid);
      terminal.out(`${what} evicted\n`);
    }
    const plan = this.#plan(pods);
    for (const { pod, why } of plan.refused) this.#noteStays(pod, why);
    for (const pod of plan.evict) {
      const { uid = '', name, namespace = '' } = pod.metadata;
      if (this.#going.has(uid) || (this.#again.get(uid)?.at ?? 0) > monotonic()) continue;
      const why = await this.#whyNotNow(pod);
      if (why !== undefined) {
        if (this.#again.get(uid)?.why !== why) terminal.note(`pod ${keyOf(pod)} waits: ${why}`);
        this.#again.set(uid, { at: monotonic() + NOT_NOW_MS, why });
      } else if (dryRun === 'none') {
        terminal.note(`evicting pod ${keyOf(pod)}`);
        this.#going.set(uid, `pod/${name} (namespace ${namespace})`);
      } else {
        terminal.out(`pod/${name} (namespace ${namespace}) evicted${dryRunWords(dryRun)}\n`);
      }
    }
  }

  /** One that came after the first look, once. */
  #noteStays(pod: Pod, why: string): void {
    const { uid = '' } = pod.metadata;
    if (this.#stays.has(uid)) return;
    this.#stays.add(uid);
    this.#cli.terminal.note(`pod ${keyOf(pod)} stays, and the member with it: ${why}`);
  }

  /** Undefined: it goes. One that ends already need not be asked for. */
  async #whyNotNow(pod: Pod): Promise<string | undefined> {
    const { dryRun } = this.#flags;
    if (dryRun === 'client' || pod.metadata.deletionTimestamp !== undefined) return undefined;
    try {
      const answer = await askToEvict(this.#host, pod, dryRun);
      return answer === 'kept' || answer === 'busy' ? NOT_NOW[answer] : undefined;
    } catch (error) {
      // A webhook that denies so speaks of this pod; the others go on.
      if (!(error instanceof CliError && error.cause instanceof ApiError && error.cause.code === 429)) throw error;
      return cleanText(error.reason ?? error.message, LONGEST_LINE);
    }
  }
}
