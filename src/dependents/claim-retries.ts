/** How long until a claim, or its volume, is looked at again while its cache is behind, in ms. */
export const BEHIND_RETRY_MS = 500;
/** While the lease is not held, or the member is not known to be the pinned cluster. */
export const FROZEN_RETRY_MS = 1_000;
/** While it is not known what of ours is in a namespace of the member, or what policies make of a claim. */
export const UNKNOWN_RETRY_MS = 2_000;
