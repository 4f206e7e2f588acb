import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../kube/errors.ts';
import { CONFIG_MAPS, resourcePath } from '../kube/resource.ts';

const PERIODS = { periodMs: 30_000, retryMs: 2_000 };
const DEADLINE_MS = 10_000;
const CONFIG_MAP_PATH = resourcePath(CONFIG_MAPS, 'kube-system', 'extension-apiserver-authentication');

/** What reading the ConfigMap needs of the host's client. */
export interface ReadApi {
  request<T = unknown>(request: { path: string; deadlineMs: number; signal?: AbortSignal }): Promise<T>;
}

/**
 * The authorities whose client certificates an HTTPS server accepts, read again every 30 s so that a rotation
 * needs no restart. What was read last stays in force while a source cannot be read.
 */
export class ClientCa {
  readonly #read: (signal: AbortSignal) => Promise<string>;
  readonly #source: string;
  readonly #logger: Logger;
  readonly #periods: typeof PERIODS;
  #bundle: string | undefined;

  private constructor(
    source: string,
    read: (signal: AbortSignal) => Promise<string>,
    logger: Logger,
    periods: typeof PERIODS,
  ) {
    this.#source = source;
    this.#read = read;
    this.#logger = logger;
    this.#periods = periods;
  }

  static fromFile(file: string, logger: Logger, periods = PERIODS): ClientCa {
    return new ClientCa(`file ${file}`, (signal) => readFile(file, { encoding: 'utf8', signal }), logger, periods);
  }

  /**
   * The bundle that the host's API server itself publishes. Needs the right that the Role
   * `kube-system/extension-apiserver-authentication-reader` grants.
   */
  static fromHost(host: ReadApi, logger: Logger, periods = PERIODS): ClientCa {
    const read = async (signal: AbortSignal): Promise<string> => {
      const map = await host.request<{ data?: Record<string, string> }>({
        path: CONFIG_MAP_PATH,
        deadlineMs: DEADLINE_MS,
        signal,
      });
      const bundle = map.data?.['client-ca-file'];
      if (bundle === undefined || bundle === '') {
        throw new Error('it has no key client-ca-file; does the API server run with --client-ca-file?');
      }
      return bundle;
    };
    const source = 'ConfigMap kube-system/extension-apiserver-authentication of the host';
    return new ClientCa(source, read, logger, periods);
  }

  /** PEM bundle; undefined until it was read once: then no client certificate is trusted. */
  current(): string | undefined {
    return this.#bundle;
  }

  /** Reads once; throws what went wrong. */
  async load(signal: AbortSignal): Promise<void> {
    this.#bundle = await this.#read(signal);
  }

  /** Keeps the bundle fresh until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let failing = false;
    while (!signal.aborted) {
      try {
        await this.load(signal);
        failing = false;
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        if (!failing) {
          this.#logger.warn(
            { source: this.#source, error: describeError(error) },
            this.#bundle === undefined
              ? 'the client CA bundle cannot be read: client certificates are refused until it can'
              : 'the client CA bundle cannot be read: the one read before stays in force',
          );
        }
        failing = true;
      }
      const { periodMs, retryMs } = this.#periods;
      await delay(failing ? retryMs : periodMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
