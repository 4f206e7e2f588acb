import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { packTar } from 'modern-tar';
import type { BundleFile } from './contents.ts';

/** The files below one folder, as the bytes of a tar.gz. @param at wall clock in ms. */
export async function archive(
  folder: string,
  files: readonly Pick<BundleFile, 'path' | 'text'>[],
  at: number,
): Promise<Buffer> {
  const mtime = new Date(at);
  const entries = files.map(({ path, text }) => {
    const body = Buffer.from(text);
    return { header: { name: `${folder}/${path}`, size: body.length, mode: 0o600, mtime }, body };
  });
  return await promisify(gzip)(await packTar(entries));
}
