import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memberEndpoint } from '../../src/cli/member-credentials.ts';
import type { Viewer } from '../../src/cli/viewer.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'join-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const CA = 'a certificate';

/** A kubeconfig of the member's administrator; `ca: false`: it leaves whom to trust to the machine. */
function kubeconfig(server: string, ca = true): string {
  const file = join(folder, 'config');
  const trust = ca ? { 'certificate-authority-data': Buffer.from(CA).toString('base64') } : {};
  const config = {
    clusters: [{ name: 'c', cluster: { server, ...trust } }],
    users: [{ name: 'u', user: { token: 'abc' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** A member that publishes this authority, or none. */
function member(ca?: string): Viewer {
  const configMap = ca === undefined ? undefined : { metadata: { name: 'kube-root-ca.crt' }, data: { 'ca.crt': ca } };
  return { tryGet: async () => await Promise.resolve(configMap) } as unknown as Viewer;
}

const endpoint = async (file: string, server?: string, of = member()) =>
  await memberEndpoint({ kubeconfig: file }, of, server, { env: {} });

describe('where the manager reaches a member', () => {
  it('is where its administrator does', async () => {
    expect(await endpoint(kubeconfig('https://east.example.com:6443'))).toMatchObject({
      server: 'https://east.example.com:6443',
      viewerServer: 'https://east.example.com:6443',
      ca: CA,
    });
  });

  it.each(['https://127.0.0.1:6443', 'https://localhost:6443', 'https://[::1]:6443'])(
    'is not the machine of the administrator: %s',
    async (server) => {
      await expect(endpoint(kubeconfig(server))).rejects.toThrow('the manager cannot reach the member');
      expect(await endpoint(kubeconfig(server), 'https://east-control-plane:6443')).toMatchObject({
        server: 'https://east-control-plane:6443',
        viewerServer: server,
      });
    },
  );

  it('is never an address without TLS', async () => {
    await expect(endpoint(kubeconfig('http://east.example.com'))).rejects.toThrow(
      'no address that the manager may use',
    );
    await expect(endpoint(kubeconfig('https://east.example.com'), 'east')).rejects.toThrow('no address');
  });

  it('has the authority that the member publishes, where the kubeconfig names none', async () => {
    const file = kubeconfig('https://east.example.com', false);
    expect(await endpoint(file, undefined, member('published'))).toMatchObject({ ca: 'published' });
    await expect(endpoint(file)).rejects.toThrow('by which authority');
  });
});
