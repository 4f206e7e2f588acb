import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** The parts of an audit.k8s.io/v1 Event at Metadata level that tests look at. */
export interface AuditEvent {
  auditID: string;
  stage: string;
  requestURI: string;
  verb: string;
  user: { username: string; groups?: string[] };
  userAgent?: string;
  objectRef?: {
    resource: string;
    namespace?: string;
    name?: string;
    subresource?: string;
    apiGroup?: string;
    uid?: string;
  };
  responseStatus?: { code?: number; reason?: string };
  requestReceivedTimestamp: string;
  stageTimestamp: string;
}

/**
 * What an API server writes down of requests. Tests ask again and again while it grows to many megabytes: of each line they
 * pay once.
 */
export class AuditLog {
  readonly #file: string;
  readonly #events: AuditEvent[] = [];
  /** Bytes of the file that are read. */
  #read = 0;
  /** The beginning of a line that was still being written. */
  #rest = Buffer.alloc(0);

  constructor(file: string) {
    this.#file = file;
  }

  /** Every line so far, oldest first. */
  events(): AuditEvent[] {
    const bytes = Buffer.concat([this.#rest, this.#news()]);
    const end = bytes.lastIndexOf('\n') + 1;
    this.#rest = bytes.subarray(end);
    for (const line of bytes.subarray(0, end).toString('utf8').split('\n').slice(0, -1)) {
      this.#events.push(JSON.parse(line) as AuditEvent);
    }
    return [...this.#events];
  }

  #news(): Buffer {
    const file = openSync(this.#file, 'r');
    try {
      const news = Buffer.alloc(Math.max(0, fstatSync(file).size - this.#read));
      const count = readSync(file, news, 0, news.length, this.#read);
      this.#read += count;
      return news.subarray(0, count);
    } finally {
      closeSync(file);
    }
  }
}
