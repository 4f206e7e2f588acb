/** A metric family as it is announced to scrapers. */
export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
}

const family = (name: string, type: Family['type'], help: string): Family => ({ name, type, help });

/** What /metrics/resource says about pods and containers, in this order. */
export const RESOURCE_FAMILIES: readonly Family[] = [
  family(
    'container_cpu_usage_seconds_total',
    'counter',
    'Cumulative cpu time consumed by the container in core-seconds',
  ),
  family('container_memory_working_set_bytes', 'gauge', 'Current working set of the container in bytes'),
  family('container_start_time_seconds', 'gauge', 'Start time of the container since unix epoch in seconds'),
  family('container_swap_limit_bytes', 'gauge', 'Current amount of the container swap limit in bytes'),
  family('container_swap_usage_bytes', 'gauge', 'Current amount of the container swap usage in bytes'),
  family('pod_cpu_usage_seconds_total', 'counter', 'Cumulative cpu time consumed by the pod in core-seconds'),
  family('pod_memory_working_set_bytes', 'gauge', 'Current working set of the pod in bytes'),
  family('pod_swap_usage_bytes', 'gauge', 'Current amount of the pod swap usage in bytes'),
];

export const NODE_CPU = family(
  'node_cpu_usage_seconds_total',
  'counter',
  'Cumulative cpu time consumed by the pods of the virtual node in core-seconds',
);
export const NODE_MEMORY = family(
  'node_memory_working_set_bytes',
  'gauge',
  'Current working set of the pods of the virtual node in bytes',
);
export const RESOURCE_ERROR = family(
  'resource_scrape_error',
  'gauge',
  '1 if there was an error while getting container metrics, 0 otherwise',
);

/** What dashboards and rules read of /metrics/cadvisor; the rest, many hundred lines a pod, is left in the member. */
export const CADVISOR_FAMILIES: readonly Family[] = [
  family('container_cpu_cfs_periods_total', 'counter', 'Number of elapsed enforcement period intervals.'),
  family('container_cpu_cfs_throttled_periods_total', 'counter', 'Number of throttled period intervals.'),
  family(
    'container_cpu_cfs_throttled_seconds_total',
    'counter',
    'Total time duration the container has been throttled.',
  ),
  family('container_cpu_usage_seconds_total', 'counter', 'Cumulative cpu time consumed in seconds.'),
  family('container_fs_reads_bytes_total', 'counter', 'Cumulative count of bytes read'),
  family('container_fs_reads_total', 'counter', 'Cumulative count of reads completed'),
  family('container_fs_usage_bytes', 'gauge', 'Number of bytes that are consumed by the container on this filesystem.'),
  family('container_fs_writes_bytes_total', 'counter', 'Cumulative count of bytes written'),
  family('container_fs_writes_total', 'counter', 'Cumulative count of writes completed'),
  family('container_memory_cache', 'gauge', 'Number of bytes of page cache memory.'),
  family('container_memory_rss', 'gauge', 'Size of RSS in bytes.'),
  family('container_memory_swap', 'gauge', 'Container swap usage in bytes.'),
  family('container_memory_usage_bytes', 'gauge', 'Current memory usage in bytes, including all memory.'),
  family('container_memory_working_set_bytes', 'gauge', 'Current working set in bytes.'),
  family('container_network_receive_bytes_total', 'counter', 'Cumulative count of bytes received'),
  family(
    'container_network_receive_packets_dropped_total',
    'counter',
    'Cumulative count of packets dropped while receiving',
  ),
  family('container_network_receive_packets_total', 'counter', 'Cumulative count of packets received'),
  family('container_network_transmit_bytes_total', 'counter', 'Cumulative count of bytes transmitted'),
  family(
    'container_network_transmit_packets_dropped_total',
    'counter',
    'Cumulative count of packets dropped while transmitting',
  ),
  family('container_network_transmit_packets_total', 'counter', 'Cumulative count of packets transmitted'),
  family('container_oom_events_total', 'counter', 'Count of out of memory events observed for the container'),
  family('container_start_time_seconds', 'gauge', 'Start time of the container since unix epoch in seconds.'),
];

export const CADVISOR_ERROR = family(
  'container_scrape_error',
  'gauge',
  '1 if there was an error while getting container metrics, 0 otherwise',
);

/** The two lines before a family's samples. */
export function headOf({ name, type, help }: Family): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}
