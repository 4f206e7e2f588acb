import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { compare } from '../../hack/conformance/comparison.ts';
import { conformancePage, isConformant, type Findings } from '../../hack/conformance/page.ts';
import { goTestOutcomes, outcomesOf, type Outcome } from '../../hack/conformance/report.ts';
import { imagesFor } from '../../hack/conformance/suite-images.ts';
import { dockerArchive } from '../../hack/images.ts';
import { describeTool } from '../../hack/tools.ts';

const outcome = (name: string, state: Outcome['state'], more: Partial<Outcome> = {}): Outcome => ({
  name,
  state,
  message: '',
  attempts: 1,
  seconds: 1,
  ...more,
});
const run = (...outcomes: Outcome[]): Map<string, Outcome> => new Map(outcomes.map((one) => [one.name, one]));

describe('reports', () => {
  test('of ginkgo: what ran, by its whole name; what the selection left out is not in it', () => {
    const spec = (texts: string[], leaf: string, more: object): object => ({
      LeafNodeType: 'It',
      ContainerHierarchyTexts: texts,
      LeafNodeText: leaf,
      NumAttempts: 1,
      RunTime: 2_500_000_000,
      ...more,
    });
    const report = [
      {
        SpecReports: [
          { LeafNodeType: 'SynchronizedBeforeSuite', State: 'passed' },
          spec(['[sig-node] Pods'], 'run [Conformance]', { State: 'passed', NumAttempts: 2 }),
          spec(['[sig-node]', 'Probes'], 'fail', { State: 'failed', Failure: { Message: ' no luck \n' } }),
          spec([], 'hang', { State: 'timedout', Failure: { Message: 'too long' } }),
          spec([], 'not here', { State: 'skipped', Failure: { Message: 'needs two nodes' } }),
          spec([], 'not asked for', { State: 'skipped' }),
          spec([], 'later', { State: 'pending' }),
        ],
      },
      { SpecReports: null },
    ];
    expect([...outcomesOf(JSON.stringify(report)).values()]).toEqual([
      outcome('[sig-node] Pods run [Conformance]', 'passed', { attempts: 2, seconds: 2.5 }),
      outcome('[sig-node] Probes fail', 'failed', { message: 'no luck', seconds: 2.5 }),
      outcome('hang', 'failed', { message: 'too long', seconds: 2.5 }),
      outcome('not here', 'skipped', { message: 'needs two nodes', seconds: 2.5 }),
    ]);
  });

  test('of go test: tests without subtests, and subtests', () => {
    const text = `=== RUN   TestAll
    basic.go:12: --- not a result
--- FAIL: TestAll (12.30s)
    --- PASS: TestAll/TestGetPods (2.03s)
    --- FAIL: TestAll/TestStats (0.10s)
    --- SKIP: TestAll/TestOther (0.00s)
--- PASS: TestAlone (1.00s)
`;
    expect(goTestOutcomes(text).map(({ name, state, seconds }) => [name, state, seconds])).toEqual([
      ['TestAll/TestGetPods', 'passed', 2.03],
      ['TestAll/TestStats', 'failed', 0.1],
      ['TestAll/TestOther', 'skipped', 0],
      ['TestAlone', 'passed', 1],
    ]);
  });
});

describe('comparison', () => {
  test('says what the virtual node breaks, and never takes what did not run for a success', () => {
    const direct = run(
      outcome('both', 'passed'),
      outcome('broken', 'passed'),
      outcome('cut off', 'passed'),
      outcome('skips there', 'passed'),
      outcome('here only', 'failed'),
      outcome('never', 'failed', { message: 'wrong image' }),
      outcome('neither', 'skipped', { message: 'no feature' }),
      outcome('odd', 'skipped'),
    );
    const virtual = run(
      outcome('both', 'passed', { attempts: 2 }),
      outcome('broken', 'failed', { message: 'why' }),
      outcome('skips there', 'skipped'),
      outcome('here only', 'passed'),
      outcome('never', 'failed'),
      outcome('neither', 'skipped'),
      outcome('odd', 'failed'),
    );
    const result = compare(direct, virtual);
    expect(result.passed).toEqual(['both']);
    expect(result.broken.map(({ name, message }) => [name, message])).toEqual([
      ['broken', 'why'],
      ['cut off', 'it did not run'],
      ['skips there', ''],
    ]);
    expect(result.better).toEqual(['here only']);
    expect(result.failed.map((one) => one.direct.name)).toEqual(['never', 'odd']);
    expect(result.skipped.map(({ name }) => name)).toEqual(['neither']);
    expect(result.unsteady).toEqual([{ name: 'both', where: 'the virtual node' }]);
  });
});

describe('page', () => {
  const findings = (direct: Map<string, Outcome>, virtual: Map<string, Outcome>): Findings => ({
    version: '0.1.0 (7e42537)',
    kubernetes: 'v1.36.3',
    runtime: 'containerd 1.6.20',
    comparison: compare(direct, virtual),
    leftOut: [{ pattern: 'ImageVolume', reason: 'no registry' }],
    gaps: ['no compiler'],
    virtualKubelet: { version: 'v1.13.0', outcomes: [outcome('TestEndToEnd/TestGetPods', 'passed')] },
  });

  test('counts, names and reasons are on it', () => {
    const page = conformancePage(
      findings(
        run(outcome('a', 'passed'), outcome('b', 'failed', { message: 'expected <x>|y\nmore' })),
        run(outcome('a', 'passed'), outcome('b', 'failed')),
      ),
    );
    expect(page).toContain('with version 0.1.0 (7e42537).');
    expect(page).toContain('| passed | 1 | 1 |\n| failed | 1 | 1 |\n');
    expect(page).toContain('Nothing that passes on the member fails through the virtual node.');
    expect(page).toContain('### Failing on both\n\n- b: expected \\<x\\>\\|y\n');
    expect(page).toContain('### Left out\n\n- ImageVolume: no registry\n');
    expect(page).toContain('- no compiler\n');
    expect(page).toContain('### Passed on both\n\n- a\n');
    expect(page).toContain('| TestGetPods | passed |');
  });

  test('something broken is said, and is not conformant; neither is a failing test of the other suite', () => {
    const broken = findings(run(outcome('a', 'passed')), run(outcome('a', 'failed', { message: 'oh' })));
    expect(isConformant(broken)).toBe(false);
    expect(conformancePage(broken)).toContain('**1 that pass on the member fail through the virtual node.**');
    expect(conformancePage(broken)).toContain('- a: oh\n');
    const well = findings(run(outcome('a', 'passed')), run(outcome('a', 'passed')));
    expect(isConformant(well)).toBe(true);
    const { virtualKubelet } = well;
    for (const outcomes of [[outcome('x', 'failed')], []]) {
      expect(isConformant({ ...well, virtualKubelet: { ...virtualKubelet, outcomes } })).toBe(false);
    }
    expect(isConformant(findings(run(), run()))).toBe(false);
  });
});

describe('images of the suite', () => {
  const program = Buffer.from('program');
  const parts = { agnhost: program, busybox: program, applets: ['sh', 'wget'], nonewprivs: program };

  test('have every name and tag that the suite asks for and we can make', () => {
    const listed = [
      'agnhost:2.63.0',
      'agnhost:2.55',
      'busybox:1.37.0-1',
      'nonroot:1.5',
      'nonewprivs:1.4',
      'kitten:1.8',
    ];
    const images = imagesFor(['other.test/busybox:1', ...listed.map((image) => `spillway.test/e2e/${image}`)], parts);
    expect(images.flatMap(({ tags }) => tags).sort()).toEqual(
      ['agnhost:2.55', 'agnhost:2.63.0', 'busybox:1.37.0-1', 'nonewprivs:1.4', 'nonroot:1.5'].map(
        (image) => `spillway.test/e2e/${image}`,
      ),
    );
    expect(images.find(({ tags }) => tags[0]?.includes('nonroot') === true)?.config).toMatchObject({ User: '1234' });
    expect(imagesFor(['spillway.test/e2e/nonewprivs:1.4'], { ...parts, nonewprivs: undefined })).toEqual([]);
  });

  test('nonewprivs has a program that runs as its owner', () => {
    const [image] = imagesFor(['spillway.test/e2e/nonewprivs:1.4'], parts);
    const dir = mkdtempSync(join(tmpdir(), 'nonewprivs-'));
    try {
      writeFileSync(join(dir, 'layer.tar'), image?.layers.at(-1)?.tar ?? '');
      const list = execFileSync('tar', ['-tvf', join(dir, 'layer.tar')], { encoding: 'utf8' });
      expect(list).toMatch(/^-rwsr-xr-x .* usr\/bin\/nnp\n$/);
      expect(dockerArchive(image === undefined ? [] : [image]).includes('"Cmd":["nnp"]')).toBe(true);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

test('test programs are compiled from the tests of a package, with its version', () => {
  const e2e = describeTool('e2e.test');
  expect(e2e.goCommand).toEqual(['test', '-c', '-vet=off']);
  expect(e2e.version).toBe(describeTool('kubelet').version);
  expect(e2e.goFlags.join(' ')).toContain(`version.gitVersion=${e2e.version}`);
  expect(describeTool('ginkgo').version).toMatch(/^v2\./);
  expect(describeTool('virtual-kubelet.test').goFlags).toEqual(expect.arrayContaining(['-tags', 'e2e']));
  expect(describeTool('kubelet').goCommand).toEqual(['build']);
});
