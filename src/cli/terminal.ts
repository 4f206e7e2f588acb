import process from 'node:process';
import { styleText } from 'node:util';

/** The world around a verb: what it prints to, and what it is told by. */
export interface Terminal {
  /** To stdout, as it is. */
  out(text: string): void;
  /** One line to stderr. */
  note(line: string): void;
  /** Whether somebody looks at stdout, and at stderr. */
  readonly isTty: { readonly out: boolean; readonly err: boolean };
  readonly env: NodeJS.ProcessEnv;
  /** Aborts when the person wants to stop. */
  readonly signal: AbortSignal;
  /** Wall clock in ms. */
  now(): number;
}

export type Colour = 'red' | 'green' | 'yellow' | 'bold' | 'dim';

/** The text in a colour where somebody looks who has not forbidden it (NO_COLOR, TERM=dumb); else as it is. */
export function painted({ isTty, env }: Pick<Terminal, 'isTty' | 'env'>, colour: Colour, text: string): string {
  const plain = !isTty.out || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  return plain ? text : styleText(colour, text, { validateStream: false });
}

export function processTerminal(signal: AbortSignal): Terminal {
  return {
    out: (text) => void process.stdout.write(text),
    note: (line) => void process.stderr.write(`${line}\n`),
    isTty: { out: process.stdout.isTTY, err: process.stderr.isTTY },
    env: process.env,
    signal,
    now: Date.now,
  };
}
