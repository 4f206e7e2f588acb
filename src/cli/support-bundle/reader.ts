import { childSignal } from '../../kube/child-signal.ts';
import { ApiError, describeError, isForbidden } from '../../kube/errors.ts';
import type { KubeRequest } from '../../kube/request.ts';
import { resourcePath } from '../../kube/resource.ts';
import { cleanText } from '../../kube/clean-text.ts';
import { isJsonObject, ownField } from '../../kube/json-equal.ts';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';
import { inWords, type Viewer } from '../viewer.ts';
import { allowedPart } from './allowed.ts';
import type { Contents } from './contents.ts';
import { harmlessLines } from './harmless-text.ts';
import { allowedOf, type ShownKind } from './shown-kinds.ts';

/** Objects of one kind. */
const MOST_OBJECTS = 1_000;
/** For one answer, in ms. */
const ANSWER_MS = 15_000;
const LONGEST_WHY = 500;

/** Reads what the viewer may see into a bundle: what cannot be read is written down, and the rest goes on. */
export class BundleReader {
  readonly #host: Viewer;
  readonly #terminal: Terminal;
  readonly #contents: Contents;
  readonly #signal: AbortSignal;

  /** @param deadline aborts when there is no time left. */
  constructor(host: Viewer, terminal: Terminal, contents: Contents, deadline: AbortSignal) {
    this.#host = host;
    this.#terminal = terminal;
    this.#contents = contents;
    this.#signal = childSignal(terminal.signal, deadline).signal;
  }

  /** Does `work`, and writes down why it could not be done. Rejects when the person wants to stop, and else never. */
  async attempt<T>(what: string, right: string, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.#terminal.signal.throwIfAborted();
    if (this.#signal.aborted) {
      this.#contents.omit(what, 'there was no time left for it (--timeout)');
      return undefined;
    }
    try {
      return await this.#untilOver(work(this.#signal));
    } catch (error) {
      this.#terminal.signal.throwIfAborted();
      this.#contents.omit(what, this.#signal.aborted ? 'it took too long (--timeout)' : whyNot(error, right));
      return undefined;
    }
  }

  /** What is allowed of the objects of a kind; answers with them as they are. */
  async objects(kind: ShownKind, systemNamespace: string): Promise<readonly unknown[]> {
    const { what, file, resource, own, labelSelector, fieldSelector } = kind;
    const namespace = own === true ? systemNamespace : undefined;
    const right = `list ${inWords(resource)}${namespace === undefined ? '' : ` in namespace ${namespace}`}`;
    const answer = await this.attempt(what, right, async (signal) => {
      const path = resourcePath(resource, namespace);
      const query = { labelSelector, fieldSelector, limit: MOST_OBJECTS };
      return await this.#host.client.request({ path, query, signal, deadlineMs: ANSWER_MS });
    });
    if (answer === undefined) return [];
    const items = isJsonObject(answer) ? ownField(answer, 'items') : undefined;
    const metadata = isJsonObject(answer) ? ownField(answer, 'metadata') : undefined;
    const more = isJsonObject(metadata) ? ownField(metadata, 'continue') : undefined;
    const objects: unknown[] = Array.isArray(items) ? items : [];
    const allowed = allowedOf(kind);
    this.#contents.addJson(
      file,
      what,
      objects.map((object) => allowedPart(object, allowed)),
      { cut: typeof more === 'string' && more !== '' },
    );
    return objects;
  }

  /** The end of a text that is made of lines, such as a log. */
  async lines(
    path: string,
    what: string,
    right: string,
    request: Pick<KubeRequest, 'path' | 'query'>,
    maxBytes: number,
  ): Promise<void> {
    const text = await this.attempt(
      what,
      right,
      async (signal) => await this.#host.client.text({ ...request, signal, deadlineMs: ANSWER_MS, retry: false }),
    );
    if (text === undefined) return;
    const kept = harmlessLines(text, maxBytes);
    this.#contents.add(path, what, kept, { cut: Buffer.byteLength(text) > maxBytes });
  }

  async #untilOver<T>(work: Promise<T>): Promise<T> {
    const signal = this.#signal;
    let stop: (() => void) | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      stop = () => reject(new Error('there was no time left'));
      signal.addEventListener('abort', stop, { once: true });
    });
    try {
      return await Promise.race([work, over]);
    } finally {
      if (stop !== undefined) signal.removeEventListener('abort', stop);
    }
  }
}

function whyNot(error: unknown, right: string): string {
  const cause = error instanceof CliError ? (error.cause ?? error) : error;
  if (isForbidden(cause)) return `you may not ${right}`;
  if (cause instanceof ApiError && cause.code === 404) return 'there is nothing of that kind';
  return cleanText(describeError(cause), LONGEST_WHY);
}
