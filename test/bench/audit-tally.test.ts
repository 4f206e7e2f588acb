import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { AuditTally } from '../../bench/audit-tally.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'audit-tally-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function line(username: string, verb: string, resource: string, subresource?: string): string {
  return `${JSON.stringify({ verb, user: { username }, objectRef: { resource, subresource } })}\n`;
}

describe('AuditTally', () => {
  it('counts each request of a user once, by verb, resource and subresource', () => {
    const tally = new AuditTally(dir, 'host', ['us', 'them']);
    const log = tally.flags['audit-log-path'] ?? '';
    expect([...tally.take(['us'])]).toEqual([]);
    appendFileSync(log, line('us', 'create', 'pods') + line('them', 'create', 'pods'));
    appendFileSync(log, line('us', 'create', 'pods') + line('us', 'patch', 'pods', 'status'));
    expect(Object.fromEntries(tally.take(['us']))).toEqual({ 'create pods': 2, 'patch pods/status': 1 });
    expect([...tally.take(['us'])]).toEqual([]);
  });

  it('leaves a line that is still being written for the next time', () => {
    const tally = new AuditTally(dir, 'host', ['us']);
    const log = tally.flags['audit-log-path'] ?? '';
    const second = line('us', 'delete', 'pods');
    appendFileSync(log, line('us', 'create', 'pods') + second.slice(0, 10));
    expect(Object.fromEntries(tally.take(['us']))).toEqual({ 'create pods': 1 });
    appendFileSync(log, second.slice(10));
    expect(Object.fromEntries(tally.take(['us']))).toEqual({ 'delete pods': 1 });
  });

  it('has the API server record the given users only', () => {
    const tally = new AuditTally(dir, 'host', ['us']);
    const policy = parse(readFileSync(tally.flags['audit-policy-file'] ?? '', 'utf8')) as { rules: object[] };
    expect(policy.rules).toEqual([{ level: 'Metadata', users: ['us'] }, { level: 'None' }]);
  });
});
