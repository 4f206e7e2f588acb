#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
import { Command, InvalidArgumentError } from 'commander';
import { stringify } from 'yaml';
import { loadConfig } from './config.ts';
import { programVersion } from './version.ts';

interface ManagerFlags {
  config?: string;
  kubeconfig?: string;
  context?: string;
  namespace?: string;
  components?: string[];
  nodeAddress?: string;
  hostIdentity?: string;
  bindAddress?: string;
  firstPort?: number;
  httpAddress?: string;
  httpPort?: number;
  schedulerAddress?: string;
  schedulerPort?: number;
  logLevel?: string;
}

const program = new Command('spillway').description('Turns other Kubernetes clusters into nodes of yours.');

program
  .command('version')
  .description('print the version')
  .action(() => console.log(`spillway ${programVersion()}`));

program
  .command('config')
  .description('what a configuration file of the manager says')
  .command('check')
  .description(
    'say what is wrong with a configuration file, or print it with every default; starts nothing and asks nobody',
  )
  .requiredOption('--config <file>', 'configuration file (YAML)')
  .action((flags: { config: string }) => console.log(stringify(loadConfig(flags.config, {})).trimEnd()));

program
  .command('manager')
  .description('run every component against the host cluster until SIGTERM')
  .option('--config <file>', 'configuration file (YAML)')
  .option('--kubeconfig <file>', 'kubeconfig of the host cluster (default: $KUBECONFIG, then in-cluster)')
  .option('--context <name>', 'context within the kubeconfig')
  .option('--namespace <name>', 'namespace of the Leases that replicas share members through')
  .option('--components <names>', 'comma-separated: members, scheduler (default: all)', (text) => text.split(','))
  .option('--node-address <ip>', 'address under which the host API server reaches this process')
  .option('--host-identity <kind>', 'whom virtual nodes are towards the host: Auto, NodeCertificate, ServiceAccount')
  .option('--bind-address <ip>', 'address that virtual nodes listen on')
  .option('--first-port <port>', 'first of up to 1000 ports for virtual nodes (0: any free port)', port)
  .option('--scheduler-address <ip>', 'address on which schedulers are answered')
  .option('--scheduler-port <port>', 'port of the same (0: any free port)', port)
  .option('--http-address <ip>', 'address of /metrics, /healthz and /readyz')
  .option('--http-port <port>', 'port of the same (0: any free port)', port)
  .option('--log-level <level>', 'trace, debug, info, warn or error')
  .action(async (flags: ManagerFlags) => {
    const config = loadConfig(flags.config, {
      kubeconfig: flags.kubeconfig,
      context: flags.context,
      namespace: flags.namespace,
      components: flags.components,
      nodeAddress: flags.nodeAddress,
      hostIdentity: flags.hostIdentity,
      logLevel: flags.logLevel,
      kubelet: { bindAddress: flags.bindAddress, firstPort: flags.firstPort },
      scheduler: { bindAddress: flags.schedulerAddress, port: flags.schedulerPort },
      http: { bindAddress: flags.httpAddress, port: flags.httpPort },
    });
    const stop = new AbortController();
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      process.on(name, () => {
        // A second signal means now.
        if (stop.signal.aborted) process.exit(1);
        stop.abort(new Error(`received ${name}`));
      });
    }
    endInOrderOnBugs(stop);
    // Caches live long and change little: by default the heap would grow to nearly three times what is in use before
    // its garbage is collected. At 3,000 pods this takes a third off the peak for a few per cent of the CPU time.
    setFlagsFromString('--heap-growing-percent=40');
    const { runManager } = await import('./manager/manager.ts');
    await runManager(config, stop.signal);
  });

/** How long an end in order may take after a mistake of ours, in ms. */
const ORDERLY_END_MS = 10_000;

/**
 * The last resort: what nobody caught is a mistake in Spillway, and nobody knows what it left half done. Leases are given back
 * and all goes on in the next process; the exit code is 1.
 */
function endInOrderOnBugs(stop: AbortController): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      const what = error instanceof Error ? (error.stack ?? error.message) : `a ${typeof error} was thrown`;
      console.error(`spillway: ${event}, which is a mistake in Spillway; please report it: ${what}`);
      process.exitCode = 1;
      if (stop.signal.aborted) return;
      stop.abort(new Error(`ended by an ${event}`));
      setTimeout(() => process.exit(1), ORDERLY_END_MS).unref();
    });
  }
}

function port(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 65535)
    throw new InvalidArgumentError('must be a port number, 0 to 65535');
  return value;
}

try {
  await program.parseAsync();
} catch (error) {
  console.error(`spillway: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
