import type { ServerResponse } from 'node:http';
import type { Pod } from '../kube/core-v1.ts';
import { stringifyJson } from '../kube/json.ts';
import { sendText } from './text-answer.ts';

const BATCH = 64;

/** Writes a PodList in pieces, so that thousands of pods are never one string in memory. A caller may leave early. */
export async function sendPodList(response: ServerResponse, pods: Iterable<Pod>): Promise<void> {
  await sendText(response, 'application/json', podListText(pods));
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
