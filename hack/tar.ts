import { createHash } from 'node:crypto';

export type TarEntry =
  | { type: 'file'; path: string; mode: number; content: Uint8Array; uid?: number }
  | { type: 'folder'; path: string; mode: number; uid?: number }
  | { type: 'link'; path: string; target: string };

/**
 * A tar archive (ustar) that depends on its entries alone: no times, no owners but root unless said, entries in the
 * given order. Paths up to 255 bytes, where a slash parts them into 155 and 100.
 */
export function makeTar(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    const content =
      entry.type === 'file'
        ? Buffer.from(entry.content.buffer, entry.content.byteOffset, entry.content.byteLength)
        : Buffer.alloc(0);
    parts.push(header(entry, content.length), content, Buffer.alloc((512 - (content.length % 512)) % 512));
  }
  parts.push(Buffer.alloc(1024));
  return Buffer.concat(parts);
}

function header(entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(512);
  const path = entry.type === 'folder' ? `${entry.path}/` : entry.path;
  const [prefix, name] = parted(path);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');
  const uid = entry.type === 'link' ? 0 : (entry.uid ?? 0);
  block.write(name, 0);
  block.write(prefix, 345);
  block.write(octal(entry.type === 'link' ? 0o777 : entry.mode, 7), 100);
  block.write(octal(uid, 7), 108);
  block.write(octal(uid, 7), 116);
  block.write(octal(size, 11), 124);
  block.write(octal(0, 11), 136);
  block.write({ file: '0', folder: '5', link: '2' }[entry.type], 156);
  if (entry.type === 'link') block.write(entry.target, 157);
  block.write('ustar\x0000', 257, 'latin1');
  // The checksum counts its own field as spaces.
  block.fill(' ', 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148, 'latin1');
  return block;
}

/** The two fields of a header that a path is in. */
function parted(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= 100) return ['', path];
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (name !== '' && Buffer.byteLength(name) <= 100 && Buffer.byteLength(prefix) <= 155) return [prefix, name];
  }
  throw new Error(`path too long for a tar header: ${path}`);
}

export function sha256(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex');
}
