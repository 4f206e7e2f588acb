import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** A kubectl command that moves bytes. */
export interface Transfer {
  args: readonly string[];
  /** Bytes to feed it with. */
  input?: number;
  /** What must come out, or so many bytes of it; else the transfer has failed. */
  output: string | number;
}

const PIECE = Buffer.alloc(256 * 1024, 'y');
const PATIENCE_MS = 120_000;

/** Runs it to its end. @returns seconds. @throws when it fails or another number of bytes came out. */
export function timeTransfer(
  kubectl: string,
  kubeconfig: string,
  cacheDir: string,
  transfer: Transfer,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(kubectl, transfer.args, {
      env: { ...process.env, KUBECONFIG: kubeconfig, KUBECACHEDIR: join(cacheDir, 'kubectl-cache') },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: PATIENCE_MS,
      killSignal: 'SIGKILL',
    });
    let received = 0;
    let said = '';
    let complaint = '';
    child.stdout.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (typeof transfer.output === 'string') said += chunk.toString('latin1');
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    child.once('error', reject);
    child.once('close', (code) => {
      const seconds = (performance.now() - began) / 1000;
      const whole = typeof transfer.output === 'string' ? said === transfer.output : received === transfer.output;
      if (code === 0 && whole) return resolve(seconds);
      const what = `kubectl ${transfer.args.join(' ')}`;
      reject(
        new Error(`${what}: exit ${code} after ${received} bytes ${said.slice(0, 100)}: ${complaint.slice(0, 500)}`),
      );
    });
    child.stdin.on('error', () => undefined);
    let left = transfer.input ?? 0;
    const feed = (): void => {
      while (left > 0) {
        const piece = PIECE.subarray(0, Math.min(left, PIECE.length));
        left -= piece.length;
        if (!child.stdin.write(piece)) return void child.stdin.once('drain', feed);
      }
      child.stdin.end();
    };
    feed();
  });
}
