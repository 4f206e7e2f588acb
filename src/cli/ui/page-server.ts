import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CliError, explained } from '../cli-error.ts';
import { EXIT } from '../exit-code.ts';
import { accessOf, setCookie, type Keys } from './access.ts';
import { HTML, type PageFiles } from './page-files.ts';
import { plainText } from './plain-text.ts';
import type { PageState, Refusal, WhyAnswer, WorkloadDetail } from './view.ts';

/** Nothing but this machine itself can connect. */
const ADDRESS = '127.0.0.1';
/** Of one request, in ms. */
const REQUEST_MS = 30_000;
const MOST_CONNECTIONS = 64;
/** Pods that are asked about at once: each takes a dozen requests. */
const MOST_WHYS = 4;
/** Of what an address asks about, in characters: a namespace, a kind and a name. */
const LONGEST_KEY = 600;

/** What the page asks for; the promises reject with CliError. */
export interface PageSource {
  state: () => Promise<PageState>;
  workload: (key: string) => Promise<WorkloadDetail | undefined>;
  why: (pod: { namespace: string; name: string }) => Promise<WhyAnswer>;
}

export interface PageServer {
  /** To be opened: the token is in it. */
  url: string;
  close: () => Promise<void>;
}

/** Serves the page on this machine until it is closed. @param port 0: any that is free. Throws CliError when it is taken. */
export async function servePage(port: number, page: PageFiles, source: PageSource): Promise<PageServer> {
  const keys: Keys = { token: randomKey(), cookie: randomKey(), port: 0 };
  let whys = 0;
  const answers: Readonly<Record<string, (query: URLSearchParams) => Promise<object>>> = {
    '/api/state': async () => await source.state(),
    '/api/workload': async (query) => {
      const key = asked(query, 'key');
      const found = await source.workload(key);
      if (found === undefined) {
        const message = `nothing is known of a workload ${key} in members`;
        throw new CliError(message, { exitCode: EXIT.notFound, fix: 'go back to the list' });
      }
      return found;
    },
    '/api/why': async (query) => {
      const pod = { namespace: asked(query, 'namespace'), name: asked(query, 'name') };
      if (whys >= MOST_WHYS) throw new CliError('too many pods are asked about at once', { fix: 'try again' });
      whys += 1;
      try {
        return await source.why(pod);
      } finally {
        whys -= 1;
      }
    },
  };

  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const url = urlOf(req.url);
    const access = accessOf({ method: req.method, url, headers: req.headers }, keys);
    if (typeof access === 'object') {
      send(res, access.refused, 'text/plain; charset=utf-8', `${access.says}\n`);
      return;
    }
    if (access === 'enter') {
      res.setHeader('set-cookie', setCookie(keys));
      // Not a redirect: a browser that came from another page would not send the cookie on it. It leaves no token in its history.
      send(res, 200, HTML, '<!doctype html><title>Spillway</title><meta http-equiv="refresh" content="0;url=/">\n');
      return;
    }
    const path = url?.pathname ?? '';
    const file = page.files.get(path);
    const find = Object.hasOwn(answers, path) ? answers[path] : undefined;
    if (file !== undefined) send(res, 200, file.type, file.body);
    else if (find !== undefined) await sendAnswer(res, find(url?.searchParams ?? new URLSearchParams()));
    else send(res, 404, 'text/plain; charset=utf-8', 'There is nothing here.\n');
  };

  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (req, res) => {
    const headers = {
      'content-security-policy': policyOf(page.inlineScript),
      'cache-control': 'no-store',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    };
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    answer(req, res).catch(() => res.destroy());
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen(port, ADDRESS);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw portTaken(port, error);
  }
  keys.port = (server.address() as AddressInfo).port;
  return {
    url: `http://${ADDRESS}:${keys.port}/?token=${keys.token}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Only what this server itself serves: no other origin, no script or style within the document, no form, no frame, no HTML from text. */
function policyOf(inlineScript: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${inlineScript}`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

function send(res: ServerResponse, code: number, type: string, body: string | Buffer): void {
  res.writeHead(code, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}

async function sendAnswer(res: ServerResponse, found: Promise<object>): Promise<void> {
  const json = 'application/json; charset=utf-8';
  try {
    send(res, 200, json, JSON.stringify(plainText(await found)));
  } catch (error) {
    const { exitCode, message, reason = '', fix = '' } = explained(error, 'read that', '');
    const code = exitCode === EXIT.notFound ? 404 : exitCode === EXIT.usage ? 400 : 502;
    const refusal: Refusal = { error: message, reason, fix };
    send(res, code, json, JSON.stringify(plainText(refusal)));
  }
}

function asked(query: URLSearchParams, name: string): string {
  const value = query.get(name) ?? '';
  if (value !== '' && value.length <= LONGEST_KEY) return value;
  throw new CliError(`${name} is missing or too long`, { exitCode: EXIT.usage });
}

/** Undefined for what is no path, such as the whole address that proxies are asked for. */
function urlOf(text = ''): URL | undefined {
  return text.startsWith('/') && URL.canParse(text, 'http://page') && !text.startsWith('//')
    ? new URL(text, 'http://page')
    : undefined;
}

function randomKey(): string {
  return randomBytes(24).toString('base64url');
}

function portTaken(port: number, error: unknown): CliError {
  return new CliError(`port ${port} of ${ADDRESS} cannot be used`, {
    reason: error instanceof Error ? error.message : String(error),
    fix: 'name another --port, or none: then a free one is taken',
    cause: error,
  });
}
