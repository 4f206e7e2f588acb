import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Sends an answer made piece by piece, no faster than the caller reads. A caller may leave early. */
export async function sendText(response: ServerResponse, contentType: string, pieces: Iterable<string>): Promise<void> {
  response.setHeader('Content-Type', contentType);
  response.setHeader('X-Content-Type-Options', 'nosniff');
  try {
    await pipeline(Readable.from(pieces), response);
  } catch (error) {
    if (!isPrematureClose(error)) {
      throw error;
    }
  }
}

function isPrematureClose(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}
