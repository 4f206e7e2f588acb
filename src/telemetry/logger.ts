import { pino, stdSerializers } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import { redact, redactText } from './redaction.ts';

export interface LoggerOptions {
  /** Default `info`. */
  level?: string;
  /** Default: standard error. */
  destination?: DestinationStream;
}

/** Lines that could not be written are kept up to this many bytes, then dropped. */
const MAX_UNWRITTEN = 64 * 1024;

/** A descriptor or file whose disk may be full for a while: what cannot be written is dropped, and the program goes on. */
export function lastingDestination(dest: number | string): ReturnType<typeof pino.destination> {
  const destination = pino.destination({ dest, sync: true, maxLength: MAX_UNWRITTEN });
  // Without a listener an error of the stream would end the program.
  destination.on('error', () => undefined);
  return destination;
}

/**
 * The program's logger: one JSON object a line, with `time` in RFC 3339 and the level by name. Secrets in objects and in
 * text are replaced on the way, at every level.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const target = options.destination ?? lastingDestination(2);
  return pino(
    {
      level: options.level ?? 'info',
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      serializers: {
        err: (error: unknown) => redact(error instanceof Error ? { ...stdSerializers.err(error) } : error),
      },
      formatters: {
        level: (label) => ({ level: label }),
        log: (object) => redact(object) as Record<string, unknown>,
      },
    },
    // The finished line is looked at once more: messages and bindings of children never pass the formatters.
    {
      write: (line: string) => {
        target.write(redactText(line));
      },
    },
  );
}
