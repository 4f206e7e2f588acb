import { cleanText } from './clean-text.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound, isRightMissing, isTransient } from './errors.ts';

/** Longest part of a cluster's own words that is repeated to users, in bytes. */
const MAX_WORDS = 500;

/**
 * What a cluster says against one object, by its limits or policies, cleaned and cut; undefined: the error is something else, such as a
 * right that is missing.
 */
export function refusalIn(error: unknown): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const words = error.status.message ?? error.message;
  if (isTransient(error) || isNotFound(error) || isConflict(error) || isAlreadyExists(error)) return undefined;
  if (isRightMissing(error)) return undefined;
  return /being terminated/.test(words) ? undefined : cleanText(words, MAX_WORDS);
}
