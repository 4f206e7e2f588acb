import { spawn, spawnSync } from 'node:child_process';
import type { Say } from './progress.ts';
import type { Tool } from './tools.ts';

const PROGRESS_EVERY_MS = 15_000;

/** Builds a tool from its pinned module. Everything is one static file (CGO_ENABLED=0). */
export async function buildTool(tool: Tool, target: string, say: Say): Promise<'done' | { because: string }> {
  const version = spawnSync('go', ['version'], { encoding: 'utf8' });
  if (version.status !== 0) return { because: 'go is not installed' };
  say(`building ${tool.name} ${tool.version} with ${version.stdout.trim()} (cold: minutes; kept for later runs)`);
  const began = Date.now();
  const seconds = (): string => `${Math.round((Date.now() - began) / 1000)} s`;
  const child = spawn('go', [...tool.goCommand, ...tool.goFlags, '-o', target, tool.package], {
    cwd: tool.moduleDir,
    // The compiler's garbage collector is the bottleneck of such a build; memory is cheaper.
    env: { ...process.env, CGO_ENABLED: '0', GOGC: '400', GOFLAGS: '-mod=readonly' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-4_000);
  });
  const ticker = setInterval(() => {
    say(`  still building ${tool.name}: ${seconds()}${lastLine(output)}`);
  }, PROGRESS_EVERY_MS);
  const endChild = (): void => void child.kill();
  process.once('exit', endChild);
  try {
    const code = await new Promise<number | string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
    });
    if (code !== 0) return { because: `go build failed (${code}): ${output.trim().split('\n').slice(-5).join(' | ')}` };
  } finally {
    clearInterval(ticker);
    process.removeListener('exit', endChild);
  }
  say(`built ${tool.name} in ${seconds()}`);
  return 'done';
}

function lastLine(output: string): string {
  const line = output.trim().split('\n').at(-1) ?? '';
  return line === '' ? '' : ` (${line})`;
}
