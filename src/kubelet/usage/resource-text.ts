import { headOf, NODE_CPU, NODE_MEMORY, RESOURCE_ERROR, RESOURCE_FAMILIES } from './families.ts';
import type { NodeTotals } from './node-totals.ts';
import type { PodReading } from './pod-reading.ts';
import { formatSample, type Label } from './sample.ts';

/** A reading with the name its pod has in the host. */
export interface NamedReading {
  readonly namespace: string;
  readonly name: string;
  readonly reading: PodReading;
}

/** Pods in one piece of text. */
const BATCH = 200;

/**
 * /metrics/resource of a virtual node, in pieces. Labels come as `container`, `pod`, `namespace`, and those of whole pods
 * as `namespace`, `pod`: some readers take the second for the pod. `node`: undefined while nothing at all is known. `failed`: something could not be read.
 */
export function* resourceText(
  pods: readonly NamedReading[],
  node: NodeTotals | undefined,
  failed: boolean,
): Generator<string> {
  for (const family of RESOURCE_FAMILIES) {
    let text = headOf(family);
    let lines = 0;
    for (const [index, { namespace, name, reading }] of pods.entries()) {
      for (const { container, value, timestamp } of reading.samples.get(family.name) ?? []) {
        const labels = labelsOf(container, { name: 'pod', value: name }, { name: 'namespace', value: namespace });
        text += `${formatSample({ family: family.name, labels, value, timestamp })}\n`;
        lines += 1;
      }
      if (index % BATCH === BATCH - 1 && lines > 0) {
        yield text;
        text = '';
      }
    }
    if (lines > 0) yield text;
  }
  if (node !== undefined) {
    yield `${headOf(NODE_CPU)}${NODE_CPU.name} ${node.cpuSeconds} ${Math.round(node.at)}\n`;
    yield `${headOf(NODE_MEMORY)}${NODE_MEMORY.name} ${node.memoryBytes} ${Math.round(node.at)}\n`;
  }
  yield `${headOf(RESOURCE_ERROR)}${RESOURCE_ERROR.name} ${failed ? 1 : 0}\n`;
}

function labelsOf(container: string, pod: Label, namespace: Label): Label[] {
  return container === '' ? [namespace, pod] : [{ name: 'container', value: container }, pod, namespace];
}
