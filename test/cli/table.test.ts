import { describe, expect, it } from 'vitest';
import { age, ageSince } from '../../src/cli/age.ts';
import { CliError } from '../../src/cli/cli-error.ts';
import { formatOf, listed, type Listing } from '../../src/cli/output.ts';
import { table } from '../../src/cli/table.ts';
import { painted } from '../../src/cli/terminal.ts';
import { withProgress } from '../../src/cli/progress.ts';
import { FakeTerminal } from './fake-terminal.ts';

interface Thing {
  name: string;
  size?: number;
}
const LISTING: Listing<Thing> = {
  kind: 'Thing',
  items: [{ name: 'a', size: 10 }, { name: 'longer' }],
  columns: [
    { name: 'NAME', text: ({ name }) => name },
    { name: 'SIZE', text: ({ size }) => size, wide: true },
    { name: 'KIND', text: () => 'thing' },
  ],
  name: ({ name }) => `things/${name}`,
};

describe('a listing', () => {
  it('is a table as kubectl prints it', () => {
    expect(listed(LISTING, 'table')).toBe('NAME     KIND\na        thing\nlonger   thing\n');
    expect(listed(LISTING, 'wide')).toBe('NAME     SIZE     KIND\na        10       thing\nlonger   <none>   thing\n');
    expect(listed(LISTING, 'table', false)).toBe('a        thing\nlonger   thing\n');
  });

  it('is a document for programs, with a version of its own', () => {
    const document: unknown = JSON.parse(listed(LISTING, 'json'));
    expect(document).toEqual({
      apiVersion: 'cli.spillway.dev/v1alpha1',
      kind: 'ThingList',
      items: [{ name: 'a', size: 10 }, { name: 'longer' }],
    });
    expect(listed(LISTING, 'yaml')).toContain('kind: ThingList\nitems:\n  - name: a\n');
    expect(listed(LISTING, 'name')).toBe('things/a\nthings/longer\n');
  });

  it('refuses formats that a verb does not have', () => {
    expect(() => formatOf('jsonpath', ['table', 'json'])).toThrow(CliError);
    expect(() => formatOf('name', ['table', 'json'])).toThrow(/no output format "name"/);
  });

  it('shows text of others as one plain line', () => {
    const hostile = '\u001b[31mred\u001b[0m\nsecond \u202eline';
    expect(table([hostile], [{ name: 'TEXT', text: (text) => text }])).toBe('TEXT\n[31mred[0m second line\n');
  });
});

describe('ages', () => {
  it.each([
    [0, '0s'],
    [119_000, '119s'],
    [120_000, '2m'],
    [312_000, '5m12s'],
    [45 * 60_000, '45m'],
    [3 * 3_600_000 + 5 * 60_000, '3h5m'],
    [26 * 3_600_000, '26h'],
    [3 * 86_400_000 + 3_600_000, '3d1h'],
    [400 * 86_400_000, '400d'],
    [800 * 86_400_000, '2y'],
    [-5_000, '0s'],
  ])('%d ms is %s', (ms, text) => {
    expect(age(ms)).toBe(text);
  });

  it('of what has no time is nothing', () => {
    expect(ageSince(undefined, 0)).toBeUndefined();
    expect(ageSince('yesterday', 0)).toBeUndefined();
  });
});

describe('a terminal', () => {
  it('has colours only where somebody looks who wants them', () => {
    expect(painted(new FakeTerminal({ isTty: true }), 'red', 'no')).toBe('\u001b[31mno\u001b[39m');
    expect(painted(new FakeTerminal(), 'red', 'no')).toBe('no');
    expect(painted(new FakeTerminal({ isTty: true, env: { NO_COLOR: '1' } }), 'red', 'no')).toBe('no');
    expect(painted(new FakeTerminal({ isTty: true, env: { TERM: 'dumb' } }), 'red', 'no')).toBe('no');
  });

  it('is told what takes long, and nothing of what does not', async () => {
    const terminal = new FakeTerminal();
    let finish = (): void => undefined;
    const slow = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const told = withProgress({ note: (line) => (terminal.note(line), finish()) }, 'asking', slow, 5);
    await told;
    expect(terminal.notes).toEqual(['asking ...']);
    expect(await withProgress(terminal, 'asking', Promise.resolve(1), 5)).toBe(1);
    expect(terminal.notes).toHaveLength(1);
  });
});
