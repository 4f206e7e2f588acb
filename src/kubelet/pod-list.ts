import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Pod } from '../api/wire.ts';
import { stringifyJson } from '../kube/json.ts';

const BATCH = 64;

/** Writes a PodList in pieces, so that thousands of pods are never one string in memory. A caller may leave early. */
export async function sendPodList(response: ServerResponse, pods: Iterable<Pod>): Promise<void> {
  response.setHeader('Content-Type', 'application/json');
  try {
    await pipeline(Readable.from(podListText(pods)), response);
  } catch (error) {
    if (!isPrematureClose(error)) {
      throw error;
    }
  }
}

/** `items` is always a list, as every client but Go's needs it. */
function* podListText(pods: Iterable<Pod>): Generator<string> {
  let text = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[';
  let count = 0;
  for (const pod of pods) {
    text += `${count === 0 ? '' : ','}${stringifyJson(pod)}`;
    count += 1;
    if (count % BATCH === 0) {
      yield text;
      text = '';
    }
  }
  yield `${text}]}\n`;
}

function isPrematureClose(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}
