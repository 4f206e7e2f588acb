import { spawn } from 'node:child_process';
import { join } from 'node:path';

export interface KubectlOptions {
  /** Given to its standard input, which is closed after it. */
  input?: string | Uint8Array;
  /** Path of another kubeconfig than the administrator's. */
  kubeconfig?: string;
  /** Milliseconds until it is killed. Default 60,000. */
  timeoutMs?: number;
  signal?: AbortSignal;
  env?: NodeJS.ProcessEnv;
}

export interface KubectlResult {
  stdout: string;
  stderr: string;
  /** Exit code; 128 + signal number as in a shell is not used: -1 when killed by a signal or the time limit. */
  code: number;
  /** The bytes of stdout, for output that is not text. */
  stdoutBytes: Buffer;
}

/** Runs kubectl to its end. Its discovery cache stays inside `cacheDir`, nothing is written to the home folder. */
export function runKubectl(
  file: string,
  args: readonly string[],
  options: KubectlOptions & { kubeconfig: string; cacheDir: string },
): Promise<KubectlResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      env: {
        ...process.env,
        ...options.env,
        KUBECONFIG: options.kubeconfig,
        KUBECACHEDIR: join(options.cacheDir, 'kubectl-cache'),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 60_000,
      killSignal: 'SIGKILL',
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      const stdoutBytes = Buffer.concat(stdout);
      resolve({
        stdout: stdoutBytes.toString('utf8'),
        stderr: Buffer.concat(stderr).toString('utf8'),
        code: code ?? -1,
        stdoutBytes,
      });
    });
    // A command that ends without reading its input must not take this program down.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}
