import { Agent, WebSocket, type MessageEvent } from 'undici';
import type { PlainAccess } from './plain-api.ts';

/** Channel of the v5 remote command protocol that carries the final Status. */
const STATUS_CHANNEL = 3;
const PATIENCE_MS = 30_000;

/** Runs commands in a pod over the WebSocket protocol, as kubectl does but without kubectl's own start. */
export class ExecCaller {
  readonly #dispatcher: Agent;
  readonly #url: string;

  constructor(access: PlainAccess, namespace: string, pod: string) {
    this.#dispatcher = new Agent({ connect: { ca: access.ca, cert: access.cert, key: access.key } });
    this.#url = `${access.server.replace(/^http/, 'ws')}/api/v1/namespaces/${namespace}/pods/${pod}/exec`;
  }

  /** @returns seconds from dialling to the end of the stream. @throws when the command does not succeed. */
  roundTrip(command: readonly string[]): Promise<number> {
    const query = [...command.map((one) => `command=${encodeURIComponent(one)}`), 'stdout=1', 'stderr=1'].join('&');
    return new Promise((resolve, reject) => {
      const began = performance.now();
      const socket = new WebSocket(`${this.#url}?${query}`, {
        protocols: ['v5.channel.k8s.io'],
        dispatcher: this.#dispatcher,
      });
      socket.binaryType = 'arraybuffer';
      let status = '';
      const late = setTimeout(() => {
        reject(new Error(`exec ${command.join(' ')}: no end after ${PATIENCE_MS} ms`));
        socket.close();
      }, PATIENCE_MS);
      socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
        const bytes = Buffer.from(data);
        if (bytes[0] === STATUS_CHANNEL) status += bytes.toString('utf8', 1);
      });
      socket.addEventListener('close', ({ code, reason }) => {
        clearTimeout(late);
        if (status.includes('"status":"Success"')) resolve((performance.now() - began) / 1000);
        else reject(new Error(`exec ${command.join(' ')}: closed with ${code} ${reason}, status ${status || 'none'}`));
      });
    });
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }
}
