import { KubeClient } from '../kube/client.ts';
import { isForbidden } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import type { Resource } from '../kube/resource.ts';
import { get, list, type ListOptions, type ObjectRef } from '../kube/verbs.ts';
import { programVersion } from '../version.ts';
import { CliError, explained, isNotThere } from './cli-error.ts';
import { withProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';
import { viewerAccess, type ClusterFlags } from './viewer-access.ts';

/** What could not be read for want of a right: `list nodes`. */
export class MissingRight {
  readonly right: string;

  constructor(right: string) {
    this.right = right;
  }
}

/** Reads and writes one cluster as the person at the terminal, and says in words what that person may not do. */
export class Viewer {
  readonly client: KubeClient;
  /** Of the kubeconfig; '' in a pod. */
  readonly context: string;
  /** Of the context; `default` where it names none. */
  readonly namespace: string;
  readonly #terminal: Terminal;

  private constructor(client: KubeClient, context: string, namespace: string, terminal: Terminal) {
    this.client = client;
    this.context = context;
    this.namespace = namespace;
    this.#terminal = terminal;
  }

  /** Throws CliError. Nothing is sent yet, but a credential plugin may run. */
  static async connect(flags: ClusterFlags, terminal: Terminal): Promise<Viewer> {
    try {
      const { access, context, namespace } = await withProgress(
        terminal,
        'waiting for the credentials of the kubeconfig',
        viewerAccess(flags, terminal.env),
      );
      const client = new KubeClient({
        cluster: context === '' ? 'host' : context,
        ...access,
        userAgent: `kubectl-spillway/${programVersion()}`,
      });
      return new Viewer(client, context, namespace ?? 'default', terminal);
    } catch (error) {
      throw explained(error, 'read the kubeconfig', flags.context ?? '');
    }
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  /** Throws CliError, which names the right that is missing. */
  async list<T extends KubeObject>(resource: Resource, options: ListOptions = {}): Promise<T[]> {
    const what = `list ${inWords(resource)}${options.namespace === undefined ? '' : ` in namespace ${options.namespace}`}`;
    return await this.ask(what, async (signal) => (await list<T>(this.client, resource, { ...options, signal })).items);
  }

  /** The same where the answer is worth something without. */
  async tryList<T extends KubeObject>(resource: Resource, options: ListOptions = {}): Promise<T[] | MissingRight> {
    return await orMissing(this.list<T>(resource, options));
  }

  /** Throws CliError; of a missing object with exit code `notFound`. */
  async get<T extends KubeObject>(resource: Resource, ref: ObjectRef): Promise<T> {
    const what = `get ${inWords(resource)}${ref.namespace === undefined ? '' : ` in namespace ${ref.namespace}`}`;
    return await this.ask(what, async (signal) => await get<T>(this.client, resource, ref, { signal }));
  }

  /** Undefined when there is none. */
  async tryGet<T extends KubeObject>(resource: Resource, ref: ObjectRef): Promise<T | MissingRight | undefined> {
    try {
      return await orMissing(this.get<T>(resource, ref));
    } catch (error) {
      if (isNotThere(error)) return undefined;
      throw error;
    }
  }

  /** Does `work`, and explains what goes wrong. `what` is a verb and its object, such as `list nodes`. */
  async ask<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await withProgress(this.#terminal, `waiting for the answer to ${what}`, work(this.#terminal.signal));
    } catch (error) {
      throw explained(error, what, this.context);
    }
  }
}

/** `memberclusters.spillway.dev`, as roles name it. */
export function inWords({ group, plural }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

async function orMissing<T>(work: Promise<T>): Promise<T | MissingRight> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof CliError && isForbidden(error.cause)) {
      return new MissingRight(/^you may not (.*?) in the cluster/.exec(error.message)?.[1] ?? 'do that');
    }
    throw error;
  }
}
