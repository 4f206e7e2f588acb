import { pino, stdSerializers } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import { redact, redactText } from './redaction.ts';

export interface LoggerOptions {
  /** Default `info`. */
  level?: string;
  /** Default: standard error. */
  destination?: DestinationStream;
}

/**
 * The program's logger: one JSON object a line, with `time` in RFC 3339 and the level by name. Secrets in objects and in
 * text are replaced on the way, at every level.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const target = options.destination ?? pino.destination({ dest: 2, sync: true });
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
