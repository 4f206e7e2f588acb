/**
 * A server sends more than there is room for here. What is known stays as it is. Nobody's mistake perhaps, so it is tried
 * again, but rarely. `message` names the limit.
 */
export class LimitError extends Error {
  override readonly name = 'LimitError';
}
