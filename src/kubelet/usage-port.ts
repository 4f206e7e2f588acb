/** What the node's pods use. Each answer may take some seconds, during which the member is asked. */
export interface UsagePort {
  /** Prometheus text, in pieces. */
  resourceMetrics(): Promise<Iterable<string>>;
  cadvisorMetrics(): Promise<Iterable<string>>;
  /** JSON of the kubelet's stats/v1alpha1 Summary. */
  summary(onlyCpuAndMemory: boolean): Promise<string>;
}
