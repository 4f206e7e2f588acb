import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkImports, goneFromRules } from '../../hack/lint/import-rules.ts';
import { importsOf } from '../../hack/lint/module-imports.ts';

/** A small house in which everything is in order. */
const GOOD: Record<string, string> = {
  'src/version.ts': 'export const version = 1;',
  'src/kube/object.ts': 'export interface O {}',
  'src/kube/verbs.ts': 'export const [evict, get] = [1, 2];',
  'src/kube/client.ts':
    "import { Pool } from 'undici';\nimport type { O } from './object.ts';\nexport class KubeClient {}",
  'src/api/kind.ts': "import type { O } from '../kube/object.ts';",
  'src/serving/listener.ts': "import type { O } from '../kube/object.ts';\nimport '../api/kind.ts';",
  'src/pods/translate.ts':
    "import { part } from './translate-part.ts';\nimport type { KubeClient } from '../kube/client.ts';",
  'src/pods/translate-part.ts': "import { createHash } from 'node:crypto';\nexport const part = 1;",
  'src/pods/act.ts': "import { KubeClient } from '../kube/client.ts';\nimport { t } from './translate.ts';",
  'src/placement/p.ts': "import type { F } from '../capacity/fit.ts';",
  'src/capacity/fit.ts': "import type { O } from '../api/kind.ts';",
  'src/nodes/keeper.ts': "import { fit } from '../capacity/fit.ts';\nimport { version } from '../version.ts';",
  'src/descheduler/drain.ts': "import type { KubeClient } from '../kube/client.ts';",
  'src/descheduler/mover.ts':
    "import { KubeClient } from '../kube/client.ts';\nimport { d } from './drain.ts';\nimport { evict, get } from '../kube/verbs.ts';",
  'src/config.ts': "import { z } from 'zod';",
  'src/cli/verb.ts': "import '../pods/act.ts';\nimport '../nodes/keeper.ts';",
  'src/cli/ui/page/main.tsx':
    "import { render } from 'preact';\nimport { useState } from 'preact/hooks';\nimport './part.tsx';\nimport type { v } from '../view.ts';",
  'src/cli/ui/page/part.tsx': 'export const part = 1;',
  'src/cli/ui/view.ts': 'export interface V {}',
  'src/cli/main.ts': "import './verb.ts';\nimport { version } from '../version.ts';",
  'src/pods/serve.ts': "import '../serving/listener.ts';",
  'src/manager/member.ts': "import '../nodes/keeper.ts';\nimport '../pods/act.ts';",
  'src/manager/manager.ts':
    "import './member.ts';\nimport '../nodes/keeper.ts';\nimport '../pods/act.ts';\nimport { c } from '../config.ts';",
  'src/main.ts': "import './manager/manager.ts';\nimport { c } from './config.ts';",
};

const check = (changes: Record<string, string>): string[] =>
  checkImports(new Map(Object.entries({ ...GOOD, ...changes })));

test('a house in order has no breaches', () => {
  expect(check({})).toEqual([]);
});

describe('breaches', () => {
  test.each<[string, string, string, RegExp]>([
    ['kube importing api', 'src/kube/bad.ts', "import { x } from '../api/kind.ts';", /kube knows nothing of Spillway/],
    [
      'the page importing code',
      'src/cli/ui/page/bad.tsx',
      "import { v } from '../view.ts';",
      /a browser has only the page/,
    ],
    [
      'the page importing Node.js',
      'src/cli/ui/page/bad.tsx',
      "import { v } from 'node:fs';",
      /a browser has only the page/,
    ],
    [
      'the page knowing a room',
      'src/cli/ui/page/bad.tsx',
      "import type { x } from '../../../pods/act.ts';",
      /a browser has only/,
    ],
    ['a verb importing the page', 'src/cli/bad.ts', "import './ui/page/main.tsx';", /only browsers load the page/],
    ['kube importing even a type', 'src/kube/bad.ts', "import type { x } from '../pods/act.ts';", /kube knows nothing/],
    ['kube importing the version', 'src/kube/bad.ts', "import { v } from '../version.ts';", /kube knows nothing/],
    ['api importing a room', 'src/api/bad.ts', "import { x } from '../capacity/fit.ts';", /api may import only kube/],
    ['one effect room importing another', 'src/nodes/bad.ts', "import { x } from '../pods/act.ts';", /as interfaces/],
    ['the same by a type', 'src/nodes/bad.ts', "import type { x } from '../pods/act.ts';", /as interfaces/],
    ['the same by a re-export', 'src/nodes/bad.ts', "export * from '../pods/act.ts';", /as interfaces/],
    ['the same on demand', 'src/nodes/bad.ts', "const x = await import('../pods/act.ts');", /as interfaces/],
    [
      'the same over several lines',
      'src/nodes/bad.ts',
      "import {\n  a,\n  b,\n} from '../pods/act.ts';",
      /bad\.ts:4: /,
    ],
    ['serving importing a room', 'src/serving/bad.ts', "import { x } from '../pods/act.ts';", /only kube, api/],
    [
      'api importing serving',
      'src/api/bad.ts',
      "import { x } from '../serving/listener.ts';",
      /api may import only kube/,
    ],
    ['a room importing the manager', 'src/pods/bad.ts', "import { m } from '../manager/member.ts';", /only manager/],
    ['a room importing a verb', 'src/pods/bad.ts', "import '../cli/verb.ts';", /nothing knows the verbs/],
    ['the manager importing a verb', 'src/manager/bad.ts', "import '../cli/verb.ts';", /nothing knows the verbs/],
    ['a verb importing the manager', 'src/cli/bad.ts', "import '../manager/member.ts';", /verbs run without/],
    ['a room importing the configuration', 'src/pods/bad.ts', "import { c } from '../config.ts';", /only manager/],
    ['the configuration importing a room', 'src/config.ts', "import { a } from './pods/act.ts';", /only manager/],
    [
      'a second evictor',
      'src/pods/bad.ts',
      "import { get, evict as go } from '../kube/verbs.ts';",
      /imports evict: only/,
    ],
    ['the same in its room', 'src/descheduler/bad.ts', "import { evict } from '../kube/verbs.ts';", /imports evict/],
    ['the same by a verb', 'src/cli/bad.ts', "import { evict } from '../kube/verbs.ts';", /imports evict: only/],
    ['the same by all of it', 'src/pods/bad.ts', "import * as verbs from '../kube/verbs.ts';", /imports evict: only/],
    ['the same by a re-export', 'src/kube/bad.ts', "export * from './verbs.ts';", /imports evict: only/],
    ['the same on demand', 'src/pods/bad.ts', "const v = await import('../kube/verbs.ts');", /imports evict: only/],
    ['a file beside main.ts', 'src/wiring.ts', 'export const a = 1;', /stands at the top/],
    [
      'two rooms that know each other',
      'src/capacity/bad.ts',
      "import type { d } from '../pods/decide.ts';\nimport type { p } from '../placement/p.ts';",
      /import cycle: src\/capacity -> src\/placement -> src\/capacity/,
    ],
    [
      'a pure file that reads files',
      'src/pods/translate-bad.ts',
      "import { x } from 'node:fs/promises';",
      /loads I\/O/,
    ],
    [
      'a pure file with a client',
      'src/capacity/bad.ts',
      "import { KubeClient } from '../kube/client.ts';",
      /client\.ts -> undici/,
    ],
    [
      'a pure file that loads its room’s effects',
      'src/pods/decide.ts',
      "import { a } from './act.ts';",
      /is pure, but/,
    ],
    [
      'a strategy that asks a server itself',
      'src/descheduler/drain.ts',
      "import { get } from '../kube/client.ts';",
      /drain\.ts: is pure, but loads I\/O/,
    ],
    [
      'a strategy that evicts',
      'src/descheduler/member-lost.ts',
      "import { Mover } from './mover.ts';",
      /member-lost\.ts: is pure/,
    ],
    [
      'steps of a release that read the time',
      'src/descheduler/release-step.ts',
      'export const at = Date.now();',
      /release-step\.ts: is pure, but reads Date\.now/,
    ],
    [
      'a pure file with the clock of the machine',
      'src/members/leaving/leaving-words.ts',
      "import { monotonic } from '../kube/clock.ts';",
      /leaving-words\.ts: is pure, but reads kube\/clock/,
    ],
    [
      'a strategy that another room uses',
      'src/nodes/bad.ts',
      "import { drain } from '../descheduler/drain.ts';",
      /as interfaces/,
    ],
    ['the program importing test code', 'src/pods/bad.ts', "import { a } from '../../test/a.ts';", /outside src/],
    ['a room nobody has heard of', 'src/pods/bad.ts', "import { a } from '../strange/a.ts';", /strange is a room/],
  ])('%s', (_what, path, text, message) => {
    const breaches = check({ [path]: text });
    expect(breaches.length).toBeGreaterThan(0);
    expect(breaches.join('\n')).toMatch(message);
  });

  test('a circle is told once', () => {
    const breaches = check({
      'src/nodes/a.ts': "import './b.ts';",
      'src/nodes/b.ts': "import './c.ts';",
      'src/nodes/c.ts': "import './a.ts';",
    });
    expect(breaches).toEqual([
      'src/nodes/a.ts: import cycle: src/nodes/a.ts -> src/nodes/b.ts -> src/nodes/c.ts -> src/nodes/a.ts',
    ]);
  });

  test('a circle of types alone is none', () => {
    const types = {
      'src/nodes/a.ts': "import type { B } from './b.ts';",
      'src/nodes/b.ts': "import { A } from './a.ts';",
    };
    expect(check(types)).toEqual([]);
  });
});

test('a rule that names a file which is gone is told of', () => {
  const paths = readdirSync('src', { recursive: true, encoding: 'utf8' }).map((path) => `src/${path}`);
  expect(goneFromRules(paths)).toEqual([]);
  const gone = ['src/descheduler/drain.ts', 'src/scheduler/kinds-to-follow.ts'];
  expect(goneFromRules(paths.filter((path) => !gone.includes(path)))).toEqual([
    'scheduler/kinds-to-follow.ts: is held pure by a rule, and is not there',
    'descheduler/drain.ts: is held pure by a rule, and is not there',
  ]);
});

describe('the scanner', () => {
  test('sees every form of import', () => {
    const source = [
      "import a from 'one';",
      "import type { B } from 'two';",
      "import { type C, type D } from 'three';",
      "import { type E, f } from 'four';",
      "import 'five';",
      "export { g } from 'six';",
      "export * as h from 'seven';",
      "const i = await import('eight');",
      'import j, { k } from "nine";',
    ].join('\n');
    expect(importsOf(source)).toEqual([
      { specifier: 'one', typeOnly: false, names: ['default'], line: 1 },
      { specifier: 'two', typeOnly: true, names: ['B'], line: 2 },
      { specifier: 'three', typeOnly: true, names: ['C', 'D'], line: 3 },
      { specifier: 'four', typeOnly: false, names: ['E', 'f'], line: 4 },
      { specifier: 'five', typeOnly: false, names: [], line: 5 },
      { specifier: 'six', typeOnly: false, names: ['g'], line: 6 },
      { specifier: 'seven', typeOnly: false, names: ['*'], line: 7 },
      { specifier: 'eight', typeOnly: false, names: ['*'], line: 8 },
      { specifier: 'nine', typeOnly: false, names: ['default', 'k'], line: 9 },
    ]);
  });

  test('is not fooled by comments, strings and templates', () => {
    const source = [
      "// import a from 'one';",
      "/* import b from 'two'; */",
      'const c = "import d from \'three\'";',
      "const e = `import f from 'four'`;",
      "const url = 'http://x'; import g from 'five';",
    ].join('\n');
    expect(importsOf(source).map((one) => one.specifier)).toEqual(['five']);
  });
});
