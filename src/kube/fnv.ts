const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;
const encoder = new TextEncoder();

/** The 32-bit FNV-1a hash of a text in UTF-8, as Go's `fnv.New32a`. */
export function fnv32a(text: string): number {
  let hash = OFFSET;
  for (const byte of encoder.encode(text)) hash = Math.imul(hash ^ byte, PRIME) >>> 0;
  return hash;
}

/** The 32-bit FNV-1 hash of a text in UTF-8, as Go's `fnv.New32`. */
export function fnv32(text: string): number {
  let hash = OFFSET;
  for (const byte of encoder.encode(text)) hash = (Math.imul(hash, PRIME) ^ byte) >>> 0;
  return hash;
}
