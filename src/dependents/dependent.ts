import type { HostObjectFollower } from './host-object-follower.ts';
import type { HostRef } from './host-objects.ts';

/** Why a copy was not written. */
export interface Failure {
  /** Those of the member, for users. */
  words: string;
  /** Trying again is of no use until somebody changes something. */
  permanent: boolean;
}

/** One ConfigMap or Secret of the host that pods in one namespace of a member refer to. */
export interface Dependent extends HostRef {
  /** What {@link DependentIndex} knows it by. */
  readonly key: string;
  /** Where its copy belongs: where those pods are. Undefined: nowhere. */
  readonly memberNamespace: string | undefined;
  /** Keys of the pods that refer to it: as long as there is one, its copy stays. */
  readonly users: Set<string>;
  /** Those that are to run in the member, or do: for them a missing copy is made. */
  readonly wanting: Set<string>;
  /** Those that were told to wait for it. */
  readonly waiting: Set<string>;
  readonly source: HostObjectFollower;
  /** Since when it has been on its way without a reason to tell. */
  pendingSince: number | undefined;
  /** The member has an object of that name that is not ours. */
  taken: boolean;
  /** When a copy was made that the cache has not shown yet. */
  madeAt: number | undefined;
  /** Why the last attempt to bring the member's copy up to date failed. */
  failure: Failure | undefined;
  /** How many failed in a row. */
  failures: number;
}

export function newDependent(ref: HostRef, memberNamespace: string | undefined, source: HostObjectFollower): Dependent {
  return {
    ...ref,
    key: dependentKeyIn(ref, memberNamespace),
    memberNamespace,
    users: new Set(),
    wanting: new Set(),
    waiting: new Set(),
    source,
    pendingSince: undefined,
    taken: false,
    madeAt: undefined,
    failure: undefined,
    failures: 0,
  };
}

/** Kinds have no slash, nor have names: the key can be taken apart again. */
export function dependentKeyOf({ kind, namespace, name }: HostRef): string {
  return `${kind}/${namespace}/${name}`;
}

/** One object of the host has a copy in each namespace of the member where pods are that refer to it. */
export function dependentKeyIn(ref: HostRef, memberNamespace: string | undefined): string {
  return `${dependentKeyOf(ref)}/${memberNamespace ?? ''}`;
}
