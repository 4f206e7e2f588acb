import { once } from 'node:events';
import { InvalidArgumentError, type Command } from 'commander';
import type { Cli } from './cli.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import {
  allNamespacesFlag,
  type AllNamespacesFlags,
  clusterFlags,
  systemNamespaceFlag,
  type SystemFlags,
} from './flags.ts';
import type { Terminal } from './terminal.ts';
import { Live } from './ui/live.ts';
import { readPageFacts } from './ui/page-facts.ts';
import { pageFiles } from './ui/page-files.ts';
import { servePage } from './ui/page-server.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { Viewer } from './viewer.ts';
import { explain } from './why/explain.ts';
import { readPodFacts } from './why/read-pod-facts.ts';

interface Flags extends ClusterFlags, SystemFlags, AllNamespacesFlags {
  namespace?: string;
  port: number;
}

export function addUi(program: Command, cli: Cli): void {
  const command = program
    .command('ui')
    .summary('a page in your browser: members, where pods are and go, and why; changes nothing')
    .description(
      'Serves a page on 127.0.0.1 until Ctrl-C, and prints its address: members and how full they are, pods on their way, what guards hold back, ' +
        'where the pods of a workload are and were, and why a pod is where it is. It reads with your kubeconfig and your rights, changes ' +
        'nothing, and needs no internet. Whoever has the address sees what you may see: keep it to yourself.',
    )
    .option('-n, --namespace <name>', 'only pods of this namespace (default: of all)')
    .option('--port <port>', 'port on 127.0.0.1 (default: one that is free)', portNumber, 0);
  allNamespacesFlag(command, 'pods of all namespaces (the default)');
  systemNamespaceFlag(clusterFlags(command)).action(
    async (flags: Flags) => await cli.run(async () => await serve(cli.terminal, flags)),
  );
}

async function serve(terminal: Terminal, flags: Flags): Promise<ExitCode> {
  // Nobody wants to read there for hours what is waited for.
  const quiet: Terminal = {
    out: (text) => terminal.out(text),
    note: () => undefined,
    isTty: terminal.isTty,
    env: terminal.env,
    signal: terminal.signal,
    now: () => terminal.now(),
  };
  const { systemNamespace } = flags;
  const namespace = flags.allNamespaces === true ? '' : (flags.namespace ?? '');
  const host = await Viewer.connect(flags, quiet);
  try {
    const live = new Live(
      async () => await readPageFacts(host, { namespace, systemNamespace }),
      () => terminal.now(),
    );
    // What cannot be read at all is told here and now.
    const { missing } = await live.state();
    const page = await servePage(flags.port, pageFiles(), {
      state: async () => await live.state(),
      workload: async (key) => await live.workload(key),
      why: async (pod) => {
        const { facts, missing } = await readPodFacts(host, pod, systemNamespace, terminal.now());
        return { explanation: explain(facts), missing };
      },
    });
    try {
      const where = host.context === '' ? '' : ` of context ${host.context}`;
      terminal.out(`Open this page${where}, which only reads, as you; Ctrl-C ends it:\n${page.url}\n`);
      for (const right of missing) terminal.note(`note: parts stay empty, as you may not ${right}`);
      if (!terminal.signal.aborted) await once(terminal.signal, 'abort');
      return EXIT.interrupted;
    } finally {
      await page.close();
    }
  } finally {
    await host.close();
  }
}

function portNumber(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('It has to be a number from 0 to 65535.');
}
