import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAuthority, issueClient, issueServing, type Authority, type KeyPair } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { hostAccess } from '../../src/kube/credentials.ts';
import { CredentialsError } from '../../src/kube/errors.ts';
import { fileAccess } from '../../src/kube/file-access.ts';
import { memberAccess } from '../../src/kube/member-access.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';

const b64 = (text: string): string => Buffer.from(text).toString('base64');

let authority: Authority;
let alice: KeyPair;
let bob: KeyPair;
let serving: KeyPair;
let dir: string;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  authority = await createAuthority('test-ca');
  alice = await issueClient(authority, 'alice');
  bob = await issueClient(authority, 'bob');
  serving = await issueServing(authority, 'server', ['127.0.0.1', 'api.example']);
});
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kube-credentials-'));
});
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  rmSync(dir, { recursive: true });
});

/** Answers who the client certificate and the Authorization header say it is. */
async function whoAmI(options: { requestCert?: boolean } = {}): Promise<TestServer> {
  const server = await startHttpServer(
    (req, res) => {
      const { socket } = req;
      const peer =
        'getPeerCertificate' in socket ? (socket.getPeerCertificate as () => { subject?: { CN: string } })() : {};
      sendJson(res, 200, { user: peer.subject?.CN ?? null, auth: req.headers.authorization ?? null });
    },
    { ...serving, ca: authority.cert, requestCert: options.requestCert ?? true, rejectUnauthorized: false },
  );
  closers.push(server.close);
  return server;
}

function kubeconfig(cluster: Record<string, unknown>, user: Record<string, unknown>): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}

async function ask(
  access: Awaited<ReturnType<typeof hostAccess>>,
): Promise<{ user: string | null; auth: string | null }> {
  const client = new KubeClient({ cluster: 'test', ...access });
  try {
    return await client.request({ path: '/', retry: false });
  } finally {
    await client.close();
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function reason(run: () => unknown): Promise<[string, string]> {
  try {
    await run();
  } catch (e) {
    expect(e).toBeInstanceOf(CredentialsError);
    return [(e as CredentialsError).reason, (e as CredentialsError).message];
  }
  throw new Error('expected a CredentialsError');
}

describe('hostAccess', () => {
  it('uses certificates and CA from data, and from files beside the kubeconfig', async () => {
    const { url } = await whoAmI();
    const file = join(dir, 'config');
    writeFileSync(
      file,
      kubeconfig(
        { server: url, 'certificate-authority-data': b64(authority.cert) },
        { 'client-certificate-data': b64(alice.cert), 'client-key-data': b64(alice.key) },
      ),
    );
    expect(await ask(await hostAccess({ kubeconfig: file }))).toEqual({ user: 'alice', auth: null });
    writeFileSync(join(dir, 'ca.crt'), authority.cert);
    writeFileSync(join(dir, 'bob.crt'), bob.cert);
    writeFileSync(join(dir, 'bob.key'), bob.key);
    const user = { 'client-certificate': 'bob.crt', 'client-key': join(dir, 'bob.key') };
    writeFileSync(file, kubeconfig({ server: url, 'certificate-authority': 'ca.crt' }, user));
    expect(await ask(await hostAccess({ kubeconfig: file }))).toEqual({ user: 'bob', auth: null });
  });

  it('follows rotated certificates and tokens, and waits for the second half of a pair', async () => {
    const { url } = await whoAmI();
    const path = (name: string): string => join(dir, name);
    writeFileSync(path('crt'), alice.cert);
    writeFileSync(path('key'), alice.key);
    writeFileSync(path('token'), 'one\n');
    let now = 0;
    const access = await fileAccess({
      server: url,
      ca: { data: authority.cert },
      cert: { file: path('crt') },
      key: { file: path('key') },
      token: { file: path('token') },
      monotonic: () => now,
    });
    const client = new KubeClient({ cluster: 'test', ...access });
    closers.push(() => client.close());
    expect(await client.request({ path: '/' })).toEqual({ user: 'alice', auth: 'Bearer one' });
    const before = access.credentials.fingerprint();
    writeFileSync(path('crt'), bob.cert);
    writeFileSync(path('token'), 'two');
    now += 11_000;
    expect(await client.request({ path: '/' })).toMatchObject({ user: 'alice' });
    expect(access.credentials.fingerprint()).toBe(before);
    writeFileSync(path('key'), bob.key);
    now += 11_000;
    expect(await client.request({ path: '/' })).toEqual({ user: 'bob', auth: 'Bearer two' });
    expect(access.credentials.fingerprint()).not.toBe(before);
    writeFileSync(path('token'), 'three');
    expect(await access.credentials.headers()).toEqual({ authorization: 'Bearer two' });
    expect(await access.credentials.headers(true)).toEqual({ authorization: 'Bearer three' });
    rmSync(path('token'));
    expect(await access.credentials.headers(true)).toEqual({ authorization: 'Bearer three' });
  });

  it('reads a rotated token in time although the wall clock was set back meanwhile', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] });
    try {
      const token = join(dir, 'token');
      writeFileSync(token, 'one');
      const { credentials } = await fileAccess({ server: 'https://127.0.0.1:1', token: { file: token } });
      writeFileSync(token, 'two');
      vi.setSystemTime(Date.now() - 1_800_000);
      vi.advanceTimersByTime(9_000);
      expect(await credentials.headers()).toEqual({ authorization: 'Bearer one' });
      vi.advanceTimersByTime(2_000);
      expect(await credentials.headers()).toEqual({ authorization: 'Bearer two' });
    } finally {
      vi.useRealTimers();
    }
  });

  it('works as a pod with its service account', async () => {
    const { port } = await whoAmI();
    writeFileSync(join(dir, 'ca.crt'), authority.cert);
    writeFileSync(join(dir, 'token'), 'sa-token');
    const env = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(port) };
    const access = await hostAccess({ env, serviceAccountDirectory: dir });
    expect(await ask(access)).toEqual({ user: null, auth: 'Bearer sa-token' });
  });

  it('runs an exec plugin, and again after 401', async () => {
    const seen: (string | undefined)[] = [];
    const server = await startHttpServer(
      (req, res) => {
        seen.push(req.headers.authorization);
        sendJson(res, req.headers.authorization === 'Bearer run-2' ? 200 : 401, { ok: true });
      },
      { ...serving },
    );
    closers.push(server.close);
    const script = join(dir, 'plugin.cjs');
    writeFileSync(
      script,
      `const fs = require('node:fs'); const f = ${JSON.stringify(join(dir, 'runs'))};
       const n = fs.existsSync(f) ? Number(fs.readFileSync(f, 'utf8')) + 1 : 1; fs.writeFileSync(f, String(n));
       const info = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
       console.log(JSON.stringify({ apiVersion: info.apiVersion, kind: info.kind, status: { token: 'run-' + n } }));`,
    );
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: [script] };
    const file = join(dir, 'config');
    writeFileSync(
      file,
      kubeconfig({ server: server.url, 'certificate-authority-data': b64(authority.cert) }, { exec }),
    );
    const client = new KubeClient({ cluster: 'test', ...(await hostAccess({ kubeconfig: file })) });
    closers.push(() => client.close());
    expect(await client.request({ path: '/' })).toEqual({ ok: true });
    expect(seen).toEqual(['Bearer run-1', 'Bearer run-2']);
    expect(await client.request({ path: '/' })).toEqual({ ok: true });
    expect(seen).toHaveLength(3);
  });

  // Each run of a plugin starts a Node.js.
  describe('exec plugins', { timeout: 60_000 }, () => {
    /** A kubeconfig whose plugin runs `body`, with `n` counting its runs and `status()` printing a credential. */
    function withPlugin(url: string, body: string): { file: string; runs: () => number } {
      const counter = join(dir, 'runs');
      const script = join(dir, 'plugin.cjs');
      writeFileSync(
        script,
        `const fs = require('node:fs'); const f = ${JSON.stringify(counter)};
         const n = fs.existsSync(f) ? Number(fs.readFileSync(f, 'utf8')) + 1 : 1; fs.writeFileSync(f, String(n));
         const { apiVersion, kind } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
         const status = (status) => console.log(JSON.stringify({ apiVersion, kind, status }));
         ${body}`,
      );
      const file = join(dir, 'config');
      const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: [script] };
      writeFileSync(file, kubeconfig({ server: url, 'certificate-authority-data': b64(authority.cert) }, { exec }));
      return { file, runs: () => (existsSync(counter) ? Number(readFileSync(counter, 'utf8')) : 0) };
    }
    const certificate = (pair: KeyPair): string =>
      JSON.stringify({ clientCertificateData: pair.cert, clientKeyData: pair.key });

    afterEach(() => void vi.useRealTimers());

    it('may answer client certificates; new ones are used for new connections', async () => {
      const { url } = await whoAmI();
      const { file } = withPlugin(url, `status(n === 1 ? ${certificate(alice)} : ${certificate(bob)});`);
      const access = await hostAccess({ kubeconfig: file });
      const client = new KubeClient({ cluster: 'test', ...access });
      closers.push(() => client.close());
      expect(await client.request({ path: '/' })).toEqual({ user: 'alice', auth: null });
      const before = access.credentials.fingerprint();
      await access.credentials.headers(true);
      expect(access.credentials.fingerprint()).not.toBe(before);
      expect(await client.request({ path: '/' })).toEqual({ user: 'bob', auth: null });
    });

    it('are asked again when what they gave has expired, and not before', async () => {
      const { url } = await whoAmI();
      const { file, runs } = withPlugin(
        url,
        `status({ token: 'run-' + n, expirationTimestamp: new Date(Date.now() + 3600e3).toISOString() });`,
      );
      const began = Date.now();
      vi.useFakeTimers({ toFake: ['Date', 'performance'], now: began });
      const { credentials } = await hostAccess({ kubeconfig: file });
      const token = async (): Promise<string | undefined> => (await credentials.headers())['authorization'];
      expect(await token()).toBe('Bearer run-1');
      vi.setSystemTime(began + 1800e3);
      expect(await token()).toBe('Bearer run-1');
      vi.advanceTimersByTime(1900e3);
      expect(await token()).toBe('Bearer run-2');
      expect(await token()).toBe('Bearer run-2');
      expect(runs()).toBe(2);
    });

    it('that fail are named, without what they said; the next try runs them again', async () => {
      const { url } = await whoAmI();
      const { file, runs } = withPlugin(
        url,
        `if (n < 3) { console.error('no session for s3cret'); process.exit(7); } status({ token: 'run-' + n });`,
      );
      for (const run of [1, 2]) {
        const [code, message] = await reason(() => hostAccess({ kubeconfig: file }));
        expect([code, runs()]).toEqual(['CredentialPluginFailed', run]);
        expect(message).toContain(`the credential plugin of ${file}: it failed`);
        expect(message).not.toContain('s3cret');
      }
      expect(await ask(await hostAccess({ kubeconfig: file }))).toEqual({ user: null, auth: 'Bearer run-3' });
    });

    it('that fail later leave the request without an answer, and are run again for the next one', async () => {
      const { url } = await whoAmI();
      const { file } = withPlugin(url, `if (n === 2) process.exit(1); status({ token: 'run-' + n });`);
      const { credentials } = await hostAccess({ kubeconfig: file });
      expect((await reason(() => credentials.headers(true)))[0]).toBe('CredentialPluginFailed');
      expect(await credentials.headers(true)).toEqual({ authorization: 'Bearer run-3' });
    });

    it('that are not there, or answer no credential, are named', async () => {
      const { url } = await whoAmI();
      const { file } = withPlugin(url, `console.log('Please log in: s3cret');`);
      const [code, message] = await reason(() => hostAccess({ kubeconfig: file }));
      expect(code).toBe('CredentialPluginFailed');
      expect(message).not.toContain('s3cret');
      const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: join(dir, 'not-there') };
      writeFileSync(file, kubeconfig({ server: url, 'certificate-authority-data': b64(authority.cert) }, { exec }));
      expect((await reason(() => hostAccess({ kubeconfig: file })))[0]).toBe('CredentialPluginFailed');
    });

    it('that hang hold nobody for more than 30 s, and are ended', async () => {
      const { url } = await whoAmI();
      const pidFile = join(dir, 'pid');
      const { file, runs } = withPlugin(
        url,
        `fs.writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); setInterval(() => {}, 1000);`,
      );
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const refused = reason(() => hostAccess({ kubeconfig: file }));
      await until('the plugin runs', () => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '');
      await vi.advanceTimersByTimeAsync(29_000);
      const pid = Number(readFileSync(pidFile, 'utf8'));
      expect(isAlive(pid)).toBe(true);
      closers.push(async () => {
        if (isAlive(pid)) process.kill(pid, 'SIGKILL');
        await Promise.resolve();
      });
      await vi.advanceTimersByTimeAsync(2_000);
      expect(await refused).toEqual(['CredentialPluginFailed', expect.stringContaining('no answer within 30 s')]);
      vi.useRealTimers();
      await until('the plugin is gone', () => !isAlive(pid));
      expect(runs()).toBe(1);
    });
  });

  it('names what is wrong and never quotes secrets', async () => {
    const file = join(dir, 'config');
    const cluster = { server: 'https://127.0.0.1:1', 'proxy-url': 'ftp://u:s3cret@proxy' };
    writeFileSync(file, kubeconfig(cluster, { token: 't' }));
    expect((await reason(() => hostAccess({ kubeconfig: file })))[0]).toBe('InvalidProxy');
    expect((await reason(() => hostAccess({ kubeconfig: join(dir, 'none') })))[0]).toBe('FileUnreadable');
    writeFileSync(file, 'users:\n- name: u\n  user: {token: s3cret\n  - ]');
    const [code, message] = await reason(() => hostAccess({ kubeconfig: file }));
    expect(code).toBe('InvalidKubeconfig');
    expect(message).not.toContain('s3cret');
    writeFileSync(file, kubeconfig({ server: 'https://x' }, { token: ['s3cret'] }));
    const [, typed] = await reason(() => hostAccess({ kubeconfig: file }));
    expect(typed).toContain('users.0.user.token');
    expect(typed).not.toContain('s3cret');
  });
});

describe('TLS', () => {
  const dataConfig = (server: string, more: Record<string, unknown> = {}): string =>
    kubeconfig({ server, 'certificate-authority-data': b64(authority.cert), ...more }, { token: 't' });

  it('refuses a server that the CA did not sign, or with another name', async () => {
    const { url, port } = await whoAmI();
    const other = await createAuthority('other');
    const wrongCa = kubeconfig({ server: url, 'certificate-authority-data': b64(other.cert) }, { token: 't' });
    await expect(ask(memberAccess(wrongCa))).rejects.toMatchObject({ name: 'TransportError', kind: 'tls' });
    await expect(ask(memberAccess(dataConfig(`https://localhost:${port}`)))).rejects.toMatchObject({ kind: 'tls' });
    const named = dataConfig(`https://localhost:${port}`, { 'tls-server-name': 'api.example' });
    expect(await ask(memberAccess(named))).toEqual({ user: null, auth: 'Bearer t' });
    expect(await ask(memberAccess(dataConfig(url)))).toEqual({ user: null, auth: 'Bearer t' });
  });

  it('dials a verified connection with the client certificate', async () => {
    const { url, port } = await whoAmI();
    const user = { 'client-certificate-data': b64(alice.cert), 'client-key-data': b64(alice.key), token: 't' };
    const access = memberAccess(
      kubeconfig({ server: `${url}/prefix/`, 'certificate-authority-data': b64(authority.cert) }, user),
    );
    const client = new KubeClient({ cluster: 'test', ...access });
    closers.push(() => client.close());
    const dialed = await client.dial();
    expect(dialed).toMatchObject({
      host: `127.0.0.1:${port}`,
      pathPrefix: '/prefix',
      headers: { authorization: 'Bearer t' },
    });
    const answer = await new Promise<string>((resolve) => {
      dialed.socket.once('data', (data: Buffer) => resolve(data.toString()));
      dialed.socket.write(`GET / HTTP/1.1\r\nHost: ${dialed.host}\r\n\r\n`);
    });
    dialed.socket.destroy();
    expect(answer).toContain('"user":"alice"');
    expect(await client.request({ path: '/x' })).toEqual({ user: 'alice', auth: 'Bearer t' });
  });
});

describe('memberAccess', () => {
  const cluster = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
    server: 'https://10.0.0.1:6443',
    'certificate-authority-data': b64(authority.cert),
    ...more,
  });
  const refused = async (clusterPart: Record<string, unknown>, user: Record<string, unknown>): Promise<string> => {
    const [code, message] = await reason(() => memberAccess(kubeconfig(clusterPart, user)));
    const field = /^(?:cluster|user)\.([\w-]+) is not accepted/.exec(message)?.[1];
    return field === undefined ? code : `${code} ${field}`;
  };

  it('takes data and tokens', () => {
    const { endpoint } = memberAccess(kubeconfig(cluster({ 'tls-server-name': 'api' }), { token: 'abc' }));
    expect(endpoint).toEqual({ server: 'https://10.0.0.1:6443', ca: authority.cert, serverName: 'api' });
  });

  it('refuses what would run a command, read a file or trust a stranger, and says which field', async () => {
    const token = { token: 't' };
    expect(await refused(cluster(), { exec: { command: 'id' } })).toBe('ExecPluginRefused exec');
    expect(await refused(cluster(), { 'auth-provider': { name: 'gcp' } })).toBe('AuthProviderRefused auth-provider');
    expect(await refused(cluster(), { 'client-certificate': '/x', 'client-key': '/y' })).toMatch(
      /^FilePathRefused client-/,
    );
    expect(await refused(cluster(), { tokenFile: '/x' })).toBe('FilePathRefused tokenFile');
    expect(await refused(cluster(), { ...token, as: 'root' })).toBe('ImpersonationRefused as');
    expect(await refused(cluster(), { username: 'a', password: 'b' })).toBe('BasicAuthRefused username');
    expect(await refused(cluster({ 'insecure-skip-tls-verify': true }), token)).toBe(
      'InsecureRefused insecure-skip-tls-verify',
    );
    expect(await refused(cluster({ 'proxy-url': 'ftp://p' }), token)).toMatch(/^InvalidProxy/);
    expect(await refused(cluster({ 'certificate-authority': '/ca' }), token)).toMatch(
      /^FilePathRefused certificate-authority/,
    );
    expect(await refused(cluster({ 'new-thing': 1 }), token)).toBe('UnknownFieldRefused new-thing');
    expect(await refused({ server: 'https://x' }, token)).toBe('MissingCertificateAuthority');
    expect(await refused(cluster({ 'certificate-authority-data': b64('junk') }), token)).toBe(
      'InvalidCertificateAuthority',
    );
    expect(await refused(cluster({ server: 'http://x' }), token)).toBe('InvalidServer');
    expect(await refused(cluster({ server: 'https://u:p@x' }), token)).toBe('InvalidServer');
    expect(await refused(cluster(), {})).toBe('NoCredentials');
    expect(await refused(cluster(), { token: 'a\nb' })).toBe('InvalidToken');
    const mixed = { 'client-certificate-data': b64(alice.cert), 'client-key-data': b64(bob.key) };
    expect(await refused(cluster(), mixed)).toBe('InvalidClientCertificate');
    expect(await refused(cluster(), { 'client-certificate-data': b64(alice.cert) })).toBe('InvalidClientCertificate');
  });

  it('accepts explicit nothing: false, null and empty', () => {
    const user = { token: 't', exec: null, 'client-certificate': '' };
    expect(() =>
      memberAccess(kubeconfig(cluster({ 'insecure-skip-tls-verify': false, 'proxy-url': '' }), user)),
    ).not.toThrow();
  });

  it.each(['', 'null', '[]', 'just text', '{"clusters":[]}', '{"current-context":"nope","contexts":[]}'])(
    'calls %j no kubeconfig',
    async (text) => {
      expect((await reason(() => memberAccess(text)))[0]).toBe('InvalidKubeconfig');
    },
  );

  it('tells the line of what is no YAML, and nothing else of it', async () => {
    const [code, message] = await reason(() => memberAccess('users:\n- name: u\n  user: {token: "s3cret\n'));
    expect(code).toBe('InvalidKubeconfig');
    expect(message).toMatch(/it is not valid YAML at line \d$/);
  });

  it.each([
    ['maps as keys of maps', '{'.repeat(400)],
    ['the same, without an error in them', `${'{'.repeat(400)}${'}'.repeat(400)}`],
    ['questions', '? '.repeat(1_000)],
    ['errors without end', '"'.repeat(30_000)],
    ['a server with a path of slashes', kubeconfig({ server: `https://x${'/'.repeat(100_000)}y` }, { token: 't' })],
  ])('reads or refuses %s at once', async (_, text) => {
    const began = performance.now();
    expect((await reason(() => memberAccess(text)))[0]).toMatch(/^(InvalidKubeconfig|MissingCertificateAuthority)$/);
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});
