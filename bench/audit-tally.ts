import { closeSync, existsSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { AuditEvent } from '../hack/audit-log.ts';

/** How often each kind of request was made, by `verb resource[/subresource]`. */
export type RequestCounts = Map<string, number>;

/** An API server's audit log that holds the requests of some users only, so that writing it costs next to nothing. */
export class AuditTally {
  /** Flags for the API server. */
  readonly flags: Record<string, string>;
  readonly #log: string;
  /** Bytes of the log that were counted before. */
  #from = 0;

  /** `uncounted`: namespaces whose requests are left out. */
  constructor(dir: string, cluster: string, users: readonly string[], uncounted: readonly string[] = []) {
    const policy = join(dir, `audit-policy-${cluster}.yaml`);
    this.#log = join(dir, `audit-${cluster}.log`);
    writeFileSync(
      policy,
      stringify({
        apiVersion: 'audit.k8s.io/v1',
        kind: 'Policy',
        omitStages: ['RequestReceived', 'ResponseStarted'],
        rules: [
          ...(uncounted.length === 0 ? [] : [{ level: 'None', namespaces: uncounted }]),
          { level: 'Metadata', users },
          { level: 'None' },
        ],
      }),
    );
    this.flags = { 'audit-policy-file': policy, 'audit-log-path': this.#log, 'audit-log-maxsize': '4000' };
  }

  /** Requests of some users that ended since the last call. The log is written before the answer is sent. */
  take(users: readonly string[]): RequestCounts {
    const counts: RequestCounts = new Map();
    for (const line of this.#newLines()) {
      const event = JSON.parse(line) as AuditEvent;
      if (!users.includes(event.user.username)) continue;
      const { resource = 'other', subresource } = event.objectRef ?? {};
      const key = `${event.verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  }

  #newLines(): string[] {
    if (!existsSync(this.#log)) return [];
    const bytes = Buffer.alloc(statSync(this.#log).size - this.#from);
    const file = openSync(this.#log, 'r');
    try {
      readSync(file, bytes, 0, bytes.length, this.#from);
    } finally {
      closeSync(file);
    }
    const end = bytes.lastIndexOf(10) + 1;
    this.#from += end;
    return bytes.toString('utf8', 0, end).split('\n').slice(0, -1);
  }
}
