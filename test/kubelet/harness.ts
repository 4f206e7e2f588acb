import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import type { Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { connect as tlsConnect } from 'node:tls';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { Authority, KeyPair } from '../../hack/pki.ts';
import { createAuthority, issueClient, issueServing } from '../../hack/pki.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { keyOf } from '../../src/kube/object.ts';
import type { ServingCertificates } from '../../src/serving/certificates.ts';
import type { MemberClient, PodDirectory } from '../../src/kubelet/pod-directory.ts';
import type { KubeletServerOptions } from '../../src/kubelet/server.ts';
import { KubeletServer } from '../../src/kubelet/server.ts';

/** One set of keys for a test file: making them is the slow part. */
export interface Keys {
  readonly authority: Authority;
  readonly serving: KeyPair;
  readonly admin: KeyPair;
}

export async function makeKeys(): Promise<Keys> {
  const authority = await createAuthority('host-ca');
  return {
    authority,
    serving: await issueServing(authority, 'system:node:virtual-1', ['127.0.0.1'], { groups: ['system:nodes'] }),
    admin: await issueClient(authority, 'kube-apiserver-kubelet-client', ['apiservers']),
  };
}

export interface Reviewed {
  readonly path: string;
  readonly spec: Record<string, unknown>;
}

/** A host that answers reviews: everybody may do everything unless told otherwise; the only token is `good`. */
export class StubHost {
  readonly asked: Reviewed[] = [];
  may: (user: string, subresource: string, verb: string) => boolean = () => true;
  broken = false;

  request<T>(request: { path: string; body: unknown }): Promise<T> {
    const { spec } = request.body as { spec: Record<string, unknown> };
    this.asked.push({ path: request.path, spec });
    if (this.broken) {
      return Promise.reject(new Error('connection refused'));
    }
    return Promise.resolve(this.#answer(request.path, spec) as T);
  }

  #answer(path: string, spec: Record<string, unknown>): unknown {
    if (path.endsWith('/tokenreviews')) {
      const user = { username: 'system:serviceaccount:kube-system:metrics-server', groups: ['system:serviceaccounts'] };
      return { status: spec['token'] === 'good' ? { authenticated: true, user } : { authenticated: false } };
    }
    const attributes = spec['resourceAttributes'] as { subresource: string; verb: string };
    return { status: { allowed: this.may(String(spec['user']), attributes.subresource, attributes.verb) } };
  }
}

export type OnUpgrade = (socket: Socket, head: string, rest: Buffer) => void;

/** A member API server that speaks just enough HTTP to be scripted byte for byte. */
export class StubMember {
  readonly heads: string[] = [];
  readonly sockets = new Set<Socket>();
  readonly #server: Server;
  script: OnUpgrade = (socket) => socket.destroy();
  logs: MemberClient['stream'] = () => Promise.reject(new Error('no logs scripted'));

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<StubMember> {
    const server = createServer({ allowHalfOpen: true });
    const member = new StubMember(server);
    server.on('connection', (socket) => member.#accept(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return member;
  }

  get client(): MemberClient {
    const { port } = this.#server.address() as AddressInfo;
    return {
      cluster: 'east',
      stream: (request) => this.logs(request),
      dial: async () => {
        const socket = connect(port, '127.0.0.1');
        await once(socket, 'connect');
        return { socket, host: 'member:6443', pathPrefix: '/prefix', headers: { authorization: 'Bearer ours' } };
      },
    };
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) {
      socket.destroy();
    }
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.sockets.delete(socket));
    let seen = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      seen = Buffer.concat([seen, chunk]);
      const end = seen.indexOf('\r\n\r\n');
      if (end < 0) {
        return;
      }
      socket.off('data', onData);
      socket.pause();
      const head = seen.subarray(0, end).toString('latin1');
      this.heads.push(head);
      this.script(socket, head, seen.subarray(end + 4));
    };
    socket.on('data', onData);
  }
}

/** Switches, swallows what comes, and closes when the other side does. */
export function switchAndListen(socket: Socket): void {
  socket.write(SWITCHED);
  listenOnly(socket);
}

export function listenOnly(socket: Socket): void {
  socket.on('end', () => socket.end());
  socket.resume();
}

export const SWITCHED =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n' +
  'X-Stream-Protocol-Version: v4.channel.k8s.io\r\nSet-Cookie: member=1\r\n\r\n';

export function podNamed(name: string, container = 'c', more: Partial<Pod['spec']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'ns', name, uid: `uid-of-${name}` },
    spec: { nodeName: 'virtual-1', containers: [{ name: container }], ...more },
    status: { phase: 'Running' },
  };
}

/** A directory of host pods whose member is one stub; its namespace there is `member-ns`. */
export function directoryOf(pods: Pod[], client: MemberClient): PodDirectory & { unavailable: string | undefined } {
  const byKey = new Map(pods.map((pod) => [keyOf(pod), pod]));
  return {
    unavailable: undefined,
    get: (namespace, name) => byKey.get(`${namespace}/${name}`),
    list: () => byKey.values(),
    running: () => [...byKey.values()].filter((pod) => pod.status?.phase === 'Running'),
    target(pod) {
      return this.unavailable === undefined
        ? { client, namespace: 'member-ns', name: pod.metadata.name }
        : { unavailable: this.unavailable };
    },
  };
}

export function fixedCertificates(pair: KeyPair): ServingCertificates & { pair: KeyPair } {
  return {
    pair,
    current() {
      return this.pair;
    },
    run: () => Promise.resolve(),
  };
}

/** A running server with everything it stands on. */
export interface Kubelet {
  readonly server: KubeletServer;
  readonly port: number;
  readonly host: StubHost;
  readonly registry: Registry;
  /** Log lines, parsed. */
  readonly lines: Record<string, unknown>[];
}

export async function startKubelet(
  keys: Keys,
  pods: PodDirectory,
  more: Partial<KubeletServerOptions> = {},
  listen: (server: KubeletServer) => Promise<number> = async (server) => await server.listen(0),
): Promise<Kubelet> {
  const host = new StubHost();
  const registry = new Registry();
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const logger = pino({ level: 'debug' }, { write });
  const server = new KubeletServer({
    nodeName: 'virtual-1',
    address: '127.0.0.1',
    certificates: fixedCertificates(keys.serving),
    clientCa: () => keys.authority.cert,
    host,
    pods,
    registry,
    logger,
    clock: Date.now,
    ...more,
  });
  const port = await listen(server);
  return { server, port, host, registry, lines };
}

/** A TLS connection that has sent `text` and reads nothing yet. */
export async function open(port: number, keys: Keys, client: KeyPair | undefined, text: string): Promise<TLSSocket> {
  const connection = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  await once(connection, 'connect');
  const identity = client === undefined ? {} : { cert: client.cert, key: client.key };
  const socket = tlsConnect({ socket: connection, ca: keys.authority.cert, host: '127.0.0.1', ...identity });
  socket.allowHalfOpen = true;
  await once(socket, 'secureConnect');
  socket.write(text, 'latin1');
  return socket;
}

export function upgradeText(method: string, url: string, more: string[] = []): string {
  const lines = [
    `${method} ${url} HTTP/1.1`,
    'Host: node:10250',
    ...more,
    ...(more.some((line) => line.toLowerCase().startsWith('connection:')) ? [] : ['Connection: Upgrade']),
    ...(more.some((line) => line.toLowerCase().startsWith('upgrade:')) ? [] : ['Upgrade: SPDY/3.1']),
    ...(method === 'POST' ? ['Content-Length: 0'] : []),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Reads until `done` says so of everything read; rejects when the stream ends before. */
export async function readUntil(stream: Readable, done: (all: Buffer) => boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      stream.off('data', onData);
      stream.off('end', onEnd);
      stream.off('error', onError);
      stream.pause();
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      const all = Buffer.concat(chunks);
      if (done(all)) {
        stop();
        resolve(all);
      }
    };
    const onEnd = (): void => {
      stop();
      reject(new Error(`ended after ${Buffer.concat(chunks).toString('latin1')}`));
    };
    const onError = (error: Error): void => {
      stop();
      reject(error);
    };
    stream.on('data', onData);
    stream.on('end', onEnd);
    stream.on('error', onError);
    stream.resume();
  });
}

export async function readHead(stream: Readable): Promise<{ head: string; rest: Buffer }> {
  const all = await readUntil(stream, (all) => all.includes('\r\n\r\n'));
  const end = all.indexOf('\r\n\r\n');
  return { head: all.subarray(0, end).toString('latin1'), rest: all.subarray(end + 4) };
}

/** Everything until the other side's end. */
export function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => resolve(Buffer.concat(chunks)));
    stream.on('close', () => resolve(Buffer.concat(chunks)));
    stream.on('error', reject);
    if (stream.destroyed || stream.readableEnded) {
      resolve(Buffer.concat(chunks));
    }
    stream.resume();
  });
}

export interface HttpAnswer {
  readonly code: number;
  readonly text: string;
  readonly type: string;
}

/** An ordinary request. */
export function ask(
  port: number,
  keys: Keys,
  o: { path: string; method?: string; client?: KeyPair; headers?: Record<string, string> },
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest(
      {
        host: '127.0.0.1',
        port,
        path: o.path,
        method: o.method ?? 'GET',
        headers: o.headers ?? {},
        ca: keys.authority.cert,
        agent: false,
        ...o.client,
      },
      (answer) => {
        readAll(answer).then((body) => {
          resolve({ code: answer.statusCode ?? 0, text: body.toString(), type: answer.headers['content-type'] ?? '' });
        }, reject);
      },
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}

/** Waits for a condition; rejects after fifteen seconds. */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await condition())) {
    if (Date.now() > deadline) {
      throw new Error(`not within 15 s: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
