import type { Command } from 'commander';
import { stringify } from 'yaml';
import { cleanText } from '../kube/clean-text.ts';
import { counted } from '../kube/counted.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { outputFlags, type OutputFlags } from './flags.ts';
import { manifestText } from './manifest-file.ts';
import type { Format } from './output.ts';
import { manifestObjects } from './simulate/manifest-objects.ts';
import { translations, type Translation } from './translate/translation.ts';
import type { Terminal } from './terminal.ts';

interface Flags extends OutputFlags {
  filename: string;
}
const FORMATS: readonly Format[] = ['yaml', 'json'];
/** Of one line that repeats what stands in the manifest, in bytes. */
const LONGEST_LINE = 2_000;

export function addTranslate(program: Command, cli: Cli): void {
  const command = program
    .command('translate')
    .summary('policies of Karmada and KubeFed as policies of Spillway; nothing is created')
    .description(
      'Takes PropagationPolicies, OverridePolicies, ClusterTaintPolicies and WorkloadRebalancers of Karmada, and federated workloads and ' +
        'ReplicaSchedulingPreferences of KubeFed, out of a manifest. Prints ours to stdout, and on stderr of each field that is not simply the same what becomes ' +
        'of it. Asks no cluster. Ends with 5 when something that a policy did is not done any more; see docs/guides/from-karmada.md.',
    )
    .requiredOption('-f, --filename <file>', 'the manifest, YAML or JSON; - for standard input');
  outputFlags(command, FORMATS, 'yaml').action(
    async (flags: Flags) =>
      await cli.run(async () => translate(cli.terminal, await manifestText(flags.filename), flags)),
  );
}

function translate(terminal: Terminal, manifest: string, { output }: Flags): ExitCode {
  const { translated, others } = translations(manifestObjects(manifest));
  if (translated.length === 0) {
    throw new CliError('there is nothing of Karmada or KubeFed in the manifest', {
      exitCode: EXIT.usage,
      fix: 'name a file with policies, such as: kubectl get propagationpolicies,overridepolicies -A -o yaml',
      page: 'guides/from-karmada.md',
    });
  }
  const made = translated.flatMap((one) => one.made);
  if (made.length > 0 && output === 'json') {
    const whole = made.length === 1 ? made[0] : { apiVersion: 'v1', kind: 'List', items: made };
    terminal.out(`${JSON.stringify(whole, undefined, 2)}\n`);
  } else {
    const documents = made.map((one) => stringify(one, { lineWidth: 0, aliasDuplicateObjects: false }));
    terminal.out(documents.join('---\n'));
  }
  const say = (line: string): void => terminal.note(cleanText(line, LONGEST_LINE));
  for (const one of translated) for (const line of remarksOn(one)) say(line);
  if (others.length > 0) say(`note: passed over, as they are not of Karmada or KubeFed: ${others.join(', ')}`);
  const lossy = translated.filter(isLossy).length;
  say(
    `${counted(translated.length, 'object')} read, ${counted(made.length, 'object')} made` +
      (lossy === 0 ? '' : `; ${counted(lossy, 'object')} did something that is not done any more`),
  );
  return lossy === 0 ? EXIT.ok : EXIT.findings;
}

function isLossy({ remarks, problems }: Translation): boolean {
  return problems.length > 0 || remarks.some(({ lost }) => lost);
}

function remarksOn({ of, remarks, problems }: Translation): string[] {
  return [
    ...remarks.map(
      ({ field, says, lost }) => `${lost ? 'lost' : 'note'}: ${of}${field === '' ? '' : `, ${field}`}: ${says}`,
    ),
    ...problems.map((problem) => `lost: ${of}: what was made of it will be refused: ${problem}`),
  ];
}
