import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { allow, parseReview } from '../../src/admission/admission-review.ts';
import { podDefaults, type PodDefaultSettings } from '../../src/admission/pod-defaults.ts';
import { VIRTUAL_NODE_TAINT } from '../../src/api/marks.ts';
import type { PatchStep } from '../../src/admission/patch-step.ts';
import { applyPatchOperation } from '../../src/overrides/json-patch.ts';
import { parseExtenderArgs, parsePreemptionArgs } from '../../src/scheduler/extender-wire.ts';
import { boundPod, madePod } from '../fixtures/translation.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { changed } from './inputs.ts';

const SETTINGS: PodDefaultSettings = {
  schedulerName: 'spillway',
  isVirtualNode: (name: string) => name === 'east',
  splitConstraints: true,
  outages: { toleration: 'Forever' as const, admissionSeconds: 300 },
};
const { nodeName: _, ...spec } = { ...madePod('deployment').spec };
const POD = {
  ...boundPod(),
  metadata: { name: 'web', namespace: 'shop', labels: { 'spillway.dev/gang': 'g' } },
  spec: {
    ...spec,
    nodeSelector: { type: 'virtual-kubelet', disk: 'ssd' },
    tolerations: [{ key: VIRTUAL_NODE_TAINT, operator: 'Exists' }],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }],
        },
      },
    },
  },
};
const REVIEW = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u', operation: 'CREATE', namespace: 'shop', object: POD },
};
const QUESTION = { Pod: { ...POD, metadata: { ...POD.metadata, uid: 'u' } }, Nodes: null, NodeNames: ['east', 'n1'] };
const VICTIMS = {
  Pod: QUESTION.Pod,
  NodeNameToMetaVictims: { east: { Pods: [{ UID: 'a' }, { UID: 'b' }], NumPDBViolations: 1 } },
};

describe('questions about pods', () => {
  fuzz(
    'of API servers are answered with a patch that fits, which a second time is empty',
    fc.tuple(changed(REVIEW), fc.boolean()),
    { share: 3_000 },
    ([body, optedIn]) => {
      const parsed = parseReview(body);
      if ('problem' in parsed) {
        expect(parsed.problem).not.toBe('');
        return;
      }
      const { uid, object } = parsed.request;
      const patch = podDefaults(object, optedIn, SETTINGS);
      expect(JSON.parse(JSON.stringify(allow(uid, patch)))).toMatchObject({ response: { uid, allowed: true } });
      const after = patch.reduce((pod: unknown, step) => applyPatchOperation(pod, asOperation(step)), object);
      expect(podDefaults(after, optedIn, SETTINGS)).toEqual([]);
    },
  );

  fuzz('of schedulers name a pod and nodes', changed(QUESTION), { share: 1_500 }, (body) => {
    const args = throwsOnly([Error], () => parseExtenderArgs(body));
    if (args === undefined) return;
    const { name, namespace, uid } = args.pod.metadata;
    for (const value of [name, namespace, uid, ...args.nodeNames]) expect(typeof value).toBe('string');
  });

  fuzz('of schedulers name victims by node', changed(VICTIMS), { share: 1_500 }, (body) => {
    const args = throwsOnly([Error], () => parsePreemptionArgs(body));
    for (const [node, { uids, violations }] of args?.victims ?? []) {
      for (const value of [node, ...uids]) expect(typeof value).toBe('string');
      expect(typeof violations).toBe('number');
    }
  });
});

function asOperation({ op, path, ...more }: PatchStep): Parameters<typeof applyPatchOperation>[1] {
  if (op !== 'add' && op !== 'remove' && op !== 'replace') throw new Error(`what is ${String(op)}?`);
  return { operator: op, path, ...more };
}
