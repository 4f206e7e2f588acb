import { afterEach, expect, test, vi } from 'vitest';
import { CliError } from '../../src/cli/cli-error.ts';
import { waitFor, type Look } from '../../src/cli/wait-for.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

function terminal() {
  const notes: string[] = [];
  const stop = new AbortController();
  return { notes, stop, note: (line: string) => void notes.push(line), signal: stop.signal };
}

test('says once what it waits for, and gives what it waited for', async () => {
  const { notes, ...rest } = terminal();
  const looks: Look<string>[] = [{ waitingFor: 'a' }, { waitingFor: 'a' }, { waitingFor: 'b' }, { value: 'done' }];
  const look = async (): Promise<Look<string>> => await Promise.resolve(looks.shift() ?? { value: 'too late' });
  expect(await waitFor(rest, 'it is there', 60_000, look, 'nothing')).toBe('done');
  expect(notes).toEqual(['waiting: a', 'waiting: b']);
});

test('fails with what it waited for last', async () => {
  const { notes: _, ...rest } = terminal();
  const look = async (): Promise<Look<string>> => await Promise.resolve({ waitingFor: 'rain' });
  const failure = await waitFor(rest, 'it is there', 0, look, 'dance').catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(CliError);
  expect(failure).toMatchObject({ message: 'it is there: not within 0 s', reason: 'rain', fix: 'dance' });
});

test('fails with what helps against the last thing it waited for, where that is not as always', async () => {
  const { notes: _, ...rest } = terminal();
  const look = async (): Promise<Look<string>> =>
    await Promise.resolve({ waitingFor: 'sun', fix: 'sing', page: 'songs.md' });
  const failure = await waitFor(rest, 'it is there', 0, look, 'dance').catch((error: unknown) => error);
  expect(failure).toMatchObject({ reason: 'sun', fix: 'sing', page: 'songs.md' });
});

/** Looks at these times, in s. */
function lookedAt(looks: readonly [at: number, seen: Look<string>][]): () => Promise<Look<string>> {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const left = [...looks];
  return async () => {
    const [at, seen] = left.shift() ?? [now, { value: 'too late' }];
    now = at * 1_000;
    return await Promise.resolve(seen);
  };
}

test('while it is known to rest it takes as long as it may in all; its own time counts anew from then on', async () => {
  const rests = { waitingFor: 'spring', rests: true };
  const { notes, ...rest } = terminal();
  const look = lookedAt([
    [0, { waitingFor: 'rain' }],
    [59, rests],
    [1_000, rests],
    [1_059, { waitingFor: 'rain' }],
    [1_060, { value: 'done' }],
  ]);
  expect(await waitFor(rest, 'it is green', 60_000, look, 'dance', { atMostMs: 3_600_000 })).toBe('done');
  expect(notes).toEqual(['waiting: rain', 'waiting: spring', 'waiting: rain']);
});

test.each<[string, [number, Look<string>][], string]>([
  [
    'not within 3600 s',
    [
      [0, { waitingFor: 'spring', rests: true }],
      [3_600, { waitingFor: 'spring', rests: true }],
    ],
    'spring',
  ],
  [
    'not within 160 s',
    [
      [100, { waitingFor: 'spring', rests: true }],
      [160, { waitingFor: 'rain' }],
    ],
    'rain',
  ],
  [
    'not within 60 s',
    [
      [0, { waitingFor: 'rain' }],
      [60, { waitingFor: 'rain' }],
    ],
    'rain',
  ],
])('gives up %s', async (words, looks, reason) => {
  const { notes: _, ...rest } = terminal();
  const waited = waitFor(rest, 'it is green', 60_000, lookedAt(looks), 'dance', { atMostMs: 3_600_000 });
  const failure = await waited.catch((error: unknown) => error);
  expect(failure).toMatchObject({ message: `it is green: ${words}`, reason });
});

test('has no more time for what rests, unless that is said', async () => {
  const { notes: _, ...rest } = terminal();
  const look = lookedAt([[60, { waitingFor: 'spring', rests: true }]]);
  await expect(waitFor(rest, 'it is green', 60_000, look, 'dance')).rejects.toThrow('not within 60 s');
});

test('ends when the person wants to stop', async () => {
  const { stop, notes: _, ...rest } = terminal();
  const look = async (): Promise<Look<string>> => {
    stop.abort();
    return await Promise.resolve({ waitingFor: 'rain' });
  };
  await expect(waitFor(rest, 'it is there', 60_000, look, 'dance')).rejects.toThrow('interrupted');
});
