import { describe, expect, test } from 'vitest';
import { logOptions } from '../../src/kubelet/log-options.ts';
import { Query } from '../../src/kubelet/query.ts';

function read(raw: string): unknown {
  const query = Query.parse(raw);
  if (query === undefined) {
    throw new Error(`malformed: ${raw}`);
  }
  const options = logOptions(query);
  return 'query' in options ? options.query : options.code;
}

describe('log options', () => {
  test.each([
    ['', {}],
    ['follow=true&previous=true&timestamps=true', { follow: 'true', previous: 'true', timestamps: 'true' }],
    ['follow=false&previous=0&timestamps=FALSE', {}],
    ['follow=1&previous=', { follow: 'true', previous: 'true' }],
    ['tailLines=0', { tailLines: '0' }],
    ['tailLines=10', { tailLines: '10' }],
    ['tail=10', { tailLines: '10' }],
    ['tail=all&tailLines=5', {}],
    ['limitBytes=1', { limitBytes: '1' }],
    ['sinceSeconds=9223372036854775807', { sinceSeconds: '9223372036854775807' }],
    ['sinceTime=2026-11-20T10:11:12Z', { sinceTime: '2026-11-20T10:11:12Z' }],
    ['sinceTime=2026-11-20T10%3A11%3A12%2B02%3A00', { sinceTime: '2026-11-20T10:11:12+02:00' }],
    ['stream=All', {}],
    ['stream=Stderr', { stream: 'Stderr' }],
    ['unknown=1&__proto__=2', {}],
  ])('%s', (raw, expected) => {
    expect(read(raw)).toEqual(expected);
  });

  test.each([
    ['tailLines=-1', 422],
    ['limitBytes=0', 422],
    ['sinceSeconds=0', 422],
    ['sinceSeconds=1&sinceTime=2026-11-20T10:11:12Z', 422],
    ['stream=stdout', 422],
    ['stream=Stdout&tailLines=1', 422],
    ['tailLines=', 400],
    ['tailLines=x', 400],
    ['tailLines=1.5', 400],
    ['tailLines=0x10', 400],
    ['tailLines=9223372036854775808', 400],
    ['sinceTime=yesterday', 400],
    ['sinceTime=2026-13-45T10:11:12Z', 400],
    ['sinceTime=2026-11-20', 400],
    ['limitBytes=%ff', 400],
  ])('%s is refused with %d', (raw, code) => {
    expect(read(raw)).toBe(code);
  });
});
