import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { describeError } from '../kube/errors.ts';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';

/** The text of a manifest; `-` for standard input. Throws CliError. */
export async function manifestText(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw new CliError(`${file} cannot be read`, { reason: describeError(error), exitCode: EXIT.usage, cause: error });
  }
}
