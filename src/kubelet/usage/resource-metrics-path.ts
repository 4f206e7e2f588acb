const ANNOTATION = 'metrics.k8s.io/resource-metrics-path';
const DEFAULT_PATH = '/metrics/resource';
/** Segments of plain characters: the path goes behind nodes/NAME/proxy and must not lead out of there. */
const PATH = /^(\/[A-Za-z0-9_~.-]+)+$/;

/** Where a node serves /metrics/resource: as its annotation says, which metrics-server obeys too, unless that is no plain path. */
export function resourceMetricsPath(annotations: Record<string, string> | undefined): string {
  const path = annotations?.[ANNOTATION];
  if (path === undefined || !PATH.test(path)) return DEFAULT_PATH;
  return path.split('/').some((segment) => /^\.+$/.test(segment)) ? DEFAULT_PATH : path;
}
