import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** How the members are doing. One instance a registry. */
export class MemberMetrics {
  readonly probes: Counter<'member' | 'result'>;
  readonly probeSeconds: Histogram<'member'>;
  readonly reachable: Gauge<'member'>;
  readonly statusWrites: Counter<'member'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.probes = new Counter({
      name: 'spillway_member_probes_total',
      help: 'Probes of members by result: ok, or the reason of the failure.',
      labelNames: ['member', 'result'],
      registers,
    });
    this.probeSeconds = new Histogram({
      name: 'spillway_member_probe_duration_seconds',
      help: 'Time until a probe was answered or given up.',
      labelNames: ['member'],
      buckets: [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    });
    this.reachable = new Gauge({
      name: 'spillway_member_reachable',
      help: '1 while the member counts as reachable, 0 while it does not.',
      labelNames: ['member'],
      registers,
    });
    this.statusWrites = new Counter({
      name: 'spillway_member_status_writes_total',
      help: 'Patches of the status of MemberCluster objects.',
      labelNames: ['member'],
      registers,
    });
  }

  /** Drops the series of a member that is gone. */
  forget(member: string): void {
    this.reachable.remove(member);
    this.probeSeconds.remove(member);
    this.statusWrites.remove(member);
    this.probes.remove({ member });
  }
}
