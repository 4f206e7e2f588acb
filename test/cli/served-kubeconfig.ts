import { writeFileSync } from 'node:fs';
import type { MemoryApiServer } from '../fixtures/memory-api-server.ts';

/** Writes a kubeconfig with a context for each server, by name; the first one is current. */
export function writeKubeconfig(path: string, servers: Readonly<Record<string, MemoryApiServer>>): void {
  const names = Object.keys(servers);
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: Object.entries(servers).map(([name, one]) => ({ name, cluster: { server: one.client().server } })),
    contexts: names.map((name) => ({ name, context: { cluster: name, user: 'u' } })),
    users: [{ name: 'u', user: { token: 't' } }],
    'current-context': names[0],
  };
  writeFileSync(path, JSON.stringify(content));
}
