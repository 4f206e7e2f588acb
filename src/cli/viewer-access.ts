import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { hostAccess, type Access } from '../kube/credentials.ts';
import { CredentialsError } from '../kube/errors.ts';
import { contextNames, nonEmpty, readKubeconfig } from '../kube/kubeconfig.ts';

/** Which cluster, as whom: kubectl's own flags. */
export interface ClusterFlags {
  kubeconfig?: string | undefined;
  context?: string | undefined;
}

/** The viewer's way into a cluster. */
export interface ViewerAccess {
  access: Access;
  /** Of the kubeconfig; '' in a pod. */
  context: string;
  /** That the context names; undefined: none. */
  namespace: string | undefined;
}

/** Throws {@link CredentialsError}. */
export async function viewerAccess(flags: ClusterFlags, env: NodeJS.ProcessEnv): Promise<ViewerAccess> {
  const paths = kubeconfigPaths(flags, env);
  if (paths.length === 0) {
    // A pod has no kubeconfig; hostAccess says so where this is none.
    return { access: await hostAccess({ env }), context: '', namespace: undefined };
  }
  const { path, text, context } = chosenFile(paths, flags.context);
  const { context: name, namespace } = readKubeconfig(text, context);
  return { access: await hostAccess({ kubeconfig: path, context: name, env }), context: name, namespace };
}

/** Names of all contexts, for completion. Files that cannot be read have none. */
export function viewerContexts(flags: ClusterFlags, env: NodeJS.ProcessEnv): string[] {
  const texts = kubeconfigPaths(flags, env).map((path) => read(path) ?? '');
  return [...new Set(texts.flatMap((text) => contextsIn(text).names))];
}

/** kubectl's order: --kubeconfig, the files of $KUBECONFIG that are there, ~/.kube/config if it is there. */
function kubeconfigPaths({ kubeconfig }: ClusterFlags, env: NodeJS.ProcessEnv): string[] {
  if (kubeconfig !== undefined) return [resolve(kubeconfig)];
  const named = (nonEmpty(env['KUBECONFIG']) ?? '').split(delimiter).filter((path) => path !== '');
  if (named.length === 1) return named.map((path) => resolve(path));
  if (named.length > 1) return named.filter((path) => existsSync(path)).map((path) => resolve(path));
  const usual = join(nonEmpty(env['HOME']) ?? homedir(), '.kube', 'config');
  return existsSync(usual) ? [usual] : [];
}

/**
 * Of several files the first that has the context counts, as with kubectl; its cluster and user have to be in the same file.
 * Without --context it is the first current-context that a file names.
 */
function chosenFile(paths: readonly string[], wanted: string | undefined) {
  const files = paths.map((path) => {
    const text = read(path);
    if (text === undefined) throw new CredentialsError('FileUnreadable', `kubeconfig ${path} cannot be read`);
    return { path, text, ...contextsIn(text) };
  });
  const context = wanted ?? files.find(({ current }) => current !== undefined)?.current;
  const file = files.find(({ names }) => context === undefined || names.includes(context)) ?? files[0];
  if (file === undefined) throw new CredentialsError('FileUnreadable', 'no file of KUBECONFIG is there');
  return { path: file.path, text: file.text, context };
}

function contextsIn(text: string): { names: string[]; current: string | undefined } {
  try {
    return contextNames(text);
  } catch {
    return { names: [], current: undefined };
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
