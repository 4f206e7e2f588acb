import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { fixOfRefusal } from '../../src/cli/refused-move.ts';
import { reportLines, resultLines, waitingFor } from '../../src/cli/move-text.ts';
import type { MigratedWorkload, WorkloadMigration } from '../../src/api/workload-migration.ts';
import { MovesStop } from '../../src/descheduler/moves-stop.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const web = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const entry = (more: Partial<MigratedWorkload>): MigratedWorkload => ({
  workload: web,
  pods: 3,
  waiting: 3,
  moving: 0,
  moved: 0,
  reason: 'Fits',
  ...more,
});
const migration = (status?: WorkloadMigration['status']): WorkloadMigration => ({
  metadata: { name: 'm', namespace: 'shop' },
  spec: { workloads: [web], all: false, from: 'east', unmovable: 'Refuse', dryRun: false, suspend: false },
  ...(status === undefined ? {} : { status }),
});

describe('what is said of a migration', () => {
  it('before: whether each workload fits, and why not; on one plain line', () => {
    const hostile = entry({
      pods: 1,
      reason: 'DoesNotFit',
      message: 'a place for 0 of 1 pod (member b: \u001b[31mno\nroom)',
    });
    expect(reportLines(migration({ workloads: [entry({ reason: 'Moving' }), hostile] }))).toEqual([
      'deployment/web: 3 pods: Fits',
      expect.stringMatching(/^deployment\/web: 1 pod: DoesNotFit: a place for 0 of 1 pod \(member b: .*no.*room\)$/),
    ]);
    expect(reportLines(migration({ workloads: [hostile] })).join()).not.toContain('\u001B');
    expect(waitingFor(migration())).toEqual({ waitingFor: 'the manager to judge whether all of it fits' });
  });

  it('before: that there is nothing to move', () => {
    const message = 'none of its pods is in member east';
    const none = (['Fits', 'Moving', 'Moved'] as const).map((reason) => entry({ pods: 0, reason, message }));
    expect([...new Set(reportLines(migration({ workloads: none })))]).toEqual([
      'deployment/web: no pods in member east',
    ]);
    const gone = entry({ pods: 0, reason: 'NotFound', message: 'there is no such workload' });
    expect(reportLines(migration({ workloads: [gone] }))).toEqual([
      'deployment/web: 0 pods: NotFound: there is no such workload',
    ]);
  });

  it.each<[MigratedWorkload['reason'][], RegExp]>([
    [['DoesNotFit'], /^by what the reason says make room, .*nodeSelector.*kubectl spillway clusters/],
    [['Unmovable', 'Fits'], /^with --leave-unmovable these pods stay/],
    [['AlreadyMoving'], /^wait until the other one is over, .*kubectl get workloadmigrations -n shop/],
    [['NoPolicy'], /^write a PlacementPolicy that chooses it, or label namespace shop/],
    [['NotFound'], /^name the Deployment, StatefulSet or other workload/],
    [
      ['DoesNotFit', 'Unmovable', 'DoesNotFit'],
      /^with --leave-unmovable [^;]*; by what the reason says [^;]*; kubectl/,
    ],
    [[], /^see kubectl spillway clusters: is east there, and does it answer\?/],
  ])('what helps against a refusal for %j', (reasons, fix) => {
    expect(fixOfRefusal(migration({ workloads: reasons.map((reason) => entry({ reason })) }))).toMatch(fix);
  });

  it('afterwards: how many of its pods moved, and why others did not', () => {
    const workloads = [
      entry({ moved: 3, waiting: 0, reason: 'Moved' }),
      entry({ moved: 1, waiting: 2, reason: 'PodsStay', message: 'no room' }),
    ];
    expect(resultLines(migration({ workloads }))).toEqual([
      'deployment/web: 3 of 3 pods moved',
      'deployment/web: 1 of 3 pods moved (PodsStay: no room)',
    ]);
  });
});

describe('the verb', () => {
  const PATH = '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadmigrations';
  let folder: string;
  let api: MemoryApi;
  let server: MemoryApiServer;
  let terminal: FakeTerminal;
  /** What a manager would write as soon as there is something to judge. */
  let timer: NodeJS.Timeout | undefined;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'move-'));
    api = new MemoryApi();
    server = await serveMemoryApi(api);
    writeKubeconfig(join(folder, 'config'), { host: server });
    terminal = new FakeTerminal();
    const make = (path: string, body: object): void =>
      void api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
    make('/apis/apps/v1/namespaces/shop/deployments', { ...web, metadata: { name: 'web', namespace: 'shop' } });
    for (const name of ['a', 'b']) make('/apis/spillway.dev/v1alpha1/memberclusters', { metadata: { name } });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    clearInterval(timer);
    await server.close();
    rmSync(folder, { recursive: true });
  });

  const move = async (...words: string[]): Promise<number> =>
    await runProgram(['move', '-n', 'shop', '--kubeconfig', join(folder, 'config'), ...words], terminal);
  const stored = (): string[] => [...api.objects.keys()].filter((key) => key.startsWith(PATH));
  const writes = (): string[] => api.seen.filter(({ method }) => method !== 'GET').map(({ method }) => method);
  /** Of the migration that is made from now on, whatever others are there. */
  const showStatus = (status: object): void => {
    const others = new Set(stored());
    timer = setInterval(() => {
      for (const key of stored().filter((one) => !others.has(one))) api.edit(key, { status });
    }, 20);
  };

  const answer = (status: 'True' | 'False', more: object = {}): void => {
    const conditions = [{ type: 'Fits', status, reason: 'x', message: 'deployment/web: no room' }];
    const workloads = [entry(status === 'True' ? {} : { reason: 'DoesNotFit', message: 'no room' })];
    showStatus({ conditions, workloads, ...more });
  };

  it.each([
    [['--from', 'a'], 2, 'no workload is named'],
    [['deployment/web', '--all', '--from', 'a'], 2, 'workloads are named, and --all is given'],
    [['deployment/web', '--from', 'local'], 2, 'pods are moved out of members only'],
    [['deployment/web', '--from', 'a', '--to', 'a'], 2, 'they are to go where they are'],
    [['web', '--from', 'a'], 2, 'web is not the name of a workload'],
    [['deployment/web'], 2, "required option '--from <member>' not specified"],
    [['deployment/gone', '--from', 'a'], 4, 'deployments.apps "gone" not found'],
    [['deployment/web', '--from', 'moon'], 4, 'there is no member moon: there are a, b'],
    [['deployment/web', '--from', 'a', '--to', 'moon'], 4, 'there is no member moon: there are a, b'],
    [
      ['deploy/wbe', '--from', 'a'],
      4,
      'deployments.apps "wbe" not found (the cluster of context host)\nfix: did you mean deployment/web?',
    ],
  ])('refuses move %j with %i, and sends nothing', async (words, code, error) => {
    expect(await move(...words)).toBe(code);
    expect(terminal.notes.join('\n')).toContain(error);
    expect(writes()).toEqual([]);
  });

  describe('with another WorkloadMigration there', () => {
    const there = (spec: object, status: object = {}): void => {
      api.put(`${PATH}/web-90ab12`, {
        apiVersion: 'spillway.dev/v1alpha1',
        kind: 'WorkloadMigration',
        metadata: { name: 'web-90ab12', namespace: 'shop', generation: 1, uid: 'there' },
        spec: { workloads: [web], from: 'a', to: 'b', ...spec },
        status: { observedGeneration: 1, ...status },
      });
    };
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const fits = { type: 'Fits', status: 'True', reason: 'AllFit', message: '', lastTransitionTime };
    const complete = { type: 'Complete', status: 'False', reason: 'Progressing', message: '', lastTransitionTime };
    const underWay = { conditions: [fits, complete], workloads: [entry({ moved: 1, moving: 1, reason: 'Moving' })] };

    it.each([
      ['of the same workload', {}, ['deploy/web', '--from', 'a']],
      ['out of another member', { from: 'b', to: 'a' }, ['deploy/web', '--from', 'a']],
      ['of all there', { workloads: undefined, all: true }, ['deploy/web', '--from', 'a']],
    ])('%s: makes none, and says how far that one is and how to take it back', async (_, spec, words) => {
      there(spec, underWay);
      expect(await move(...words)).toBe(5);
      expect(writes()).toEqual([]);
      const notes = terminal.notes.join('\n');
      expect(notes).toMatch(
        /^error: no other WorkloadMigration was made, as web-90ab12 moves the same already\nreason: migration shop\/web-90ab12: \w to \w, 1 of 3 pods moved, 1 on the way/,
      );
      expect(notes).toContain('kubectl get workloadmigration web-90ab12 -n shop -w shows how far it is');
      expect(notes).toContain('take it back first: kubectl delete workloadmigration web-90ab12 -n shop');
    });

    it('that is suspended: says that it is there, and what becomes of it', async () => {
      there({ suspend: true }, { ...underWay, conditions: [fits, { ...complete, reason: 'Suspended' }] });
      expect(await move('deploy/web', '--from', 'a', '--dry-run=client')).toBe(0);
      expect(terminal.notes[0]).toBe(
        'note: another one of the same is there, and not over: migration shop/web-90ab12: a to b, 1 of 3 pods moved, suspended. ' +
          'It goes on with what is left when its spec.suspend is false. To take it back: kubectl delete workloadmigration web-90ab12 -n shop',
      );
    });

    it('that goes on: a dry run is told of it, and answered', async () => {
      there({}, underWay);
      answer('True');
      expect(await move('deploy/web', '--from', 'a', '--dry-run=server')).toBe(0);
      expect(terminal.notes[0]).toMatch(
        /^note: another one .* 1 of 3 pods moved, 1 on the way\. It goes on by itself\. To take/,
      );
      expect(terminal.stdout).toContain('deployment/web: 3 pods: Fits');
    });

    it.each([
      ['over', {}, { ...underWay, finishTime: '2026-01-01T00:00:00Z' }],
      ['a dry run', { dryRun: true }, {}],
      ['of another workload', { workloads: [{ ...web, name: 'db' }] }, underWay],
      ['of all that is in another member', { workloads: undefined, all: true, from: 'b', to: 'a' }, underWay],
    ])('that is %s: does not mind it', async (_, spec, status) => {
      there(spec, status);
      expect(await move('deploy/web', '--from', 'a', '--dry-run=client')).toBe(0);
      expect(terminal.notes.join()).not.toContain('web-90ab12');
    });
  });

  it('sends nothing in a dry run of the client', async () => {
    expect(await move('deploy/web', '--from', 'a', '--to', 'b', '--dry-run=client')).toBe(0);
    expect(terminal.stdout).toMatch(/^workloadmigration\.spillway\.dev\/web-[0-9a-f]{6} created \(dry run\)\n$/);
    expect(writes()).toEqual([]);
  });

  it('prints the report in a dry run of the server, and leaves nothing', async () => {
    answer('True');
    expect(await move('deploy/web', '--from', 'a', '--to', 'local', '--dry-run=server')).toBe(0);
    expect(terminal.stdout.split('\n')[1]).toBe('deployment/web: 3 pods: Fits');
    const made = api.requests('POST', '/workloadmigrations')[0]?.body as { spec: object };
    expect(made.spec).toMatchObject({ dryRun: true, from: 'a', to: 'local', unmovable: 'Refuse' });
    expect(stored()).toEqual([]);
  });

  it('ends with 5 and the list when it does not fit', async () => {
    answer('False', { finishTime: '2026-01-01T00:00:00Z' });
    expect(await move('--all', '--from', 'a', '--wait')).toBe(5);
    expect(terminal.stdout.split('\n')[1]).toBe('deployment/web: 3 pods: DoesNotFit: no room');
    expect(terminal.notes.join('\n')).toContain(
      'nothing was moved, as not all of it fits\nreason: deployment/web: no room\nfix: by what the reason says make room',
    );
  });

  it('takes no verdict from what is not known yet', async () => {
    const missing = 'it is not known yet whether all of it fits: member b: its nodes are not known yet';
    const conditions = [
      { type: 'Fits', status: 'Unknown', reason: 'NotKnown', message: 'member b: its nodes are not known yet' },
      { type: 'Complete', status: 'False', reason: 'Progressing', message: missing },
    ];
    showStatus({ conditions, workloads: [entry({ reason: 'NotKnown' })] });
    await move('deploy/web', '--from', 'a', '--timeout', '1');
    expect(terminal.notes.join('\n')).toMatch(/it is judged: not within 1 s\nreason: it is not known yet .*member b/);
    expect(terminal.notes.join('\n')).toContain('the rights of manifests/scheduler/descheduler.yaml');
    expect(terminal.stdout).not.toContain('NotKnown');
  });

  it('says that it begins when moves are let go on, where they are stopped', async () => {
    const message = 'all moves are stopped (INC-7); afterwards what is left is judged anew';
    const conditions = [
      { type: 'Fits', status: 'Unknown', reason: 'NotKnown', message: '' },
      { type: 'Complete', status: 'False', reason: 'Suspended', message },
    ];
    showStatus({ conditions, workloads: [] });
    await move('deploy/web', '--from', 'a', '--timeout', '1');
    const notes = terminal.notes.join('\n');
    expect(notes).toMatch(/it is judged: not within 1 s\nreason: all moves are stopped \(INC-7\); /);
    expect(notes).toMatch(/web-\w+ stays, and begins when moves may.*kubectl spillway resume-moves.*kubectl delete/);
    expect(notes).not.toContain('does a manager work');
    expect(stored()).toHaveLength(1);
  });

  it('says what keeps pods that it waits for, on the page about that', async () => {
    const message = 'in member a: 3 pods still there, and 0 on the way; not moved now: deployment/web: its budget';
    const conditions = [
      { type: 'Fits', status: 'True', reason: 'AllFit', message: '' },
      { type: 'Complete', status: 'False', reason: 'Progressing', message },
    ];
    answer('True', { conditions });
    await move('deploy/web', '--from', 'a', '--wait', '--timeout', '1');
    const notes = terminal.notes.join('\n');
    expect(notes).toContain(`waiting: ${message}`);
    expect(notes).toContain(`it is over: not within 1 s\nreason: ${message}`);
    expect(notes).toContain('guides/drain-and-migrate.md');
  });

  it('says that it begins by itself, where pods were moved too often before', async () => {
    const conditions = [
      { type: 'Fits', status: 'Unknown', reason: 'MovedTooOften', message: '' },
      { type: 'Complete', status: 'False', reason: 'Progressing', message: 'it waits: again at 22:57 UTC' },
    ];
    showStatus({ conditions, workloads: [] });
    await move('deploy/web', '--from', 'a', '--timeout', '1');
    const notes = terminal.notes.join('\n');
    expect(notes).toMatch(/not within 1 s\nreason: it waits: again at 22:57 UTC/);
    expect(notes).toMatch(/web-\w+ stays, and begins by itself at that time.*kubectl delete/);
  });

  it.each([
    [
      'the limit of moves within an hour',
      'Fits',
      'Unknown',
      'MovedTooOften',
      'Progressing',
      'it waits: again at 22:57 UTC',
    ],
    ['a stop of all moves', 'Fits', 'Unknown', 'NotKnown', 'Suspended', 'all moves are stopped (INC-7)'],
  ])('with --wait it waits for the end of %s, and says so', async (_, type, status, reason, state, message) => {
    let late = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + late);
    const rests = [
      { type, status, reason, message: '' },
      { type: 'Complete', status: 'False', reason: state, message },
    ];
    const done = [
      { type, status: 'True', reason: 'AllFit', message: '' },
      { type: 'Complete', status: 'True', reason: 'Moved', message: '' },
    ];
    const workloads = [entry({ moved: 3, waiting: 0, reason: 'Moved' })];
    timer = setInterval(() => {
      const looks = api.requests('GET').filter(({ path }) => path.startsWith(`${PATH}/`)).length;
      const isOver = looks > 3;
      const found = isOver
        ? { conditions: done, workloads, finishTime: '2026-01-01T00:00:00Z', observedGeneration: 1 }
        : { conditions: rests };
      for (const key of stored()) api.edit(key, { status: found });
      if (terminal.notes.includes(`waiting: ${message}`)) late = 1_800_000;
    }, 20);
    expect(await move('deploy/web', '--from', 'a', '--wait')).toBe(0);
    expect(terminal.notes).toContain(`waiting: ${message}`);
    expect(terminal.stdout).toContain('\ndeployment/web: 3 of 3 pods moved\n');
  });

  it('--timeout is for the whole, what it takes until it is judged counted in', async () => {
    let late = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + late);
    const stopped = 'all moves are stopped (INC-7)';
    const conditions = (fits: string, reason: string, message: string) => [
      { type: 'Fits', status: fits, reason: 'x', message: '' },
      { type: 'Complete', status: 'False', reason, message },
    ];
    timer = setInterval(() => {
      const isLate = terminal.notes.includes(`waiting: ${stopped}`);
      if (isLate) late = 1_800_000;
      const found = isLate ? conditions('True', 'Progressing', 'it goes') : conditions('Unknown', 'Suspended', stopped);
      for (const key of stored()) api.edit(key, { status: { conditions: found, workloads: [entry({})] } });
      if (terminal.notes.includes('waiting: it goes')) late = 3_600_000;
    }, 20);
    await move('deploy/web', '--from', 'a', '--wait');
    expect(terminal.notes.join('\n')).toContain('it is over: not within 3600 s\nreason: it goes');
  });

  it('with --wait it has a minute all the same where nobody knows whether moves are stopped', () => {
    const said = (message: string): boolean | undefined => {
      const complete = {
        type: 'Complete',
        status: 'False',
        reason: 'Suspended',
        message,
        lastTransitionTime: '',
      } as const;
      return waitingFor(migration({ conditions: [complete] })).rests;
    };
    expect(said('all moves are stopped (INC-7); afterwards what is left is judged anew')).toBe(true);
    const { why = '' } = new MovesStop(() => 0);
    expect(said(`${why}; afterwards what is left is judged anew`)).toBe(false);
  });

  it('says that there is nothing to move', async () => {
    answer('True', { workloads: [] });
    expect(await move('--all', '--from', 'a')).toBe(0);
    expect(terminal.notes).toContain('note: no workload of namespace shop has pods in a');
  });

  it('goes on without waiting, unless told to', async () => {
    answer('True');
    expect(await move('deploy/web', '--from', 'a', '--leave-unmovable')).toBe(0);
    expect(terminal.notes.at(-1)).toMatch(/^note: it goes on; kubectl get workloadmigration web-\w+ -n shop -w/);
    expect(stored()).toHaveLength(1);
  });

  it.each([
    ['True', 0],
    ['False', 5],
  ] as const)('with --wait tells what became of it: Complete %s, %i', async (complete, code) => {
    const conditions = [
      { type: 'Fits', status: 'True', reason: 'AllFit', message: '' },
      { type: 'Complete', status: complete, reason: 'x', message: '' },
    ];
    const workloads = [entry({ moved: 3, waiting: 0, reason: 'Moved' })];
    answer('True', { conditions, workloads, finishTime: '2026-01-01T00:00:00Z', observedGeneration: 1 });
    expect(await move('deploy/web', '--from', 'a', '--wait')).toBe(code);
    expect(terminal.stdout).toContain('\ndeployment/web: 3 of 3 pods moved\n');
  });

  it('with --wait waits on when it was over and somebody edited it, which begins it anew', async () => {
    const status = (state: string, observedGeneration: number, message: string) => ({
      conditions: [
        { type: 'Fits', status: 'True', reason: 'AllFit', message: '' },
        { type: 'Complete', status: state, reason: 'x', message },
      ],
      workloads: [entry({ moved: 3, waiting: 0, reason: 'Moved' })],
      finishTime: '2026-01-01T00:00:00Z',
      observedGeneration,
    });
    timer = setInterval(() => {
      const isSeen = terminal.notes.includes('waiting: as it was before');
      const found = isSeen ? status('True', 2, '') : status('False', 1, 'as it was before');
      for (const key of stored()) api.edit(key, { metadata: { generation: 2 }, status: found });
    }, 20);
    expect(await move('deploy/web', '--from', 'a', '--wait')).toBe(0);
  });
});
