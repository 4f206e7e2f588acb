/** A server that answers every request with the same pod, in a process of its own. Says its port over IPC. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { samplePod } from './sample-pod.ts';

const answer = Buffer.from(JSON.stringify(samplePod(0)));
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
  response.end(answer);
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit(0));
