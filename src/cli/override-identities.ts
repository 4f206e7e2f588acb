import type { ObjectIdentity, OverrideSubject } from '../overrides/selection.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';

/** By what override policies choose a pod: itself and all its owners, whose labels are known here. */
export function identitiesOf([pod, ...owners]: OwnerChain): OverrideSubject['identities'] {
  return [identityOf(pod), ...owners.map(identityOf)];
}

function identityOf({ apiVersion, kind, metadata: { name, labels = {} } }: TypedObject): ObjectIdentity {
  return { apiVersion, kind, name, labels };
}
