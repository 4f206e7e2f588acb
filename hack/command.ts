import { spawn } from 'node:child_process';

export interface CommandOptions {
  input?: string;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** Milliseconds until it is killed. Default 60,000. */
  timeoutMs?: number;
}

/**
 * Runs a command of the machine to its end.
 * @returns its standard output.
 * @throws when it cannot start or fails; the message has the end of what it printed.
 */
export function run(file: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 60_000,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', (error) => reject(new Error(`${file}: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(stdout);
      const said = (stderr.trim() === '' ? stdout : stderr).trim().split('\n').slice(-5).join(' | ');
      reject(new Error(`${file} ${args.join(' ')}: ${code ?? signal ?? 'failed'}: ${said}`));
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}
