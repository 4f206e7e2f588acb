/**
 * `node dist/test/sim/planted.js [NAME...]`: puts each mistake into a copy of the program and looks after how many histories
 * the simulator finds it, by the rule that the mistake is about. Exit code 1 when one is not found, or when its place in the program
 * cannot be found any more.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isShownIn, type Mistake } from './mistakes/mistake.ts';
import { MISTAKES } from './planted-mistakes.ts';
import { FIRST_LATER, LATER_THEMES } from './themes.ts';

/** So many histories may be needed. */
const MOST = 2_000;
const root = resolve(import.meta.dirname, '../../..');

function plant(folder: string, { name, edits }: Mistake): void {
  for (const file of ['src', 'test/sim', 'test/fixtures']) {
    cpSync(join(root, file), join(folder, file), { recursive: true });
  }
  for (const file of ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'tsconfig.sim.json']) {
    cpSync(join(root, file), join(folder, file));
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of edits) {
    const path = join(folder, 'src', file);
    const text = readFileSync(path, 'utf8');
    if (!text.includes(from)) throw new Error(`${name}: src/${file} has no such place any more:\n${from}`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
  }
  // A mistake may leave something unused: types are not what is looked at here.
  const built = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.sim.json', '--noCheck'], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`${name}: ${built.stdout}${built.stderr}`);
}

function run(folder: string, args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'dist/test/sim/main.js'), ...args], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

function find(mistake: Mistake): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-planted-'));
  try {
    plant(folder, mistake);
    const began = performance.now();
    const { seed: known } = mistake;
    if (known !== undefined && run(root, ['run', '1', String(known)]).status === 0) {
      const { status, output } = run(folder, ['run', '1', String(known)]);
      if (status === 1 && isShownIn(output, mistake)) return `shown by ${output.split('\n')[0]?.slice(0, 200)}`;
    }
    let other = '';
    const first = (mistake.theme ?? '') in LATER_THEMES ? FIRST_LATER : 1;
    const last = first + MOST - 1;
    for (let from = first; from <= last;) {
      const theme = mistake.theme === undefined ? [] : [mistake.theme];
      const { status, output } = run(folder, ['find', String(last - from + 1), String(from), ...theme]);
      const line = output.split('\n').find((one) => one.startsWith('seed '));
      const seed = Number(line?.match(/^seed (\d+)/)?.[1]);
      if (status !== 1 || line === undefined)
        throw new Error(`not found in ${MOST} histories${other}: ${output.slice(-500)}`);
      const isOwn = isShownIn(line, mistake);
      if (!isOwn) other = `, by another rule last in ${line.slice(0, 200)}`;
      // What the program does without the mistake, too, says nothing about it.
      if (isOwn && run(root, ['run', '1', String(seed)]).status === 0) {
        const seconds = ((performance.now() - began) / 1_000).toFixed(0);
        return `found by seed ${seed}${theme.map((name) => ` (only theme ${name})`).join('')}, ${seconds} s: ${line.slice(0, 200)}`;
      }
      from = seed + 1;
    }
    throw new Error('not found');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const only = process.argv.slice(2);
const rows: string[] = [];
for (const mistake of MISTAKES.filter(({ name }) => only.length === 0 || only.includes(name))) {
  let result: string;
  try {
    result = find(mistake);
  } catch (error) {
    result = error instanceof Error ? error.message : String(error);
    process.exitCode = 1;
  }
  console.log(`${mistake.name}: ${result}`);
  rows.push(`| ${mistake.name} | ${result.replaceAll(/[\n|]/g, ' ').slice(0, 120)} |`);
}
console.log(`\n| mistake | found |\n|---|---|\n${rows.join('\n')}`);
