import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { checkKeyed, type KeyedCertificate } from '../kube/keyed-certificate.ts';
import type { ServingCertificates } from './certificates.ts';

const PERIOD_MS = 10_000;

/**
 * A serving certificate from two files, read again every 10 s. Files are compared by content, because a mounted Secret
 * changes by swapping a symbolic link. While the pair on disk does not fit together, the one before stays in use.
 */
export class FileCertificates implements ServingCertificates {
  readonly #certFile: string;
  readonly #keyFile: string;
  readonly #logger: Logger;
  readonly #periodMs: number;
  #current: KeyedCertificate;
  #complained = '';

  private constructor(o: FileCertificatesOptions, current: KeyedCertificate) {
    this.#certFile = o.certFile;
    this.#keyFile = o.keyFile;
    this.#logger = o.logger;
    this.#periodMs = o.periodMs ?? PERIOD_MS;
    this.#current = current;
  }

  /** Throws when the files cannot be used: better no start than an unusable port. */
  static async open(o: FileCertificatesOptions): Promise<FileCertificates> {
    return new FileCertificates(o, await readPair(o.certFile, o.keyFile));
  }

  current(): KeyedCertificate {
    return this.#current;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(this.#periodMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) {
        await this.#reload();
      }
    }
  }

  async #reload(): Promise<void> {
    try {
      const next = await readPair(this.#certFile, this.#keyFile);
      this.#complained = '';
      if (next.cert !== this.#current.cert || next.key !== this.#current.key) {
        this.#current = next;
        this.#logger.info({ file: this.#certFile }, 'serving certificate read again');
      }
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      if (words !== this.#complained) {
        this.#complained = words;
        this.#logger.warn(
          { file: this.#certFile, error: words },
          'serving certificate cannot be used: the one read before stays in use',
        );
      }
    }
  }
}

export interface FileCertificatesOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly logger: Logger;
  /** Milliseconds between two looks. */
  readonly periodMs?: number;
}

async function readPair(certFile: string, keyFile: string): Promise<KeyedCertificate> {
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  const pair = { cert, key };
  checkKeyed(pair);
  return pair;
}
