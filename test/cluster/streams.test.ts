import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request, WebSocket } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { IMAGES } from '../../hack/images.ts';
import type { KubectlOptions, KubectlResult } from '../../hack/kubectl.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { kubectlEnvironment, saidInTerminal, shellOut, whenSize, whileSizeChanges } from '../fixtures/terminal.ts';
import { NODE, pod, shell, StreamsHarness } from './streams-harness.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, the stream tests are skipped: ${kubelets.reason}`);

const MiB = 1_048_576;

describe.runIf(kubelets.ok)('kubectl through a virtual node does what it does on the member itself', () => {
  let workspace: Workspace;
  let h: StreamsHarness;
  let folder: string;

  beforeAll(async () => {
    workspace = Workspace.create();
    folder = mkdtempSync(join(workspace.dir, 'files-'));
    h = await StreamsHarness.start(workspace);
    const lines = 'for i in $(seq 1 40); do echo "out $i"; echo "err $i" >&2; done';
    await h.run(
      pod(
        'web',
        [
          { name: 'main', image: IMAGES.agnhost, args: ['netexec', '--http-port=8080'] },
          shell('tools', `${lines}; touch /tmp/ready; exec sleep 100000`),
          shell('ticker', 'while true; do date +%s; sleep 0.2; done'),
          shell('teller', 'i=0; while true; do echo "tick $i"; i=$((i+1)); sleep 0.2; done'),
          shell('files', 'dd if=/dev/urandom of=/tmp/big bs=1M count=24; exec httpd -f -p 8081 -h /tmp'),
        ],
        { initContainers: [shell('setup', 'echo setting up; echo done')] },
      ),
      pod(
        'restarted',
        [
          {
            ...shell(
              'main',
              'if [ -e /s/x ]; then echo second; exec sleep 100000; fi; touch /s/x; printf "first %s\\n" 1 2 3 4 5; exit 3',
            ),
            volumeMounts: [{ name: 's', mountPath: '/s' }],
          },
        ],
        { volumes: [{ name: 's', emptyDir: {} }] },
      ),
      pod('waiting', [{ name: 'main', image: 'spillway.test/none:1', imagePullPolicy: 'Never' }]),
      pod(
        'chorus',
        ['one', 'two', 'three'].map((name) =>
          shell(
            name,
            `until [ -e /s/go ]; do sleep 0.1; done; for i in $(seq 20); do echo "${name} $i"; sleep 0.05; done`,
            {
              volumeMounts: [{ name: 's', mountPath: '/s' }],
            },
          ),
        ),
        { volumes: [{ name: 's', emptyDir: {} }], restartPolicy: 'Never' },
      ),
      pod('counter', [shell('main', 'for i in $(seq 1 20); do echo "count $i"; sleep 0.1; done')], {
        restartPolicy: 'Never',
      }),
      ...['one', 'two'].map((name) =>
        pod(`attach-${name}`, [shell('main', 'cat; echo end', { stdin: true, stdinOnce: true })], {
          restartPolicy: 'Never',
        }),
      ),
      ...['one', 'two'].map((name) =>
        pod(
          `screen-${name}`,
          [
            shell('main', `${whenSize('33 101')}; ${whenSize('44 120')}; read line; echo "heard=$line"; exit 5`, {
              stdin: true,
              tty: true,
            }),
          ],
          { restartPolicy: 'Never' },
        ),
      ),
    );
    await h.whenMemberPod('web', '.status.containerStatuses[*].ready', 'true true true true true');
    await h.whenMemberPod('restarted', '.status.containerStatuses[0].restartCount', '1');
    await h.whenMemberPod('restarted', '.status.containerStatuses[0].ready', 'true');
    await h.whenMemberPod('waiting', '.status.containerStatuses[0].state.waiting.reason', 'ErrImageNeverPull');
    await h.whenMemberPod('counter', '.status.phase', 'Succeeded');
    for (const name of ['attach-one', 'attach-two', 'screen-one', 'screen-two', 'chorus']) {
      await h.whenMemberPod(name, '.status.phase', 'Running');
    }
  });

  afterAll(async () => {
    try {
      await h?.close();
    } finally {
      await workspace.close();
    }
  });

  /** Container runtimes number every exec. */
  function comparable({ code, stdout, stderr }: KubectlResult): object {
    return { code, stdout, stderr: stderr.replaceAll(/[0-9a-f]{64}/g, 'ID') };
  }

  /** Runs the same command against both; output and exit code must be equal. */
  async function same(args: readonly string[], options?: KubectlOptions): Promise<KubectlResult> {
    const [viaHost, direct] = [await h.host.kubectl(args, options), await h.member.kubectl(args, options)];
    expect(comparable(viaHost)).toEqual(comparable(direct));
    expect(viaHost.stdoutBytes.equals(direct.stdoutBytes)).toBe(true);
    return viaHost;
  }

  describe('logs', () => {
    const logs = (...more: string[]): Promise<KubectlResult> => same(['logs', 'web', '-c', 'tools', ...more]);
    const count = (result: KubectlResult): number => result.stdout.split('\n').length - 1;

    test('whole, and by every option', async () => {
      expect(count(await logs())).toBe(80);
      expect(count(await logs('--tail=7'))).toBe(7);
      expect(count(await logs('--tail=0'))).toBe(0);
      expect(count(await logs('--tail=-1'))).toBe(80);
      expect((await logs('--limit-bytes=25')).stdoutBytes).toHaveLength(25);
      expect(count(await logs('--since=1h'))).toBe(80);
      expect(count(await logs('--since=1s'))).toBe(0);
      expect((await logs('--prefix')).stdout).toContain('[pod/web/tools] out 1\n');
      const stamped = (await logs('--timestamps')).stdout.split('\n');
      const time = stamped[0]?.split(' ')[0] ?? '';
      expect(Date.parse(time)).toBeGreaterThan(0);
      expect(count(await logs(`--since-time=${time.slice(0, 19)}Z`))).toBe(80);
      expect(count(await logs('--since-time=2100-01-01T00:00:00Z'))).toBe(0);
      expect(count(await logs('--timestamps', '--tail=3', '--limit-bytes=1000'))).toBe(3);
      expect(count(await logs('--insecure-skip-tls-verify-backend'))).toBe(80);
    });

    test('of the run before, by every option', async () => {
      const previous = async (...more: string[]): Promise<string> =>
        (await same(['logs', 'restarted', '--previous', ...more])).stdout;
      const asked = [[], ['--tail=2'], ['--limit-bytes=12'], ['--tail=2', '--limit-bytes=12'], ['--timestamps']];
      const [whole, tail, cut, both, stamped = ''] = await Promise.all(asked.map((more) => previous(...more)));
      expect(whole).toBe('first 1\nfirst 2\nfirst 3\nfirst 4\nfirst 5\n');
      expect(tail).toBe('first 4\nfirst 5\n');
      expect(cut).toBe('first 1\nfirs');
      expect(both).toBe('first 4\nfirs');
      const lines = stamped.trimEnd().split('\n');
      expect(lines.map((line) => line.replace(/^\d{4}-\S+Z /, ''))).toEqual(whole?.trimEnd().split('\n'));
      expect(lines.every((line) => Date.parse(line.split(' ')[0] ?? '') > 0)).toBe(true);
      expect(await previous('--timestamps', '--tail=1')).toBe(`${lines.at(-1) ?? '?'}\n`);
    });

    test('followed, of all containers at once, to the end of each', async () => {
      const following = [h.host, h.member].map((cluster) =>
        cluster.kubectl(['logs', '-f', 'chorus', '--all-containers', '--prefix']),
      );
      await until('every container is followed', async () => (await h.openStreams()) === 3);
      expect((await h.host.kubectl(['exec', 'chorus', '-c', 'two', '--', 'touch', '/s/go'])).code).toBe(0);
      const [viaHost, direct] = (await Promise.all(following)).map(({ stdout, ...rest }) => ({
        ...comparable({ ...rest, stdout: '' }),
        // Of each container in order; whose line comes first is chance.
        lines: ['one', 'two', 'three'].map((name) =>
          stdout.split('\n').filter((line) => line.startsWith(`[pod/chorus/${name}]`)),
        ),
      }));
      expect(viaHost).toEqual(direct);
      expect(viaHost).toMatchObject({ code: 0 });
      expect(viaHost?.lines.map((lines) => lines.length)).toEqual([20, 20, 20]);
    });

    test('of an init container, of the run before, and of a finished pod by following it', async () => {
      expect((await same(['logs', 'web', '-c', 'setup'])).stdout).toBe('setting up\ndone\n');
      expect((await same(['logs', 'restarted'])).stdout).toBe('second\n');
      expect(count(await same(['logs', '-f', 'counter']))).toBe(20);
      expect(count(await same(['logs', '-f', 'counter', '--tail=2']))).toBe(2);
    });

    test('of all containers, and of pods by label', async () => {
      const sorted = (text: string): string[] => text.split('\n').sort();
      const args = ['logs', 'web', '--all-containers', '--prefix', '--since-time=2000-01-01T00:00:00Z'];
      const stable = (result: KubectlResult): string[] =>
        sorted(result.stdout).filter((line) => !/^\[pod\/web\/(ticker|teller)\]/.test(line));
      const [viaHost, direct] = [await h.host.kubectl(args), await h.member.kubectl(args)];
      expect(viaHost.code).toBe(0);
      expect(stable(viaHost)).toEqual(stable(direct));
      expect(stable(viaHost).filter((line) => line.startsWith('[pod/web/tools]'))).toHaveLength(80);
      expect((await same(['logs', '-l', 'app=counter', '--tail=5'])).code).toBe(0);
    });

    test.each([
      ['a container that waits', ['logs', 'waiting']],
      ['no run before', ['logs', 'web', '-c', 'tools', '--previous']],
      ['no such container', ['logs', 'web', '-c', 'none']],
      ['no such pod', ['logs', 'none']],
      ['a negative limit', ['logs', 'web', '-c', 'tools', '--limit-bytes=-1']],
    ])('%s: the same words', async (_what, args) => {
      const result = await same(args);
      expect(result.code).toBe(1);
      expect(result.stderr).not.toBe('');
    });

    test('followed lines come while they are written; stopping kubectl stops the stream in the member', async () => {
      const child = h.spawn(h.host, ['logs', '-f', 'web', '-c', 'ticker', '--tail=0']);
      try {
        const late: number[] = [];
        for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
          late.push(Date.now() / 1000 - Number(chunk.toString().trim().split('\n').at(-1)));
          if (late.length === 5) break;
        }
        // The lines tell whole seconds; a few KiB of them would take minutes.
        expect(Math.max(...late)).toBeLessThan(10);
        expect(await h.openStreams()).toBe(1);
      } finally {
        child.kill('SIGINT');
        await once(child, 'close');
      }
      await until('the stream is closed', async () => (await h.openStreams()) === 0);
    });
  });

  describe('exec', () => {
    const exec = (options: KubectlOptions | undefined, ...command: string[]): Promise<KubectlResult> =>
      same(['exec', ...(options === undefined ? [] : ['-i']), 'web', '-c', 'tools', '--', ...command], options);

    test.each([0, 1, 2, 42, 126, 127, 128, 137, 255])('exit code %d', async (code) => {
      expect((await exec(undefined, 'sh', '-c', `exit ${code}`)).code).toBe(code);
    });

    test('killed by a signal, not there, not executable', async () => {
      expect((await exec(undefined, 'sh', '-c', 'kill -9 $$')).code).toBe(137);
      expect((await exec(undefined, 'no-such-command')).code).not.toBe(0);
      expect((await exec(undefined, '/etc')).code).not.toBe(0);
    });

    test('output and errors apart, arguments byte for byte', async () => {
      const both = await exec(undefined, 'sh', '-c', 'echo out; echo err >&2; exit 3');
      expect(both).toMatchObject({ code: 3, stdout: 'out\n' });
      expect(both.stderr).toMatch(/^err\n/);
      const odd = ['', ' ', 'a b', '"', "'", '&x=y', '%2e%2e', '+', 'é', '🚀', '\n', '$HOME', ';', '#', '\\', '--'];
      const printed = await exec(undefined, 'printf', '<%s>', ...odd);
      expect(printed.stdout).toBe(odd.map((text) => `<${text}>`).join(''));
      const long = 'x'.repeat(100_000);
      expect((await exec(undefined, 'sh', '-c', `echo ${long} | wc -c`)).stdout.trim()).toBe('100001');
    });

    test('input up to its end', async () => {
      expect((await exec({ input: 'hello\n' }, 'cat')).stdout).toBe('hello\n');
      expect((await exec({ input: '' }, 'sh', '-c', 'wc -c')).stdout.trim()).toBe('0');
      const bytes = randomBytes(3 * MiB);
      expect((await exec({ input: bytes }, 'cat')).stdoutBytes.equals(bytes)).toBe(true);
      expect((await exec({ input: 'ignored\n' }, 'true')).code).toBe(0);
    });

    test.each([
      ['no such container', ['exec', 'web', '-c', 'none', '--', 'true']],
      ['no such pod', ['exec', 'none', '--', 'true']],
      ['a container that does not run', ['exec', 'waiting', '--', 'true']],
      ['a command that is not there', ['exec', 'web', '-c', 'tools', '--', 'no-such-command']],
    ])('%s: the same words', async (_what, args) => {
      expect((await same(args)).code).toBe(1);
    });

    test('many at once, each with its own answer', async () => {
      const all = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          h.host.kubectl(['exec', 'web', '-c', 'tools', '--', 'sh', '-c', `echo ${i}; exit ${i}`]),
        ),
      );
      expect(all.map((one) => [one.code, one.stdout])).toEqual(all.map((_, i) => [i, `${i}\n`]));
    });

    test('100 MiB each way arrive whole and memory stays flat', async () => {
      const big = join(folder, 'big');
      const hash = createHash('md5');
      const piece = randomBytes(MiB);
      await pipeline(function* () {
        for (let i = 0; i < 100; i++) {
          piece.writeUInt32LE(i);
          hash.update(piece);
          yield Buffer.from(piece);
        }
      }, createWriteStream(big));
      const md5 = hash.digest('hex');
      let peak = 0;
      const before = process.memoryUsage.rss();
      const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss() - before)), 20);
      // kubectl reads and writes files itself, so that only the relayed bytes pass through this process.
      const run = (script: string): Promise<string> => shellOut(script, { ...kubectlEnvironment(h.host), BIG: big });
      const up = await run(
        'exec "$KUBECTL" exec -i web -c tools -- sh -c "cat > /tmp/big; md5sum < /tmp/big" < "$BIG"',
      );
      expect(up).toBe(`${md5}  -\n`);
      expect(await run('"$KUBECTL" exec web -c tools -- cat /tmp/big | md5sum')).toBe(`${md5}  -\n`);
      clearInterval(watch);
      expect(peak).toBeLessThan(96 * MiB);
      expect((await h.host.kubectl(['exec', 'web', '-c', 'tools', '--', 'rm', '/tmp/big'])).code).toBe(0);
    });
  });

  describe('with a terminal', () => {
    async function sameTerminal(script: string): Promise<string[]> {
      const [viaHost, direct] = await Promise.all([saidInTerminal(h.host, script), saidInTerminal(h.member, script)]);
      expect(viaHost).toEqual(direct);
      return viaHost;
    }

    test('the command sees one, of the right size, with output and errors on it', async () => {
      const inner = `echo "tty=$(tty)"; ${whenSize('33 101')}; echo err=1 >&2`;
      expect(await sameTerminal(`"$KUBECTL" exec -it web -c tools -- sh -c '${inner}'`)).toEqual([
        'tty=/dev/pts/N',
        'size=33 101',
        'err=1',
      ]);
    });

    test('a change of size arrives while it runs', async () => {
      const inner = `${whenSize('33 101')}; ${whenSize('44 120')}; exit 9`;
      const command = whileSizeChanges(`"$KUBECTL" exec -it web -c tools -- sh -c '${inner}'`);
      expect(await sameTerminal(command)).toEqual(['size=33 101', 'size=44 120', 'code=9']);
    });

    test('attached to: it has the size of the terminal, learns of changes, and hears what is typed', async () => {
      const typist = { shown: /size=44 120/, keys: 'what is typed\r' };
      const attach = (name: string): string => whileSizeChanges(`"$KUBECTL" attach -it ${name}`);
      const [viaHost, direct] = await Promise.all([
        saidInTerminal(h.host, attach('screen-one'), typist),
        saidInTerminal(h.member, attach('screen-two'), typist),
      ]);
      expect(viaHost).toEqual(direct);
      expect(viaHost.slice(0, 3)).toEqual(['size=33 101', 'size=44 120', 'heard=what is typed']);
      expect(viaHost).toHaveLength(4);
    });
  });

  describe('attach', () => {
    test('input goes in, output comes out, the end of input ends it', async () => {
      const [one, two] = ['attach-one', 'attach-two'];
      const viaHost = await h.host.kubectl(['attach', '-i', one], { input: 'through\n' });
      const direct = await h.member.kubectl(['attach', '-i', two], { input: 'through\n' });
      expect([viaHost.code, viaHost.stdout]).toEqual([direct.code, direct.stdout]);
      expect(viaHost.stdout).toBe('through\nend\n');
      expect(viaHost.stderr).toBe(direct.stderr);
      expect((await h.host.kubectl(['logs', one])).stdout).toBe('through\nend\n');
    });

    test('to something that talks: the same lines through both, until kubectl is stopped', async () => {
      const listeners = [h.host, h.member].map((cluster) => {
        const child = h.spawn(cluster, ['attach', 'web', '-c', 'teller']);
        const end = once(child, 'close');
        let heard = '';
        child.stdout.on('data', (chunk: Buffer) => (heard += chunk.toString()));
        const ticks = (): string[] => heard.split('\n').slice(0, -1);
        return { child, end, ticks };
      });
      const [viaHost, direct] = listeners as [(typeof listeners)[0], (typeof listeners)[0]];
      const shared = (): string[] => viaHost.ticks().filter((tick) => direct.ticks().includes(tick));
      try {
        await until('both have heard the same five lines', () => shared().length >= 5);
      } finally {
        for (const { child } of listeners) child.kill('SIGINT');
      }
      expect(await viaHost.end).toEqual(await direct.end);
      for (const { ticks } of listeners) {
        const first = Number(ticks()[0]?.replace('tick ', ''));
        expect(ticks()).toEqual(ticks().map((_, index) => `tick ${first + index}`));
      }
      await until('the stream is closed', async () => (await h.openStreams()) === 0);
    });

    test.each([
      ['no such container', ['attach', 'web', '-c', 'none']],
      ['a container that does not run', ['attach', 'waiting']],
    ])('%s: the same words', async (_what, args) => {
      expect((await same(args)).code).toBe(1);
    });
  });

  async function forwarding<T>(
    remote: number,
    use: (port: number, errors: () => string) => Promise<T>,
    cluster = h.host,
  ): Promise<T> {
    const child = h.spawn(cluster, ['port-forward', 'pod/web', `:${remote}`]);
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    try {
      await until('port-forward listens', () => /127\.0\.0\.1:\d+/.test(stdout));
      return await use(Number(/127\.0\.0\.1:(\d+)/.exec(stdout)?.[1]), () => stderr);
    } finally {
      child.kill('SIGINT');
      await once(child, 'close');
    }
  }

  function get(port: number, path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({ host: '127.0.0.1', port, path, agent: false }, (answer) => {
        let text = '';
        answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
        answer.on('end', () => resolve(text));
        answer.on('error', reject);
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  }

  describe('port-forward', () => {
    test('many connections at once and one after another', async () => {
      await forwarding(8080, async (port) => {
        expect(await get(port, '/hostname')).toBe('web');
        const all = await Promise.all(Array.from({ length: 50 }, (_, i) => get(port, `/echo?msg=answer-${i}`)));
        expect(all).toEqual(all.map((_, i) => `answer-${i}`));
        for (let i = 0; i < 10; i++) expect(await get(port, `/echo?msg=${i}`)).toBe(String(i));
        const long = 'y'.repeat(30_000);
        expect(await get(port, `/echo?msg=${long}`)).toBe(long);
      });
      await until('the stream is closed', async () => (await h.openStreams()) === 0);
    });

    /** MD5 of what an HTTP server answers; a slow reader stalls first, and then again after each MiB. */
    async function download(port: number, slow: boolean): Promise<string> {
      const outgoing = httpRequest({ host: '127.0.0.1', port, path: '/big', agent: false }).end();
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
      const hash = createHash('md5');
      if (slow) await sleep(1500);
      let taken = 0;
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        hash.update(chunk);
        taken += chunk.length;
        if (slow && Math.floor(taken / MiB) > Math.floor((taken - chunk.length) / MiB)) await sleep(20);
      }
      return hash.digest('hex');
    }

    async function upload(port: number, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
      const body = new FormData();
      body.append('file', new Blob([bytes]), 'big');
      const answer = await fetch(`http://127.0.0.1:${port}/upload`, { method: 'POST', body });
      return ((await answer.json()) as { output: string }).output;
    }

    test('24 MiB each way arrive whole, at a slow reader too, as on the member itself', async () => {
      const md5 = (await same(['exec', 'web', '-c', 'files', '--', 'md5sum', '/tmp/big'])).stdout.slice(0, 32);
      const bytes = new Uint8Array(randomBytes(24 * MiB));
      expect((await h.host.kubectl(['exec', 'web', '-c', 'main', '--', 'mkdir', '-p', '/uploads'])).code).toBe(0);
      const both = [h.host, h.member].map(async (cluster) => [
        ...(await forwarding(
          8081,
          async (port) => await Promise.all([download(port, false), download(port, true)]),
          cluster,
        )),
        await forwarding(8080, async (port) => await upload(port, bytes), cluster),
      ]);
      const uploaded = createHash('md5').update(bytes).digest('hex');
      for (const [fast, slow, path = ''] of await Promise.all(both)) {
        expect([fast, slow]).toEqual([md5, md5]);
        const { stdout } = await same(['exec', 'web', '-c', 'main', '--', 'md5sum', path]);
        expect(stdout).toBe(`${uploaded}  ${path}\n`);
      }
      await until('the stream is closed', async () => (await h.openStreams()) === 0);
    });

    test('to a port where nobody listens: the pod’s own refusal', async () => {
      await forwarding(9, async (port, errors) => {
        await expect(get(port, '/')).rejects.toThrow();
        await until('kubectl tells why', () => errors().includes('refused'));
      });
    });
  });

  test('cp both ways keeps every byte', async () => {
    const [there, back] = [join(folder, 'there'), join(folder, 'back')];
    writeFileSync(there, randomBytes(30 * MiB));
    const md5 = createHash('md5').update(readFileSync(there)).digest('hex');
    const up = await same(['cp', there, 'web:/tmp/copied', '-c', 'tools']);
    expect(up.code).toBe(0);
    expect((await same(['exec', 'web', '-c', 'tools', '--', 'md5sum', '/tmp/copied'])).stdout).toContain(md5);
    expect((await same(['cp', 'web:/tmp/copied', back, '-c', 'tools'])).code).toBe(0);
    const hash = createHash('md5');
    await pipeline(createReadStream(back), hash);
    expect(hash.digest('hex')).toBe(md5);
    // What it prints about a missing file is a race inside kubectl.
    const missing = ['cp', 'web:/no/such/file', back, '-c', 'tools'];
    expect((await h.host.kubectl(missing)).code).toBe((await h.member.kubectl(missing)).code);
  });

  test('a client that speaks WebSocket itself reaches the pod', async () => {
    const { server, ca, cert, key } = h.host.adminAccess;
    const dispatcher = new Agent({ connect: { ca, cert, key } });
    const query = 'container=tools&command=sh&command=-c&command=echo+hi%3B+exit+4&stdout=true&stderr=true';
    const url = `${server.replace('https', 'wss')}/api/v1/namespaces/default/pods/web/exec?${query}`;
    for (const protocol of ['v4.channel.k8s.io', 'channel.k8s.io']) {
      const socket = new WebSocket(url, { protocols: [protocol], dispatcher });
      socket.binaryType = 'arraybuffer';
      const channels: string[] = ['', '', '', ''];
      socket.addEventListener('message', ({ data }) => {
        const frame = Buffer.from(data as ArrayBuffer);
        const channel = frame[0] ?? 0;
        channels[channel] = `${channels[channel] ?? ''}${frame.subarray(1).toString()}`;
      });
      await once(socket as unknown as EventTarget & NodeJS.EventEmitter, 'close');
      expect(socket.protocol).toBe(protocol);
      expect(channels[1]).toBe('hi\n');
      if (protocol === 'v4.channel.k8s.io') expect(channels[3]).toContain('"message":"4"');
    }
    expect(h.lines.filter((line) => line['audit'] === 'exec').at(-1)).toMatchObject({ code: 101, member: 'member' });
    await dispatcher.close();
  });

  test('a client that speaks WebSocket itself reads a whole log', async () => {
    const { stdout } = await h.member.kubectl(['logs', 'web', '-c', 'tools']);
    expect(stdout).not.toBe('');
    for (const options of ['', '&limitBytes=5', '&tailLines=0']) {
      const logs = await Promise.all(
        [h.host, h.member].map(async ({ adminAccess: { server, ca, cert, key } }) => {
          const dispatcher = new Agent({ connect: { ca, cert, key } });
          const url = `${server.replace('https', 'wss')}/api/v1/namespaces/default/pods/web/log?container=tools${options}`;
          const socket = new WebSocket(url, { protocols: ['binary.k8s.io'], dispatcher });
          socket.binaryType = 'arraybuffer';
          let log = '';
          socket.addEventListener('message', ({ data }) => (log += Buffer.from(data as ArrayBuffer).toString()));
          await once(socket as unknown as EventTarget & NodeJS.EventEmitter, 'close');
          await dispatcher.close();
          return log;
        }),
      );
      expect(logs[0]).toBe(logs[1]);
      if (options === '') expect(logs[0]).toBe(stdout);
    }
  });

  describe('the node’s own paths', () => {
    const raw = (path: string): Promise<KubectlResult> =>
      h.host.kubectl(['get', '--raw', `/api/v1/nodes/${NODE}/proxy/${path}`]);

    test('healthz, pods, runningpods and metrics through nodes/NAME/proxy', async () => {
      expect(await raw('healthz')).toMatchObject({ code: 0, stdout: 'ok' });
      for (const path of ['pods', 'runningpods/']) {
        const list = JSON.parse((await raw(path)).stdout) as { kind: string; items: { metadata: { name: string } }[] };
        expect(list.kind).toBe('PodList');
        expect(list.items.map((one) => one.metadata.name)).toContain('web');
      }
      expect((await raw('metrics')).stdout).toContain('spillway_kubelet_requests_total{route="exec",code="101"}');
      expect((await raw('configz')).code).toBe(1);
      expect((await raw('containerLogs/default/web/tools?tailLines=1')).stdout).toMatch(/^(out|err) 40\n$/);
    });

    async function ask(path: string, o: { cert?: string; key?: string; token?: string } = {}): Promise<number> {
      const identity = o.cert === undefined || o.key === undefined ? {} : { cert: o.cert, key: o.key };
      const dispatcher = new Agent({ connect: { ca: h.host.caPem, ...identity } });
      const headers = o.token === undefined ? {} : { authorization: `Bearer ${o.token}` };
      const answer = await request(`https://${h.address}:${h.port}${path}`, { dispatcher, headers });
      await answer.body.dump();
      await dispatcher.close();
      return answer.statusCode;
    }

    test('nobody anonymous, nobody without rights; a service account by its token, as far as RBAC says', async () => {
      const paths = [
        '/healthz',
        '/pods',
        '/metrics',
        '/containerLogs/default/web/tools',
        '/exec/default/web/tools',
        '/x',
      ];
      const nobody = await h.host.issueClient('nobody');
      await h.host.apply([
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'scraper', namespace: 'default' } },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: 'scrape' },
          rules: [{ apiGroups: [''], resources: ['nodes/metrics'], verbs: ['get'] }],
        },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRoleBinding',
          metadata: { name: 'scrape' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'scrape' },
          subjects: [{ kind: 'ServiceAccount', name: 'scraper', namespace: 'default' }],
        },
      ]);
      const token = (await h.host.kubectl(['create', 'token', 'scraper'])).stdout.trim();
      for (const path of paths) {
        expect([path, await ask(path)]).toEqual([path, 401]);
        expect([path, await ask(path, nobody)]).toEqual([path, 403]);
        expect([path, await ask(path, { token: `${token}x` })]).toEqual([path, 401]);
        expect([path, await ask(path, { token })]).toEqual([path, path === '/metrics' ? 200 : 403]);
      }
    });
  });

  /**
   * The same, less one layer: a host that translates WebSockets, and wraps what the node
   * refuses as any API server does for nodes without that feature.
   */
  async function sameRefusal(args: readonly string[]): Promise<void> {
    const [viaHost, direct] = [await h.host.kubectl(args), await h.member.kubectl(args)];
    const unwrapped = viaHost.stderr.replace('error: Internal error occurred: unable', 'error: unable');
    expect(comparable({ ...viaHost, stderr: unwrapped })).toEqual(comparable(direct));
    expect(viaHost.code).toBe(1);
    expect(viaHost.stderr).not.toBe('');
  }

  async function declare(features: string[]): Promise<void> {
    await h.host.api.call('PATCH', `/api/v1/nodes/${NODE}/status`, { status: { declaredFeatures: features } });
  }

  /** How the last exec reached the node. */
  async function protocolOfExec(): Promise<unknown> {
    await h.host.kubectl(['exec', 'web', '-c', 'tools', '--', 'true']);
    return h.lines.filter((line) => line['audit'] === 'exec').at(-1)?.['protocol'];
  }

  test('the host hands WebSockets to the node as they are', async () => {
    expect(await protocolOfExec()).toBe('websocket');
  });

  describe('through a host that knows no such nodes and translates WebSockets to SPDY', () => {
    beforeAll(async () => {
      await declare([]);
      await until('the host translates', async () => String(await protocolOfExec()).startsWith('SPDY'));
    });
    afterAll(async () => {
      await declare(['ExtendWebSocketsToKubelet']);
      await until('the host passes WebSockets on', async () => (await protocolOfExec()) === 'websocket');
    });

    test('exec, its end of input, its exit code and its refusals are the same', async () => {
      const exec = ['exec', '-i', 'web', '-c', 'tools', '--'];
      const counted = await same([...exec, 'sh', '-c', 'wc -c; echo out; exit 7'], { input: randomBytes(MiB) });
      expect(counted).toMatchObject({ code: 7, stdout: `${MiB}\nout\n` });
      expect((await same([...exec, 'cat'], { input: 'hello' })).stdout).toBe('hello');
      for (const args of [
        ['exec', 'waiting', '--', 'true'],
        ['exec', 'web', '-c', 'none', '--', 'true'],
        ['attach', 'waiting'],
      ]) {
        await sameRefusal(args);
      }
    });

    test('port-forward and cp work', async () => {
      await forwarding(8080, async (port) => {
        const all = await Promise.all(Array.from({ length: 20 }, (_, i) => get(port, `/echo?msg=answer-${i}`)));
        expect(all).toEqual(all.map((_, i) => `answer-${i}`));
      });
      const [there, back] = [join(folder, 'there-2'), join(folder, 'back-2')];
      writeFileSync(there, randomBytes(5 * MiB));
      expect((await same(['cp', there, 'web:/tmp/copied-2', '-c', 'tools'])).code).toBe(0);
      expect((await same(['cp', 'web:/tmp/copied-2', back, '-c', 'tools'])).code).toBe(0);
      expect(readFileSync(back).equals(readFileSync(there))).toBe(true);
    });
  });

  test('every stream left its line, with who, where, how much and how it ended', () => {
    const audit = h.lines.filter((line) => line['audit'] !== undefined);
    expect(new Set(audit.map((line) => line['audit']))).toEqual(new Set(['exec', 'attach', 'portForward']));
    for (const line of audit) {
      expect(line).toMatchObject({ node: NODE, groups: expect.arrayContaining(['system:authenticated']) as unknown });
      expect(typeof line['durationMs']).toBe('number');
    }
    const big = audit.filter((line) => Number(line['fromMember']) > 100 * MiB || Number(line['toMember']) > 100 * MiB);
    expect(big.length).toBeGreaterThanOrEqual(2);
    expect(h.lines.filter((line) => Number(line['level']) >= 50)).toEqual([]);
  });

  describe('what breaks is not taken for a success', () => {
    // Translated to SPDY it would be, by the host: SPDY clients of Kubernetes read an end without a status as success.

    /** Runs an endless exec and a followed log, does something to them, and gives kubectl's exit code for the exec. */
    async function broken(by: () => Promise<unknown>): Promise<number> {
      const following = h.spawn(h.host, ['logs', '-f', 'web', '-c', 'ticker', '--tail=0']);
      const executing = h.spawn(h.host, ['exec', 'web', '-c', 'tools', '--', 'sh', '-c', 'echo on; sleep 1000']);
      const ends = [once(following, 'close'), once(executing, 'close')];
      await Promise.all([once(following.stdout, 'data'), once(executing.stdout, 'data')]);
      following.stdout.resume();
      await by();
      const [, [code]] = (await Promise.all(ends)) as [unknown, [number]];
      await until('the streams are closed', async () => (await h.openStreams()) === 0);
      return code;
    }

    test('the virtual node’s server stops: streams are cut, and after a restart new ones work', async () => {
      expect(await broken(() => h.restartServer())).not.toBe(0);
      expect(await same(['exec', 'web', '-c', 'tools', '--', 'echo', 'back'])).toMatchObject({ stdout: 'back\n' });
    });

    test('the member dies: streams end, new ones are refused in words that name the cluster', async () => {
      expect(await broken(() => h.member.component('kube-apiserver').stop('SIGKILL'))).not.toBe(0);
      const logs = await h.host.kubectl(['logs', 'web', '-c', 'tools']);
      expect(logs.code).toBe(1);
      expect(logs.stderr).toContain('cluster member');
      const exec = await h.host.kubectl(['exec', 'web', '-c', 'tools', '--', 'true']);
      expect(exec.code).toBe(1);
      expect(exec.stderr).toContain('cluster member');
    });
  });
});
