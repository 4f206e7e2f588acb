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
function kubeconfig(server: string, ca = true, more: object = {}): string {
  const file = join(folder, 'config');
  const trust = ca ? { 'certificate-authority-data': Buffer.from(CA).toString('base64') } : {};
  const config = {
    clusters: [{ name: 'c', cluster: { server, ...trust, ...more } }],
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

const endpoint = async (file: string, server?: string, of = member(), proxyUrl?: string) =>
  await memberEndpoint(
    { kubeconfig: file },
    of,
    { ...(server === undefined ? {} : { server }), ...(proxyUrl === undefined ? {} : { proxyUrl }) },
    { env: {} },
  );

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

  it('is behind the proxy of its administrator, or another one, or none', async () => {
    const file = kubeconfig('https://127.0.0.1:6443', true, { 'proxy-url': 'socks5://u:p@proxy.example' });
    const host = (proxyUrl?: string) => endpoint(file, undefined, member(), proxyUrl).then(({ proxy }) => proxy?.host);
    expect(await host()).toBe('proxy.example');
    expect(await host('http://other')).toBe('other');
    await expect(host('none')).rejects.toThrow('the manager cannot reach the member at https://127.0.0.1:6443');
    const found = await endpoint(file, 'https://east.example.com', member(), 'none');
    expect(found).toMatchObject({ proxy: undefined, viewerProxy: { host: 'proxy.example' } });
  });

  it.each(['http://127.0.0.1:3128', 'socks5://localhost', 'https://[::1]'])(
    'is not behind a proxy on the machine of the administrator: %s',
    async (proxy) => {
      const file = kubeconfig('https://east.example.com:6443', true, { 'proxy-url': proxy });
      await expect(endpoint(file)).rejects.toThrow('the manager cannot reach the member through');
      expect(await endpoint(file, undefined, member(), 'none')).toMatchObject({ proxy: undefined });
    },
  );

  it('is not behind what is no proxy, and says so without what may be a password', async () => {
    const file = kubeconfig('https://east.example.com:6443');
    const refused = endpoint(file, undefined, member(), 'ftp://u:s3cret@p');
    await expect(refused).rejects.toThrow('--proxy-url cannot be used');
    await expect(refused).rejects.toMatchObject({
      exitCode: 2,
      reason: expect.not.stringContaining('s3cret') as string,
    });
  });

  it('has the authority that the member publishes, where the kubeconfig names none', async () => {
    const file = kubeconfig('https://east.example.com', false);
    expect(await endpoint(file, undefined, member('published'))).toMatchObject({ ca: 'published' });
    await expect(endpoint(file)).rejects.toThrow('by which authority');
  });
});
