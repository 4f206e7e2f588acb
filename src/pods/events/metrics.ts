import { Counter, type Registry } from 'prom-client';

/** What became of members' Events about our pods. */
export interface MemberEventMetrics {
  events: Counter<'member' | 'outcome'>;
}

export function memberEventMetrics(registry: Registry): MemberEventMetrics {
  return {
    events: new Counter({
      name: 'spillway_member_events_total',
      help:
        'Events of members about pods of this host: created, patched, present (the host had it), rate-limited, ' +
        'overflow (too many at once), unplaced (their pod was not known in time), refused, lost.',
      labelNames: ['member', 'outcome'],
      registers: [registry],
    }),
  };
}
