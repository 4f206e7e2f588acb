import { type JsonRecord, recordOf } from '../kube/json-fields.ts';
import type { PatchStep } from './patch-step.ts';

const FIELD = 'requiredDuringSchedulingIgnoredDuringExecution';

/** Makes `nodeSelectorTerms` the required node affinity of a pod, whatever of it there is already. */
export function requireTerms(spec: JsonRecord, nodeSelectorTerms: readonly object[]): PatchStep {
  const required = { nodeSelectorTerms };
  const affinity = recordOf(spec['affinity']);
  const path = '/spec/affinity';
  if (affinity === undefined) return { op: 'add', path, value: { nodeAffinity: { [FIELD]: required } } };
  return recordOf(affinity['nodeAffinity']) === undefined
    ? { op: 'add', path: `${path}/nodeAffinity`, value: { [FIELD]: required } }
    : { op: 'add', path: `${path}/nodeAffinity/${FIELD}`, value: required };
}
