import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliError } from '../../../src/cli/cli-error.ts';
import { EXIT } from '../../../src/cli/exit-code.ts';
import { pageFiles } from '../../../src/cli/ui/page-files.ts';
import { servePage, type PageServer, type PageSource } from '../../../src/cli/ui/page-server.ts';
import { lookAt } from '../../../src/cli/ui/page-state.ts';

const EMPTY = {
  context: 'c',
  namespace: '',
  members: [],
  nodes: [],
  pods: [],
  placements: [],
  rebalancers: [],
  migrations: [],
  policies: [],
  leases: [],
  events: [],
  missing: [],
};
const { state } = lookAt(EMPTY, new Map(), 0);
let why: PageSource['why'] = async () => {
  throw new CliError('pods "x" not found', { exitCode: EXIT.notFound, fix: 'check the name' });
};
const source: PageSource = {
  state: async () => ({ ...state, context: '\u001b[31m<script>' }),
  workload: async () => undefined,
  why: async (pod) => await why(pod),
};

let server: PageServer;
let port: number;
let token: string;
let cookie: string;

beforeAll(async () => {
  server = await servePage(0, pageFiles(), source);
  const url = new URL(server.url);
  port = Number(url.port);
  token = url.searchParams.get('token') ?? '';
  const entered = await ask(`/?token=${token}`, { cookie: '' });
  cookie = String(entered.headers['set-cookie']).split(';')[0] ?? '';
});
afterAll(async () => await server.close());

interface Answer {
  code: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** As a browser with the cookie would; `headers` says what is different. The path goes out as it is written here. */
async function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const sent = { host: `127.0.0.1:${port}`, cookie, ...headers };
    request({ host: '127.0.0.1', port, path, method, headers: sent }, (res) => {
      let body = '';
      res.setEncoding('utf8');
      res.on('data', (chunk: string) => (body += chunk));
      res.on('end', () => resolve({ code: res.statusCode ?? 0, headers: res.headers, body }));
    })
      .on('error', reject)
      .end();
  });
}

it('listens on this machine only', () => {
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}$/);
});

it('exchanges the token for a cookie that no script and no other site can use', async () => {
  const { code, headers, body } = await ask(`/?token=${token}`, { cookie: '', 'sec-fetch-site': 'cross-site' });
  expect(code).toBe(200);
  expect(String(headers['set-cookie'])).toMatch(
    new RegExp(`^spillway-ui-${port}=[\\w-]{32}; Path=/; HttpOnly; SameSite=Strict$`),
  );
  expect(String(headers['set-cookie'])).not.toContain(token);
  expect(body).toContain('http-equiv="refresh" content="0;url=/"');
});

describe('refuses', () => {
  it.each<[string, number, string, Record<string, string>?, string?]>([
    ['who has no cookie', 403, '/', { cookie: '' }],
    ['a wrong cookie', 403, '/api/state', { cookie: 'spillway-ui-1=x; spillway-ui-2=y' }],
    ['files without the cookie', 403, '/main.js', { cookie: '' }],
    ['a wrong token, cookie or not', 403, '/?token=wrong'],
    ['an empty token', 403, '/?token=', { cookie: '' }],
    ['the token elsewhere', 403, '/api/state?token=TOKEN', { cookie: '' }],
    ['a name that leads here (DNS rebinding)', 421, '/', { host: 'evil.example' }],
    ['such a name with the port', 421, '/?token=TOKEN', { host: 'evil.example:PORT' }],
    ['another port', 421, '/', { host: '127.0.0.1:1' }],
    ['a whole address, as proxies get it', 421, 'http://127.0.0.1/'],
    ['another host within the path', 421, '//evil.example/'],
    ['POST', 405, '/api/state', {}, 'POST'],
    ['DELETE', 405, '/api/state', {}, 'DELETE'],
    ['OPTIONS, so that no other origin may ask', 405, '/api/state', { origin: 'http://evil.example' }, 'OPTIONS'],
    ['another origin', 403, '/api/state', { origin: 'http://evil.example' }],
    ['another port of this machine', 403, '/api/state', { origin: 'http://127.0.0.1:1' }],
    ['what another site loads', 403, '/api/state', { 'sec-fetch-site': 'cross-site' }],
    ['what another port loads', 403, '/main.js', { 'sec-fetch-site': 'same-site' }],
    ['a path out of the page', 404, '/../package.json'],
    ['the same encoded', 404, '/%2e%2e/%2e%2e/etc/passwd'],
    ['the same with backslashes', 404, '/..\\..\\etc\\passwd'],
    ['a name of every object', 404, '/__proto__'],
    ['the same below the API', 404, '/api/constructor'],
    ['sources', 404, '/main.tsx'],
    ['a question about nothing', 400, '/api/why?namespace=shop'],
    ['a question about too much', 400, `/api/why?namespace=shop&name=${'x'.repeat(700)}`],
    ['a workload that is not known', 404, '/api/workload?key=a/B/c'],
    ['a pod that is not there', 404, '/api/why?namespace=a&name=x'],
  ])('%s', async (_what, code, path, headers = {}, method = 'GET') => {
    const filled = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace('PORT', String(port))]),
    );
    const answer = await ask(path.replace('TOKEN', token), filled, method);
    expect(answer.code).toBe(code);
    expect(answer.headers['set-cookie']).toBeUndefined();
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });
});

it('answers who has the cookie, by the name localhost, too', async () => {
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) {
    const { code, headers, body } = await ask('/api/state', { host, 'sec-fetch-site': 'same-origin' });
    expect(code).toBe(200);
    expect(headers['cache-control']).toBe('no-store');
    // Text stays text, and fit for eyes.
    expect(JSON.parse(body)).toMatchObject({ context: '[31m<script>' });
  }
});

it('allows nothing but its own files', async () => {
  const { headers, body } = await ask('/');
  const policy = String(headers['content-security-policy']);
  expect(policy).toMatch(/^default-src 'none'; script-src 'self' 'sha256-[\w+/]{43}='; style-src 'self'; /);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|http/);
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
  });
  expect(body).not.toMatch(/https?:|style=|onload/);
});

it('serves all that the page loads, each import a file that is there', async () => {
  const { files } = pageFiles();
  const { body } = await ask('/');
  const map = JSON.parse(/importmap">(.*?)<\/script>/.exec(body)?.[1] ?? '{}') as { imports: Record<string, string> };
  const wanted = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
  for (const [path, file] of files) {
    if (!file.type.startsWith('text/javascript')) continue;
    const text = file.body.toString();
    for (const [, name = ''] of text.matchAll(/(?:from|import)\s*["']([^"']+)["']/g)) {
      wanted.push(name.startsWith('.') ? new URL(name, `http://page${path}`).pathname : (map.imports[name] ?? name));
    }
    // The library knows how to; nothing of ours asks it to.
    if (!path.startsWith('/packages/')) expect(text, path).not.toMatch(/innerHTML/i);
  }
  expect(wanted.length).toBeGreaterThan(20);
  expect(wanted.filter((path) => !files.has(path))).toEqual([]);
  const icon = await ask('/icon.svg');
  expect(icon).toMatchObject({ code: 200, headers: { 'content-type': 'image/svg+xml' } });
});

it('asks about few pods at once', async () => {
  const waiting: (() => void)[] = [];
  why = async () => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    throw new CliError('enough');
  };
  const first = Array.from({ length: 4 }, async () => await ask('/api/why?namespace=a&name=x'));
  await expect.poll(() => waiting.length).toBe(4);
  const fifth = await ask('/api/why?namespace=a&name=x');
  expect(fifth.code).toBe(502);
  expect(fifth.body).toContain('too many pods');
  for (const resolve of waiting) resolve();
  expect((await Promise.all(first)).map(({ body }) => body)).toEqual(
    Array.from({ length: 4 }, () => expect.stringContaining('enough')),
  );
});

it('says so when the port is taken', async () => {
  await expect(servePage(port, pageFiles(), source)).rejects.toMatchObject({
    message: `port ${port} of 127.0.0.1 cannot be used`,
    fix: expect.stringContaining('--port'),
  });
});
