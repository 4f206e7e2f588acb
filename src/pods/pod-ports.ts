/** What the pod controller needs from the rest of the program, as narrow interfaces that manager.ts fills in. */
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Informer } from '../kube/informer.ts';
import type { Hold } from './decide.ts';

/** Index of the member pod cache: `<virtual node>/<host namespace>/<host name>` of the pods that carry our marks. */
export const HOST_POD_INDEX = 'hostPod';

export interface MemberPort {
  readonly name: string;
  readonly client: KubeClient;
  readonly pods: Informer<Pod>;
  reachable(): boolean;
  /** Time in ms since which the member does not answer. */
  unreachableSince(): number | undefined;
  /** Reads the member's identity once more, past all caches; false when it is not the pinned one. */
  confirmIdentity(signal: AbortSignal): Promise<boolean>;
}

export interface NamespacesPort {
  /** Where pods of a host namespace are in the member; undefined where they may never be. */
  memberNamespaceOf(hostNamespace: string): string | undefined;
  /** The same, made sure to exist and to be ours to use. */
  ensure(hostNamespace: string, signal: AbortSignal): Promise<{ namespace: string } | { hold: Hold }>;
}

export interface DependentsPort {
  /** Notes what a host pod refers to, as soon as it is seen and when its spec changed. */
  track(pod: Pod): void;
  /** `pending`: on its way; not worth telling users about. */
  require(pod: Pod): { ready: true } | ({ ready: false; pending: boolean } & Hold);
  /** The pod is gone. */
  release(podKey: string): void;
}

export interface EventPort {
  record(
    object: { apiVersion: string; kind: string; namespace?: string; name: string; uid?: string },
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ): void;
}
