import { expect, test } from 'vitest';
import { CliError } from '../../src/cli/cli-error.ts';
import { waitFor, type Look } from '../../src/cli/wait-for.ts';

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

test('ends when the person wants to stop', async () => {
  const { stop, notes: _, ...rest } = terminal();
  const look = async (): Promise<Look<string>> => {
    stop.abort();
    return await Promise.resolve({ waitingFor: 'rain' });
  };
  await expect(waitFor(rest, 'it is there', 60_000, look, 'dance')).rejects.toThrow('interrupted');
});
