import { z } from 'zod';
import { JSON_PATH } from '../kube/json-path.ts';
import { cel, labelKey, labelValue, listMap } from './schema-parts.ts';

/** Prefixes whose labels mean something to Kubernetes, its projects (x-k8s.io: Kueue, gangs) or Spillway. */
const TAKEN_PREFIX = /^([^/]+[.])?(kubernetes[.]io|k8s[.]io|x-k8s[.]io|spillway[.]dev)[/]/;
/** Labels without a prefix by which controllers know their pods, and schedulers their groups. */
const TAKEN_NAME =
  /^(pod-template-hash|controller-revision-hash|rollouts-pod-template-hash|pod-template-generation|job-name|controller-uid|pod-group[.]scheduling[.]sigs[.]k8s[.]io)$/;

/** What is said of such a label. */
export const TAKEN_LABEL = 'must not be a label of Kubernetes, of a controller of it, or of Spillway';
/** Rules of one part of `failover`. */
export const MOST_STATE_RULES = 8;

/** Whether no policy may hand anything on under that label. */
export function isTakenLabel(key: string): boolean {
  return TAKEN_PREFIX.test(key) || TAKEN_NAME.test(key);
}

const rule = z.object({
  aliasLabelName: labelKey()
    .meta(
      cel({
        rule: `!self.matches('${TAKEN_PREFIX.source}') && !self.matches('${TAKEN_NAME.source}')`,
        message: TAKEN_LABEL,
      }),
    )
    .describe('The label that the value gets on the next pod, which reads it by the downward API.'),
  jsonPath: z
    .string()
    .min(1)
    .max(256)
    .regex(JSON_PATH)
    .describe(
      'Where the value stands in the status of the pod that is moved: {.podIP}, {.containerStatuses[0].lastState.terminated.message}, {.conditions[?(@.type=="example.com/Saved")].message}. Fields, [\'fields\'], ' +
        '[0], [-1], [*] and filters with == are read. Handed on is one value that is a valid label value: at most 63 letters, digits, ".", "_" and "-".',
    ),
});

/** As in Karmada. `when`: which moves are meant. */
export const statePreservation = (when: string) =>
  z
    .object({
      rules: z
        .array(rule)
        .min(1)
        .max(MOST_STATE_RULES)
        .meta({ description: 'What is handed on, each as one label.', ...listMap('aliasLabelName') }),
    })
    .describe(
      `What a pod showed in its status when it was moved, ${when}, is handed on to the pod that comes in its place, as labels, before that gets a node. ` +
        'Only of StatefulSets, where that has the same name, and of workloads with one replica. Default: nothing.',
    );

export type StateRule = z.output<typeof rule>;
type StatePreservation = z.output<ReturnType<typeof statePreservation>>;
export type { StatePreservation };

const value = labelValue();

/** Whether the API server takes it as the value of a label. */
export function isLabelValue(text: string): boolean {
  return value.safeParse(text).success;
}
