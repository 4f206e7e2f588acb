import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Keys, Kubelet } from './harness.ts';
import {
  directoryOf,
  listenOnly,
  makeKeys,
  open,
  podNamed,
  readAll,
  readHead,
  readUntil,
  startKubelet,
  StubMember,
  switchAndListen,
  SWITCHED,
  until,
  upgradeText,
} from './harness.ts';

const EXEC = '/exec/ns/web/c?command=cat&input=1&output=1';
const MiB = 1_048_576;

let keys: Keys;
let member: StubMember;
let kubelet: Kubelet;
let pods: ReturnType<typeof directoryOf>;

beforeAll(async () => {
  keys = await makeKeys();
});
beforeEach(async () => {
  member = await StubMember.start();
  pods = directoryOf([podNamed('web')], member.client);
  kubelet = await startKubelet(keys, pods, { streams: 3 });
});
afterEach(async () => {
  await kubelet.server.close(0);
  await member.stop();
});
afterAll(() => undefined);

async function stream(method = 'POST', url = EXEC, more: string[] = [], early = ''): ReturnType<typeof open> {
  return open(kubelet.port, keys, keys.admin, upgradeText(method, url, more) + early);
}

describe('opening', () => {
  test('SPDY POST: the member gets the same request in its own words, the caller the member’s switch', async () => {
    member.script = (socket) => socket.write(SWITCHED);
    const caller = await stream('POST', '/exec/ns/web/c?command=ls&command=-l&output=1&error=1', [
      'Authorization: Bearer theirs',
      'X-Remote-User: admin',
      'Impersonate-User: admin',
      'Cookie: a=b',
      'X-Stream-Protocol-Version: v5.channel.k8s.io',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
    ]);
    const { head } = await readHead(caller);
    expect(head.split('\r\n')).toEqual([
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
    ]);
    expect(member.heads[0]?.split('\r\n')).toEqual([
      'POST /prefix/api/v1/namespaces/member-ns/pods/web/exec?container=c&stdout=true&stderr=true&command=ls&command=-l HTTP/1.1',
      'Host: member:6443',
      'User-Agent: spillway',
      'authorization: Bearer ours',
      'Connection: Upgrade',
      'X-Stream-Protocol-Version: v5.channel.k8s.io',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
      'Upgrade: SPDY/3.1',
      'Content-Length: 0',
    ]);
    caller.destroy();
  });

  test('WebSocket GET: passes as a GET without a body', async () => {
    member.script = (socket) =>
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nConnection: upgrade\r\n' +
          'Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n',
      );
    const caller = await stream('GET', EXEC, [
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Protocol: v5.channel.k8s.io,base64url.bearer.authorization.k8s.io.c2VjcmV0',
    ]);
    const { head } = await readHead(caller);
    expect(head).toContain('101 Switching Protocols');
    expect(head).toContain('Sec-WebSocket-Accept: x');
    expect(head).toContain('Sec-WebSocket-Protocol: v5.channel.k8s.io');
    expect(member.heads[0]).toMatch(/^GET /);
    expect(member.heads[0]).toContain('Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==');
    expect(member.heads[0]).toMatch(/^Sec-WebSocket-Protocol: v5\.channel\.k8s\.io$/m);
    expect(member.heads[0]?.toLowerCase()).not.toContain('content-length');
    expect(member.heads[0]).not.toContain('bearer');
    caller.destroy();
  });

  test('bytes that come together with either head are passed on, in order', async () => {
    let got = '';
    member.script = (socket, _head, rest) => {
      socket.write(`${SWITCHED}early from member;`);
      got = rest.toString();
      socket.on('data', (chunk: Buffer) => (got += chunk.toString()));
      socket.resume();
    };
    const caller = await stream('POST', EXEC, [], 'early from caller;');
    caller.write('later from caller');
    const all = await readUntil(caller, (all) => all.includes('early from member;'));
    expect(all.toString()).toMatch(/\r\n\r\nearly from member;$/);
    await until(() => got === 'early from caller;later from caller', 'the caller’s bytes at the member');
    caller.destroy();
  });

  test('no byte of the stream goes out before the member has switched', async () => {
    let rest = '?';
    member.script = (socket, _head, first) => {
      rest = first.toString();
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    };
    const caller = await stream('POST', EXEC, [], 'early');
    expect((await readAll(caller)).toString()).toContain('403');
    expect(rest).toBe('');
  });
});

describe('answers other than a switch', () => {
  test('the member’s refusal goes back with status, type and body, less what is not for the caller', async () => {
    member.script = (socket) =>
      socket.end(
        'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 17\r\nSet-Cookie: a=b\r\n' +
          'Location: https://elsewhere\r\n\r\n{"kind":"Status"}',
      );
    const caller = await stream();
    const { head, rest } = await readHead(caller);
    expect(head).toMatch(/^HTTP\/1.1 400 Bad Request/);
    expect(head).toContain('Content-Type: application/json');
    expect(head).toContain('Connection: close');
    expect(head).not.toMatch(/cookie|location/i);
    const body = rest.length > 0 ? rest : await readAll(caller);
    expect(body.toString()).toBe('{"kind":"Status"}');
  });

  test.each([
    ['a redirect', 'HTTP/1.1 302 Found\r\nLocation: https://elsewhere\r\nContent-Length: 0\r\n\r\n', 502],
    ['a plain success', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 502],
    ['a 401 about our own credentials', 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n', 502],
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', 503],
    ['nothing', '', 503],
    ['an endless refusal', `HTTP/1.1 500 Oops\r\nContent-Length: 99999999\r\n\r\n${'x'.repeat(100_000)}`, 503],
  ])('%s becomes a Status that names the cluster', async (_what, answer, code) => {
    member.script = (socket) => socket.end(answer);
    const caller = await stream();
    const text = (await readAll(caller)).toString();
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${code} `));
    expect(text).not.toMatch(/location:/i);
    const status = JSON.parse(text.slice(text.indexOf('\r\n\r\n'))) as Record<string, unknown>;
    expect(status).toMatchObject({ kind: 'Status', status: 'Failure', code });
    expect(status['message']).toContain('cluster east');
    await until(() => member.sockets.size === 0, 'the member connection is closed');
  });

  test('a member that is known to be unreachable: 503, why, and what to do; nothing is dialled', async () => {
    pods.unavailable = 'cluster east has not answered for 40 s';
    const caller = await stream();
    const text = (await readAll(caller)).toString();
    expect(text).toMatch(/^HTTP\/1.1 503 /);
    expect(text).toContain('pod ns/web cannot be reached: cluster east has not answered for 40 s (the pod');
    expect(member.heads).toEqual([]);
  });

  test.each([
    ['no such pod', '/exec/ns/other/c?command=a&output=1', 404, 'pod does not exist'],
    ['another UID', '/exec/ns/web/uid-of-old/c?command=a&output=1', 404, 'pod not found'],
    ['no such container', '/exec/ns/web/d?command=a&output=1', 404, 'container "d" not found in pod "web"'],
    ['no stream wanted', '/exec/ns/web/c?command=a', 400, 'you must specify at least 1 of stdin, stdout, stderr'],
    ['a bad port', '/portForward/ns/web?port=99999', 400, 'unable to parse "99999" as a port'],
    ['an unknown path', '/unknown', 404, '404 page not found'],
    ['a hostile path', '/exec/ns/%2e%2e/c', 400, 'the path is malformed'],
    ['a path without streams', '/pods', 400, 'no upgrade is possible here'],
  ])('nothing is dialled for %s: %s', async (_what, url, code, words) => {
    const caller = await stream('POST', url);
    const text = (await readAll(caller)).toString();
    // A right path with a wrong method is refused before anything else is looked at.
    expect(text).toMatch(new RegExp(url === '/pods' ? '^HTTP/1.1 405' : `^HTTP/1.1 ${code} `));
    expect(text).toContain(url === '/pods' ? 'only GET' : words);
    expect(member.heads).toEqual([]);
  });

  test('a request to switch protocols that has a body is refused', async () => {
    const text = upgradeText('POST', EXEC).replace('Content-Length: 0', 'Content-Length: 4');
    const caller = await open(kubelet.port, keys, keys.admin, `${text}body`);
    expect((await readAll(caller)).toString()).toMatch(/^HTTP\/1.1 400 /);
    expect(member.heads).toEqual([]);
  });

  test('a caller with the right UID in the path gets through', async () => {
    member.script = (socket) => socket.write(SWITCHED);
    const caller = await stream('POST', '/exec/ns/web/uid-of-web/c?command=a&output=1');
    expect((await readHead(caller)).head).toContain('101');
    caller.destroy();
  });
});

describe('the stream itself', () => {
  test('what the member said last arrives whole, then the end; both connections close', async () => {
    const last = randomBytes(3 * MiB);
    member.script = (socket) => socket.end(Buffer.concat([Buffer.from(SWITCHED), last]));
    const caller = await stream();
    const { rest } = await readHead(caller);
    const body = Buffer.concat([rest, await readAll(caller)]);
    expect(body.equals(last)).toBe(true);
    caller.end();
    await once(caller, 'close');
    await until(() => member.sockets.size === 0, 'the member connection is closed');
  });

  test('what the caller said last arrives whole at the member, and the answer to it comes back', async () => {
    const last = randomBytes(3 * MiB);
    const hash = createHash('sha256');
    member.script = (socket) => {
      socket.write(SWITCHED);
      socket.on('data', (chunk: Buffer) => hash.update(chunk));
      socket.on('end', () => socket.end('after the end'));
      socket.resume();
    };
    const caller = await stream();
    const { rest } = await readHead(caller);
    caller.end(last);
    const answer = Buffer.concat([rest, await readAll(caller)]);
    expect(answer.toString()).toBe('after the end');
    expect(hash.digest('hex')).toBe(createHash('sha256').update(last).digest('hex'));
    await until(() => member.sockets.size === 0, 'the member connection is closed');
  });

  test.each(['to the caller', 'to the member'])('a slow reader stops a fast writer: %s', async (direction) => {
    const total = 96 * MiB;
    const piece = randomBytes(MiB);
    let offered = 0;
    const offer = (socket: {
      write(chunk: Buffer): boolean;
      once(event: 'drain', then: () => void): unknown;
    }): void => {
      while (offered < total) {
        offered += piece.length;
        if (!socket.write(piece)) {
          socket.once('drain', () => offer(socket));
          return;
        }
      }
    };
    let received = 0;
    const count = (chunk: Buffer): void => void (received += chunk.length);
    let resumeReader = (): void => undefined;
    const before = process.memoryUsage();
    member.script = (socket) => {
      socket.write(SWITCHED);
      if (direction === 'to the caller') {
        offer(socket);
      } else {
        resumeReader = () => void socket.on('data', count).resume();
      }
    };
    const caller = await stream();
    const { rest } = await readHead(caller);
    if (direction === 'to the caller') {
      received = rest.length;
      resumeReader = () => void caller.on('data', count).resume();
    } else {
      offer(caller);
    }
    let last = -1;
    await until(async () => {
      const still = offered === last;
      last = offered;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return still && offered > 0;
    }, 'the writer to stand still');
    // Both loopback connections' kernel buffers (a few MiB each) and one piece more.
    expect(offered).toBeLessThan(64 * MiB);
    const held = process.memoryUsage();
    expect(held.arrayBuffers + held.external - before.arrayBuffers - before.external).toBeLessThan(24 * MiB);
    resumeReader();
    await until(() => received === total, 'everything to arrive');
    caller.destroy();
  });

  test('a member that dies in the middle ends the caller’s connection', async () => {
    member.script = (socket) => void socket.write(`${SWITCHED}half`);
    const caller = await stream();
    await readHead(caller);
    // A process that dies with bytes unread leaves a reset, not an end.
    caller.write(Buffer.alloc(4 * MiB));
    await until(() => caller.writableLength > 0 && caller.bytesWritten > MiB, 'bytes to pile up');
    for (const socket of member.sockets) {
      socket.destroy();
    }
    await readAll(caller);
    await until(() => kubelet.lines.some((line) => line['audit'] === 'exec'), 'the audit line');
    expect(kubelet.lines.find((line) => line['audit'] === 'exec')).toMatchObject({ code: 101, result: 'member reset' });
  });

  test('a caller that dies in the middle ends the member’s connection', async () => {
    member.script = switchAndListen;
    const caller = await stream();
    await readHead(caller);
    expect(member.sockets.size).toBe(1);
    caller.destroy();
    await until(() => member.sockets.size === 0, 'the member connection is closed');
  });

  test('a caller that leaves before the member answered ends the attempt', async () => {
    member.script = listenOnly;
    const connection = connect(kubelet.port, '127.0.0.1');
    const caller = tlsConnect({ socket: connection, ca: keys.authority.cert, host: '127.0.0.1', ...keys.admin });
    caller.on('error', () => undefined);
    caller.write(upgradeText('POST', EXEC));
    await until(() => member.heads.length === 1, 'the request to reach the member');
    connection.resetAndDestroy();
    await until(() => member.sockets.size === 0, 'the member connection is closed');
    await until(() => kubelet.lines.some((line) => line['audit'] === 'exec'), 'the audit line');
    expect(kubelet.lines.find((line) => line['audit'] === 'exec')).toMatchObject({ code: 0, result: 'caller left' });
  });
});

describe('keeping count', () => {
  test('who did what where, with bytes both ways and the end', async () => {
    member.script = (socket, _head, rest) => {
      socket.write(`${SWITCHED}12345`);
      socket.unshift(rest);
      socket.on('data', () => socket.end('678'));
      socket.resume();
    };
    const caller = await stream();
    const { rest } = await readHead(caller);
    caller.end('ab');
    expect(Buffer.concat([rest, await readAll(caller)]).toString()).toBe('12345678');
    await until(() => kubelet.lines.some((line) => line['audit'] === 'exec'), 'the audit line');
    expect(kubelet.lines.find((line) => line['audit'] === 'exec')).toMatchObject({
      level: 30,
      node: 'virtual-1',
      user: 'kube-apiserver-kubelet-client',
      groups: ['apiservers', 'system:authenticated'],
      pod: 'ns/web',
      container: 'c',
      member: 'east',
      toMember: 2,
      fromMember: 8,
      code: 101,
      result: 'closed',
      durationMs: expect.any(Number) as number,
    });
    const metrics = await kubelet.registry.metrics();
    expect(metrics).toContain('spillway_kubelet_requests_total{route="exec",code="101"} 1');
    expect(metrics).toContain('spillway_kubelet_open_streams{route="exec"} 0');
    expect(metrics).toContain('spillway_kubelet_stream_bytes_total{route="exec",direction="from-member"} 8');
  });

  test('no more streams than the cap; a closed one makes room', async () => {
    member.script = switchAndListen;
    const callers = [await stream(), await stream(), await stream()];
    for (const caller of callers) {
      expect((await readHead(caller)).head).toContain('101');
    }
    expect(await kubelet.registry.metrics()).toContain('spillway_kubelet_open_streams{route="exec"} 3');
    const refused = (await readAll(await stream())).toString();
    expect(refused).toMatch(/^HTTP\/1.1 429 /);
    expect(refused).toContain('3 open streams');
    callers[0]?.destroy();
    await until(
      async () => (await kubelet.registry.metrics()).includes('open_streams{route="exec"} 2'),
      'the count to fall',
    );
    const again = await stream();
    expect((await readHead(again)).head).toContain('101');
    for (const caller of [...callers, again]) {
      caller.destroy();
    }
  });
});

describe('shutdown', () => {
  test('waits for streams that end within the grace', async () => {
    member.script = (socket) => {
      socket.write(SWITCHED);
      socket.on('data', () => socket.end('done'));
      socket.resume();
    };
    const caller = await stream();
    await readHead(caller);
    let closed = false;
    const closing = kubelet.server.close(5000).then(() => (closed = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    caller.end('finish');
    expect((await readAll(caller)).toString()).toBe('done');
    await closing;
  });

  test('cuts the rest when the grace is over, and takes nothing new', async () => {
    member.script = switchAndListen;
    const caller = await stream();
    await readHead(caller);
    const ended = readAll(caller);
    const started = Date.now();
    const closing = kubelet.server.close(200);
    await expect(stream()).rejects.toThrow(/ECONNREFUSED/);
    await closing;
    expect(Date.now() - started).toBeLessThan(3000);
    await ended;
    expect(kubelet.lines.find((line) => line['audit'] === 'exec')).toMatchObject({ code: 101, result: 'cut' });
    await until(() => member.sockets.size === 0, 'the member connection is closed');
  });
});
