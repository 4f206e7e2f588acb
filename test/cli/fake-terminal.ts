import type { Terminal } from '../../src/cli/terminal.ts';

/** A terminal that keeps what it is told. */
export class FakeTerminal implements Terminal {
  stdout = '';
  readonly notes: string[] = [];
  readonly isTty: { out: boolean; err: boolean };
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;

  constructor({ isTty = false, env = {}, signal = new AbortController().signal }: Partial<FakeOptions> = {}) {
    this.isTty = { out: isTty, err: isTty };
    this.env = env;
    this.signal = signal;
  }

  out(text: string): void {
    this.stdout += text;
  }

  note(line: string): void {
    this.notes.push(line);
  }

  now(): number {
    return Date.parse('2026-03-01T12:00:00Z');
  }
}

interface FakeOptions {
  isTty: boolean;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
}
