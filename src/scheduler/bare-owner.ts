import { defined } from '../kube/defined.ts';
import type { TypedObject } from '../placement/owner-chain.ts';

/** An owner of which no more is kept than which object it is: what its labels are, and what owns it, nobody knows. */
interface BareOwner extends TypedObject {
  /** In words. */
  readonly whyBare: string;
}

export function bareOwner({ apiVersion, kind, metadata }: TypedObject, whyBare: string): BareOwner {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const kept = { name, ...defined({ namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp }) };
  return { apiVersion, kind, metadata: kept, whyBare };
}

/** Undefined for an owner of which all is kept that placement looks at, and for one that is not known at all. */
export function whyBare(owner: TypedObject | undefined): string | undefined {
  return (owner as Partial<BareOwner> | undefined)?.whyBare;
}
