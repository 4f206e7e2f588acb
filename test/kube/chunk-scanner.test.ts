import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChunkScanner } from '../../src/kube/chunk-scanner.ts';

const encode = (chunks: readonly Uint8Array[], end = '0\r\n\r\n'): Buffer =>
  Buffer.concat([
    ...chunks.flatMap((data) => [Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]),
    Buffer.from(end),
  ]);

function scan(bytes: Buffer, cuts: readonly number[] = []): { done: boolean; data: Buffer } {
  const pieces: Buffer[] = [];
  const scanner = new ChunkScanner((piece) => pieces.push(piece));
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]) {
    scanner.feed(bytes.subarray(from, cut));
    from = cut;
  }
  return { done: scanner.done, data: Buffer.concat(pieces) };
}

const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 });
const cuts = fc.array(fc.nat(1_000), { maxLength: 12 });

describe('ChunkScanner', () => {
  it('finds the end and what is inside, however the bytes are cut', () => {
    fc.assert(
      fc.property(chunks, cuts, (all, at) => {
        expect(scan(encode(all), at)).toEqual({ done: true, data: Buffer.concat(all) });
      }),
    );
  });

  it('takes nothing that was cut off for the end, even where the data look like one', () => {
    fc.assert(
      fc.property(chunks, cuts, fc.nat(1_000), (all, at, length) => {
        const whole = encode([...all, Buffer.from('a\r\n0\r\n\r\nb')]);
        expect(scan(whole.subarray(0, length % whole.length), at).done).toBe(false);
      }),
    );
  });

  it('tells what comes before the end of the last chunk’s line, however the bytes are cut', () => {
    fc.assert(
      fc.property(chunks, cuts, (all, at) => {
        const whole = encode(all);
        const scanner = new ChunkScanner();
        let [from, before] = [0, 0];
        for (const cut of [...at.map((one) => one % whole.length).toSorted((a, b) => a - b), whole.length]) {
          before += scanner.feed(whole.subarray(from, cut));
          from = cut;
        }
        expect(before).toBe(whole.length - '\n\r\n'.length);
      }),
    );
  });

  it('reads extensions, trailers and capital letters', () => {
    expect(scan(Buffer.from('A;x="y"\r\n0123456789\r\n0\r\nDigest: 1\r\n\r\n'))).toEqual({
      done: true,
      data: Buffer.from('0123456789'),
    });
  });

  it.each([
    '\r\n',
    'x\r\n',
    '-1\r\n',
    `${'1'.repeat(13)}\r\n`,
    `1;${'e'.repeat(5_000)}`,
    '0\r\n\r\nmore',
    '0\r\n\r\n0\r\n\r\n',
  ])('never ends with %j', (text) => {
    expect(scan(Buffer.from(text)).done).toBe(false);
  });
});
