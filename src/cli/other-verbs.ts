import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';

/** What people type who know other programs, or took a verb apart: what does that here. The likest verb by its letters may be the very opposite. */
const OTHER_VERBS: ReadonlyMap<string, string> = new Map([
  [
    'migrate',
    'kubectl spillway move deployment/NAME -n NAMESPACE --from MEMBER moves workloads, with --all those of a namespace; kubectl spillway drain MEMBER empties a member',
  ],
  [
    'undrain',
    'kubectl spillway uncordon MEMBER lets it take new pods again; where a virtual node has taint spillway.dev/drain: kubectl taint node NODE spillway.dev/drain-',
  ],
  ['unjoin', 'kubectl spillway leave MEMBER takes a member out'],
]);

/** Undefined: the word is a verb of ours, or nobody knows what is meant by it. */
export function otherVerb(word: string | undefined): CliError | undefined {
  const fix = OTHER_VERBS.get(word ?? '');
  return fix === undefined ? undefined : new CliError(`there is no verb ${word}`, { exitCode: EXIT.usage, fix });
}
