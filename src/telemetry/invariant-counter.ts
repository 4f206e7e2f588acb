import type { Logger } from 'pino';
import { Counter, type Registry } from 'prom-client';
import { INVARIANTS, InvariantError, type InvariantId, type Invariants } from '../api/invariants.ts';

/** Counts what guards stopped. One instance a registry. */
export class InvariantCounter implements Invariants {
  readonly #violations: Counter<'invariant'>;
  readonly #logger: Logger | undefined;

  constructor(registry: Registry, logger?: Logger) {
    this.#logger = logger;
    this.#violations = new Counter({
      name: 'spillway_invariant_violations_total',
      help: 'Things that must never happen and that a guard stopped, by invariant (docs/invariants.md): 0 in peace and in every outage.',
      labelNames: ['invariant'],
      registers: [registry],
    });
    // An alert on an increase needs a series to begin with.
    for (const invariant of Object.keys(INVARIANTS)) this.#violations.inc({ invariant }, 0);
  }

  violated(invariant: InvariantId, what: string, about: Record<string, unknown> = {}): InvariantError {
    this.#violations.inc({ invariant });
    this.#logger?.error({ invariant, ...about }, `stopped: ${what} (${INVARIANTS[invariant]})`);
    return new InvariantError(invariant, what);
  }
}
