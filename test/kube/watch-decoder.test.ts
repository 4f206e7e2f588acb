import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WatchDecoder, type WatchEvent } from '../../src/kube/watch-decoder.ts';

const line = (name: string): string => `{"type":"ADDED","object":{"metadata":{"name":${JSON.stringify(name)}}}}\n`;

describe('watch decoder', () => {
  it('finds the same events however the bytes are cut', () => {
    const bytes = Buffer.from(['a', 'ü'.repeat(50), '日本', '', 'z\n"'].map((name) => line(name)).join(''));
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 30 }), (cuts) => {
        const names: unknown[] = [];
        const decoder = new WatchDecoder();
        const onEvent = (event: WatchEvent): void => {
          names.push((event.object as { metadata: { name: string } }).metadata.name);
        };
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        for (const [i, start] of at.entries()) {
          decoder.push(bytes.subarray(start, at[i + 1] ?? bytes.length), onEvent);
        }
        expect(names).toEqual(['a', 'ü'.repeat(50), '日本', '', 'z\n"']);
      }),
    );
  });

  it('does not copy a large object anew for every piece of it', () => {
    const bytes = Buffer.from(line('x'.repeat(16 * 1024 * 1024)));
    const decoder = new WatchDecoder();
    let events = 0;
    const started = performance.now();
    for (let at = 0; at < bytes.length; at += 1024) {
      decoder.push(bytes.subarray(at, at + 1024), () => events++);
    }
    expect(events).toBe(1);
    expect(performance.now() - started).toBeLessThan(10_000); // copying 130 GB would take far longer
  });

  it.each(['<html>', '{}', '[]', 'null', '{"type":"MOVED","object":{}}', '{"type":"ADDED"}', '{"type":"ADDED","obj'])(
    'refuses the line %s',
    (text) => {
      const decoder = new WatchDecoder();
      expect(() => decoder.push(Buffer.from(`${text}\n`), () => undefined)).toThrow(SyntaxError);
    },
  );

  it('ignores empty lines', () => {
    const decoder = new WatchDecoder();
    let events = 0;
    decoder.push(Buffer.from(`\n${line('a')}\n`), () => events++);
    expect(events).toBe(1);
  });
});
