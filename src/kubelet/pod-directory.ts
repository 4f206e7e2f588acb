import type { Pod } from '../kube/core-v1.ts';
import type { LogSource } from './logs.ts';
import type { StreamDialer } from './upstream-upgrade.ts';

/** What serving a pod needs of its member's client; KubeClient has it. */
export type MemberClient = StreamDialer & LogSource;

/** Where a host pod really runs, in the member's terms. */
export interface PodTarget {
  readonly client: MemberClient;
  readonly namespace: string;
  readonly name: string;
}

/** The host pods of one virtual node. */
export interface PodDirectory {
  /** The host pod of that name, only if it is bound to this node. */
  get(namespace: string, name: string): Pod | undefined;
  list(): Iterable<Pod>;
  running(): Iterable<Pod>;
  /** `unavailable`: why the member cannot serve the pod now, naming the cluster; a sentence without full stop. */
  target(pod: Pod): PodTarget | { readonly unavailable: string };
}
