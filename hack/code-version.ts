import { execFileSync } from 'node:child_process';
import { programVersion } from '../src/version.ts';
import { repositoryRoot } from './repository.ts';

/**
 * The commit of this code like `7e42537`, with ` and changes` when what is in src/ is not what was committed; undefined
 * where git does not know, as in an archive.
 */
export function commitOfCode(root = repositoryRoot()): string | undefined {
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const commit = git('rev-parse', '--short', 'HEAD');
    return git('status', '--porcelain', '--', 'src') === '' ? commit : `${commit} and changes`;
  } catch {
    return undefined;
  }
}

/** `0.1.0 (7e42537)`: for pages that tell what was found out by running this code. */
export function codeVersion(commit = commitOfCode()): string {
  return commit === undefined ? programVersion() : `${programVersion()} (${commit})`;
}
