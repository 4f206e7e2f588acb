/**
 * A server sends more than there is room for here. What is known stays as it is. Nobody's mistake perhaps, so it is tried
 * again, but rarely. `message` names the limit.
 */
export class LimitError extends Error {
  override readonly name = 'LimitError';
}

/** What comes of it, for people. */
export const AFTER_LIMIT = 'It is tried again by itself once a minute; a larger heap for the manager makes more room.';
