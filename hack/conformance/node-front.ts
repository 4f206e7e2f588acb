import { createServer, type Server } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { Agent, request } from 'undici';
import type { Cluster } from '../cluster.ts';

export interface NodeFront {
  close(): Promise<void>;
}

/**
 * Serves HTTPS on the kubelet's usual port and passes everything on to a node's real port, as a user who may read
 * metrics. virtual-kubelet's suite reads metrics through a Pod object, which API servers do anonymously.
 */
export async function startNodeFront(
  host: Cluster,
  address: string,
  node: { address: string; port: number },
  user: string,
): Promise<NodeFront> {
  const serving = await host.issueServing('node-front', [address]);
  const identity = await host.issueClient(user);
  const origin = `https://${node.address}:${node.port}`;
  // The node's own certificate is not what is tested here.
  const dispatcher = new Agent({ connect: { ...identity, rejectUnauthorized: false } });
  const server = createServer(serving, (incoming, outgoing) => {
    const { method, url = '/' } = incoming;
    if (method !== 'GET') {
      outgoing.writeHead(405).end();
      return;
    }
    request(`${origin}${url}`, { dispatcher })
      .then(async ({ statusCode, headers, body }) => {
        outgoing.writeHead(statusCode, { 'content-type': headers['content-type'] ?? 'text/plain' });
        await pipeline(body, outgoing);
      })
      .catch((error: unknown) => outgoing.destroy(error instanceof Error ? error : undefined));
  });
  await listen(server, address);
  return {
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await dispatcher.close();
    },
  };
}

async function listen(server: Server, address: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(10_250, address, resolve);
  });
}
