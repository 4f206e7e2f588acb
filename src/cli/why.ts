import type { Command } from 'commander';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import {
  clusterFlags,
  namespaceFlags,
  outputFlags,
  systemNamespaceFlag,
  type NamespaceFlags,
  type OutputFlags,
  type SystemFlags,
} from './flags.ts';
import { documented, type Format } from './output.ts';
import { painted } from './terminal.ts';
import { explain } from './why/explain.ts';
import { explanationText } from './why/explanation-text.ts';
import { readPodFacts } from './why/read-pod-facts.ts';

type Flags = NamespaceFlags & OutputFlags & SystemFlags;
const FORMATS: readonly Format[] = ['table', 'json', 'yaml'];

export function addWhy(program: Command, cli: Cli): void {
  const command = program
    .command('why')
    .summary('why is a pod where it is, or nowhere: from the scheduler here to the kubelet there')
    .description(
      'Follows one pod on its way: gates, policy, the scheduler of this cluster, Spillway, the scheduler of the member, the kubelet there. Says in ' +
        'plain words what each did, where the pod is stuck and what helps; also for pods that run, and for those that have ended.',
    )
    .argument('<pod>', 'name of the pod');
  systemNamespaceFlag(outputFlags(namespaceFlags(clusterFlags(command)), FORMATS)).action(
    async (name: string, flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        const ref = { namespace: flags.namespace ?? host.namespace, name: podName(name) };
        const { facts, missing } = await readPodFacts(host, ref, flags.systemNamespace, cli.terminal.now());
        const found = explain(facts);
        const { output } = flags;
        if (output === 'json' || output === 'yaml') {
          cli.terminal.out(documented({ kind: 'Explanation', ...found }, output));
        } else {
          cli.terminal.out(explanationText(found, (colour, text) => painted(cli.terminal, colour, text)));
        }
        for (const right of missing)
          cli.terminal.note(`note: more could be said if you were allowed to ${right} (docs/reference/cli.md#rights)`);
        return EXIT.ok;
      }),
  );
}

/** `web-0` or `pod/web-0`, as kubectl takes it. */
function podName(text: string): string {
  const [kind, name] = text.includes('/') ? text.split('/', 2) : ['pod', text];
  if (name !== undefined && name !== '' && ['pod', 'pods', 'po'].includes(kind ?? '')) return name;
  throw new CliError(`${text} is not the name of a pod`, {
    exitCode: EXIT.usage,
    fix: 'name one pod, such as web-0 or pod/web-0',
  });
}
