import { ApiError } from '../../kube/errors.ts';
import { CliError } from '../cli-error.ts';

/** Who has no CRDs has no members either; the check of the kinds tells it. */
export function notInstalled(error: unknown): [] {
  if (error instanceof CliError && error.cause instanceof ApiError && error.cause.code === 404) return [];
  throw error;
}
