import { CADVISOR_ERROR, CADVISOR_FAMILIES, headOf } from './families.ts';
import type { PodReading } from './pod-reading.ts';
import { familyOf, formatSample, type Label, parseSample, podKeyOf } from './sample.ts';
import type { UsageTarget } from './usage-target.ts';

/** Lines for scrapers by family, names already the host's. */
export type CadvisorLines = ReadonlyMap<string, readonly string[]>;

const FAMILIES: ReadonlySet<string> = new Set(CADVISOR_FAMILIES.map(({ name }) => name));
/** Families that /metrics/resource has as well. */
const SHARED = [
  'container_cpu_usage_seconds_total',
  'container_memory_working_set_bytes',
  'container_start_time_seconds',
];

/**
 * Picks from one kubelet's /metrics/cadvisor the lines of wanted families about pods of ours and gives those the host's
 * namespace and name. All else of a line, its other labels, value and timestamp, stays.
 */
export class CadvisorReader {
  readonly #pods: ReadonlyMap<string, UsageTarget>;
  readonly #lines = new Map<string, string[]>();

  constructor(targets: readonly UsageTarget[]) {
    this.#pods = new Map(targets.map((target) => [target.memberKey, target]));
  }

  line(line: string): void {
    const family = familyOf(line);
    if (family === undefined || !FAMILIES.has(family)) return;
    const key = podKeyOf(line);
    const target = key === undefined ? undefined : this.#pods.get(key);
    if (target === undefined) return;
    const sample = parseSample(line);
    if (sample === undefined) return;
    const { namespace = '', name } = target.hostPod.metadata;
    const labels = sample.labels.map((label) => {
      if (label.name === 'pod') return { name: 'pod', value: name };
      return label.name === 'namespace' ? { name: 'namespace', value: namespace } : label;
    });
    add(this.#lines, family, formatSample({ ...sample, labels }));
  }

  result(): CadvisorLines {
    return this.#lines;
  }
}

/** The same from a resource reading, which has CPU and memory only: for members that do not show more. */
export function cadvisorLines(target: UsageTarget, reading: PodReading): CadvisorLines {
  const lines = new Map<string, string[]>();
  const { namespace = '', name } = target.hostPod.metadata;
  const statuses = target.memberPod.status?.containerStatuses ?? [];
  for (const family of SHARED) {
    for (const { container, value, timestamp } of reading.samples.get(family) ?? []) {
      const image = statuses.find((status) => status.name === container)?.image ?? '';
      const labels: Label[] = [
        { name: 'container', value: container },
        // Dashboards tell containers from pod sandboxes by an image that is not empty.
        { name: 'image', value: image.replaceAll(/[\\"\n]/g, '') },
        { name: 'namespace', value: namespace },
        { name: 'pod', value: name },
      ];
      add(lines, family, formatSample({ family, labels, value, timestamp }));
    }
  }
  return lines;
}

/** /metrics/cadvisor of a virtual node, in pieces. */
export function* cadvisorText(parts: readonly CadvisorLines[], failed: boolean): Generator<string> {
  for (const family of CADVISOR_FAMILIES) {
    let head: string | undefined = headOf(family);
    for (const part of parts) {
      const lines = part.get(family.name);
      if (lines === undefined) continue;
      yield `${head ?? ''}${lines.join('\n')}\n`;
      head = undefined;
    }
  }
  yield `${headOf(CADVISOR_ERROR)}${CADVISOR_ERROR.name} ${failed ? 1 : 0}\n`;
}

function add(lines: Map<string, string[]>, family: string, line: string): void {
  const known = lines.get(family);
  if (known === undefined) lines.set(family, [line]);
  else known.push(line);
}
