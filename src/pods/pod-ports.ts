/** What the pod controller needs from the rest of the program, as narrow interfaces that manager/ fills in. */
import type { OverridePolicy } from '../api/override-policy.ts';
import type { ServiceAccountMode } from '../api/service-account-mode.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Moment } from '../kube/clock.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Informer } from '../kube/informer.ts';
import type { OverrideSubject } from '../overrides/selection.ts';
import type { Cluster } from '../api/cluster.ts';
import type { Hold } from './hold.ts';

/** Index of the member pod cache: `<virtual node>/<host namespace>/<host name>` of the pods that carry our marks. */
export const HOST_POD_INDEX = 'hostPod';

export interface MemberPort {
  readonly name: string;
  readonly client: KubeClient;
  readonly pods: Informer<Pod>;
  reachable(): boolean;
  /** Reason of condition `Reachable` while it is not; undefined before the first probe. */
  unreachableBecause(): string | undefined;
  /** Since when the member does not answer. */
  unreachableSince(): Moment | undefined;
  /** Reads the member's identity once more, past all caches; false when it is not the pinned one. */
  confirmIdentity(signal: AbortSignal): Promise<boolean>;
}

export interface NamespacesPort {
  /** Where pods of a host namespace are in the member; undefined where they may never be. */
  memberNamespaceOf(hostNamespace: string): string | undefined;
  /** The same, and where they were before the mapping was edited. */
  everUsedFor(hostNamespace: string): readonly string[];
  /** {@link memberNamespaceOf}, made sure to exist and to be ours to use. */
  ensure(hostNamespace: string, signal: AbortSignal): Promise<{ namespace: string } | { hold: Hold }>;
}

export interface DependentsPort {
  /** Notes what a host pod refers to, as soon as it is seen and when its spec changed; `rendered`: in the member. */
  track(pod: Pod, rendered: Pod): void;
  /** `place`: the namespace of the member where the copy is, or is to be. `pending`: on its way; not worth telling users about. */
  require(pod: Pod, rendered: Pod, place: string): { ready: true } | ({ ready: false; pending: boolean } & Hold);
  /** The pod is gone. */
  release(podKey: string): void;
}

/** What a pod's service account becomes in the member. */
export interface ServiceAccountsPort {
  /** `wait`: not known yet; `hold`: there is no mode in which the pod may go. */
  modeOf(hostPod: Pod): { mode: ServiceAccountMode } | { wait: string } | { hold: Hold };
  /** Whether the tokens of a pod in mode Host are in the member; they are brought there from the first question on. */
  requireTokens(hostPod: Pod): { ready: true } | ({ ready: false; pending: boolean } & Hold);
}

/** Services of the host in the member. */
export interface ServicesPort {
  /** Whether it is known which variables the pod gets for Services. */
  require(hostPod: Pod): { ready: true } | { ready: false; message: string };
}

/** Policies of the host that change pods on their way to the member. */
export interface OverridesPort {
  /** Set until they have been read: no pod is created before. With the problem, in words for people, if there is one. */
  unknown(): { problem: string | undefined } | undefined;
  /** Those that may concern objects of a namespace. The same list until one of them changes. */
  policies(hostNamespace: string): readonly OverridePolicy[];
  /** The pod and its owners as far as they were read; undefined: some have to be read first. */
  owners(hostPod: Pod): OverrideSubject['identities'] | undefined;
  readOwners(hostPod: Pod, signal: AbortSignal): Promise<OverrideSubject['identities']>;
  /** What policies know of the member. The same object until something of it changes. */
  member(): Cluster;
  /** Labels of the member's nodes behind the virtual node. */
  pool(): Readonly<Record<string, string>>;
}

/** An administrator's word that nothing runs on the virtual node any more, and the pods that were ended by it. */
export interface FencingPort {
  /** It counts at this moment: the member does not answer. */
  isFenced(): boolean;
  /** What former processes ended is known. */
  readonly isRead: boolean;
  /** UIDs of those that were ended, and may come back: another object whenever one is added, or taken out. */
  readonly told: { readonly size: number; has(uid: string): boolean; keys(): Iterable<string> };
  /** It is stored in the host that the pod with that UID was ended. */
  isTold(uid: string): boolean;
  /** Stores that; false: there is no room for more. */
  tell(hostPod: Pod, signal: AbortSignal): Promise<boolean>;
}

/** Nobody ever says so. */
export const NEVER_FENCED: FencingPort = {
  isFenced: () => false,
  isRead: true,
  told: new Set(),
  isTold: () => false,
  tell: () => Promise.resolve(false),
};

export type EventPort = Pick<EventRecorder, 'record'>;
