import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ClusterFlags } from './viewer-access.ts';
import { FORMATS, formatOf, type Format } from './output.ts';

/** Flags are added to each verb alike, so that they may stand anywhere behind it, as with kubectl. */
export function clusterFlags(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'kubeconfig to use (default: $KUBECONFIG, then ~/.kube/config)')
    .option('--context <name>', 'context within the kubeconfig (default: its current one)');
}

export interface NamespaceFlags extends ClusterFlags {
  namespace?: string;
}

export function namespaceFlags(command: Command): Command {
  return command.option('-n, --namespace <name>', 'namespace (default: that of the context)');
}

export interface AllNamespacesFlags {
  allNamespaces?: boolean;
}

/** As with kubectl, it comes before -n. */
export function allNamespacesFlag(command: Command, what: string): Command {
  return command.option('-A, --all-namespaces', `${what}, whatever -n says`);
}

export interface SystemFlags {
  systemNamespace: string;
}

/** Where Spillway itself lives, by manifests/. */
export function systemNamespaceFlag(command: Command): Command {
  return command.option('--system-namespace <name>', 'namespace in which Spillway runs', 'spillway-system');
}

export interface OutputFlags {
  output: Format;
  /** False with --no-headers. */
  headers: boolean;
}

export function outputFlags(command: Command, formats: readonly Format[] = FORMATS, usual: Format = 'table'): Command {
  const output = new Option('-o, --output <format>', `output format: ${formats.join(', ')}`)
    .default(usual)
    .argParser((text) => formatOf(text, formats));
  const tabular = formats.includes('wide');
  const withOutput = command.addOption(output);
  return tabular ? withOutput.option('--no-headers', 'print no column headers') : withOutput;
}

export interface WatchFlags {
  watch?: boolean;
}

export function watchFlag(command: Command): Command {
  return command.option('-w, --watch', 'go on and show what changes, until Ctrl-C');
}

/** `none`: it is done. `client`: nothing is sent. `server`: the API server judges it and stores nothing. */
export type DryRun = 'none' | 'client' | 'server';

export interface DryRunFlags {
  dryRun: DryRun;
}

/** @param does what the verb does then. */
export function dryRunFlag(command: Command, does = 'only show what would be done'): Command {
  return command.addOption(
    new Option('--dry-run <mode>', `${does}: client (send nothing) or server (let the API server judge it)`)
      .choices(['none', 'client', 'server'])
      .default('none'),
  );
}

/** For the options of a write. */
export function dryRunOption(mode: DryRun): { dryRun: boolean } {
  return { dryRun: mode === 'server' };
}

/** What kubectl adds to what it says was done. */
export function dryRunWords(mode: DryRun): string {
  return mode === 'none' ? '' : mode === 'server' ? ' (server dry run)' : ' (dry run)';
}

/** A flag's argument, in s. */
export function seconds(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 86_400)) throw new InvalidArgumentError('must be a number of seconds, at most 86400');
  return value;
}
