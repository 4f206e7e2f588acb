import { cleanText } from '../kube/clean-text.ts';
import {
  ApiError,
  CredentialsError,
  describeError,
  isForbidden,
  isNotFound,
  isUnauthorized,
  TransportError,
} from '../kube/errors.ts';
import { EXIT, type ExitCode } from './exit-code.ts';

/** Of one line of an error, in bytes. */
const LONGEST_LINE = 2000;

/** What went wrong in words for the person at the terminal: what, why, what helps, and where more stands. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;
  readonly reason: string | undefined;
  readonly fix: string | undefined;
  /** Below docs/. */
  readonly page: string | undefined;

  constructor(
    message: string,
    more: { exitCode?: ExitCode; reason?: string | undefined; fix?: string; page?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.exitCode = more.exitCode ?? EXIT.failed;
    this.reason = more.reason;
    this.fix = more.fix;
    this.page = more.page;
  }
}

/** What was asked for is not there. */
export function isNotThere(error: unknown): error is CliError {
  return error instanceof CliError && error.exitCode === EXIT.notFound;
}

/** Any error as one for people. `what` was being done, such as `list nodes`, in the cluster of kubeconfig context `context`. */
export function explained(error: unknown, what: string, context: string): CliError {
  if (error instanceof CliError) return error;
  const where = context === '' ? 'the cluster' : `the cluster of context ${context}`;
  if (isUnauthorized(error)) {
    return new CliError(`${where} does not know you`, {
      reason: 'it refused the credentials of the kubeconfig (401)',
      fix: 'log in again, or name another --kubeconfig or --context',
      page: 'reference/cli.md#rights',
      cause: error,
    });
  }
  if (isForbidden(error)) {
    return new CliError(`you may not ${what} in ${where}`, {
      exitCode: EXIT.forbidden,
      reason: error.status.message,
      fix: `ask an administrator of that cluster for the right to ${what}`,
      page: 'reference/cli.md#rights',
      cause: error,
    });
  }
  if (isNotFound(error)) {
    return new CliError(`${error.status.message ?? 'it does not exist'} (${where})`, {
      exitCode: EXIT.notFound,
      fix: 'check the name, the namespace (-n) and the --context',
      cause: error,
    });
  }
  if (error instanceof ApiError && error.code === 404) {
    return new CliError(`${where} does not know what is asked for in order to ${what}`, {
      reason: 'it has not that kind of object: Spillway is not installed there, or in an older version',
      fix: 'use kubectl spillway install there, or name another --context',
      page: 'guides/install.md',
      cause: error,
    });
  }
  if (error instanceof TransportError) {
    return new CliError(`${where} does not answer`, {
      reason: error.detail,
      fix: 'check the server address, and the proxy-url if one is needed, in the kubeconfig and the network, or name another --context',
      cause: error,
    });
  }
  if (error instanceof CredentialsError) {
    return new CliError('the kubeconfig cannot be used', {
      reason: error.message,
      fix: 'name another one with --kubeconfig, or another --context',
      cause: error,
    });
  }
  return new CliError(`it was not possible to ${what}`, { reason: describeError(error), cause: error });
}

/** The lines that go to stderr. What servers said in it is made fit for terminals. */
export function errorLines(error: CliError): string[] {
  const { message, reason, fix, page } = error;
  return [
    `error: ${message}`,
    ...(reason === undefined || reason === '' ? [] : [`reason: ${reason}`]),
    ...(fix === undefined ? [] : [`fix: ${fix}`]),
    ...(page === undefined ? [] : [`see: docs/${page}`]),
  ].map((line) => cleanText(line, LONGEST_LINE));
}
