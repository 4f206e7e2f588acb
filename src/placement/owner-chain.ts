import { TEMPLATE_HASH } from '../api/released.ts';
import type { LabelSelectorObject } from '../kube/label-selector.ts';
import type { KubeObject } from '../kube/object.ts';
import type { SetRevisions } from './set-revisions.ts';
import type { TemplateRequests } from './template-requests.ts';

/** An object of which it is known what it is; those from lists carry neither by themselves. */
export interface TypedObject extends KubeObject {
  apiVersion: string;
  kind: string;
}

/** What the caches keep of an object that may own pods (scheduler/projections.ts), as far as it has that; of any other nothing of it is known. */
export interface KeptOwner extends TypedObject {
  readonly spec?: SetRevisions['spec'] & {
    readonly replicas?: number;
    readonly parallelism?: number;
    readonly completions?: number;
    readonly suspend?: boolean;
    readonly podReplacementPolicy?: string;
    readonly podManagementPolicy?: string;
    readonly selector?: LabelSelectorObject;
    readonly strategy?: { readonly type?: string };
    readonly requests?: TemplateRequests;
  };
  readonly status?: SetRevisions['status'] & { readonly succeeded?: number; readonly ended?: boolean };
}

/** A pod, its controller, the controller of that, and so on. Links that are not known are left out at the end. */
export type OwnerChain = readonly [TypedObject, ...TypedObject[]];

/** What a pod belongs to as far as division is concerned. */
export interface WorkloadIdentity {
  readonly object: TypedObject;
  /** Pods it asks for; undefined when the kind does not say. */
  readonly replicas: number | undefined;
  readonly revision: string | undefined;
}

/** Labels by which controllers tell the pods of one roll-out from those of the next. */
const REVISION_LABELS = [TEMPLATE_HASH, 'controller-revision-hash', 'rollouts-pod-template-hash'];

/** Of ReplicaSets: a Deployment or Rollout that goes back to a former one gives that the next number. */
export const ROLLOUT_ANNOTATIONS = ['deployment.kubernetes.io/revision', 'rollout.argoproj.io/revision'];

/**
 * The workload of a pod: its controller, or the controller of its ReplicaSet where that has replicas (a Deployment, a
 * Rollout). Each Job of a CronJob is a workload of its own. A pod without controller is one by itself.
 */
export function workloadOf(chain: OwnerChain): WorkloadIdentity {
  const [pod, controller, parent] = chain;
  const revision = revisionOf(pod);
  if (controller === undefined) return { object: pod, replicas: 1, revision };
  const viaSet = controller.kind === 'ReplicaSet' && parent !== undefined && replicasOf(parent) !== undefined;
  const object = viaSet ? parent : controller;
  return { object, replicas: replicasOf(object), revision };
}

/** What tells the pods of one roll-out from those of the next; undefined for pods of controllers without roll-outs. */
export function revisionOf(pod: KubeObject): string | undefined {
  const labels = pod.metadata.labels ?? {};
  return REVISION_LABELS.map((label) => labels[label]).find((value) => value !== undefined);
}

/** The number of the roll-out that a ReplicaSet was made or taken up again for; 0 where nothing tells. */
export function rolloutOf({ metadata }: KubeObject): number {
  const { annotations = {} } = metadata;
  const found = ROLLOUT_ANNOTATIONS.map((key) => Number(annotations[key])).find(
    (number) => number > 0 && Number.isSafeInteger(number),
  );
  return found ?? 0;
}

/** Pods that run at the same time: `spec.replicas`; of a Job its parallelism, or what is left to complete if that is less. */
export function replicasOf(object: TypedObject): number | undefined {
  const { spec = {}, status = {} }: KeptOwner = object;
  if (object.kind === 'Job' && object.apiVersion.startsWith('batch/')) {
    const parallelism = count(spec.parallelism) ?? 1;
    const completions = count(spec.completions);
    return completions === undefined
      ? parallelism
      : Math.min(parallelism, Math.max(0, completions - (count(status.succeeded) ?? 0)));
  }
  const replicas = count(spec.replicas);
  return replicas ?? (object.apiVersion.startsWith('apps/') && object.kind !== 'DaemonSet' ? 1 : undefined);
}

/** Whether no pods are made for it, by what the caches keep: it is being deleted, or a Job that is suspended or has ended. */
export function makesNoMore(owner: TypedObject): boolean {
  const { spec = {}, status = {} }: KeptOwner = owner;
  return owner.metadata.deletionTimestamp !== undefined || spec.suspend === true || status.ended === true;
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}
