import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AuditLog } from '../../hack/audit-log.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'audit-log-'));
  file = join(folder, 'audit.log');
  writeFileSync(file, '');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const idsOf = (log: AuditLog): string[] => log.events().map(({ auditID }) => auditID);

test('each line is told once it is whole, and stays', () => {
  const log = new AuditLog(file);
  expect(idsOf(log)).toEqual([]);
  appendFileSync(file, '{"auditID":"a"}\n{"auditID":"b"}\n{"audit');
  expect(idsOf(log)).toEqual(['a', 'b']);
  expect(idsOf(log)).toEqual(['a', 'b']);
  appendFileSync(file, 'ID":"c"}\n');
  expect(idsOf(log)).toEqual(['a', 'b', 'c']);
});

test('a letter of several bytes may be half written', () => {
  const log = new AuditLog(file);
  const bytes = Buffer.from('{"auditID":"ü"}\n');
  appendFileSync(file, bytes.subarray(0, 13));
  expect(idsOf(log)).toEqual([]);
  appendFileSync(file, bytes.subarray(13));
  expect(idsOf(log)).toEqual(['ü']);
});

test('what callers do to their list is theirs', () => {
  const log = new AuditLog(file);
  appendFileSync(file, '{"auditID":"a"}\n');
  log.events().pop();
  expect(idsOf(log)).toEqual(['a']);
});
