import { createHash } from 'node:crypto';
import type { Pod } from '../../kube/core-v1.ts';
import { misshapen, PODS } from '../../kube/resource.ts';
import type { TypedObject } from '../../placement/owner-chain.ts';
import {
  jobSpecOf,
  manifestObjects,
  unusable,
  workloadSpecOf,
  type ManifestObject,
  type PodTemplate,
  type WorkloadSpec,
} from './manifest-objects.ts';

/** A pod as its controller would ask the API server for it, and how many of them. */
export interface WantedPods {
  /** `Deployment/web` */
  of: string;
  replicas: number;
  /** Not yet defaulted, and without a UID. */
  pod: Pod;
  /** The controller, then that of the controller. */
  owners: readonly TypedObject[];
}

/** Stands in names and labels for what controllers and the API server make up. */
const MADE_UP = 'simulated';
const COMPLETION_INDEX = 'batch.kubernetes.io/job-completion-index';

/**
 * The pods that the objects of a manifest (YAML or JSON, Lists too) would have, of each the first one, and the objects that are passed
 * over: those without pods, and DaemonSets, whose pods are made for their nodes. Throws CliError.
 */
export function wantedPods(text: string, namespace: string): { wanted: WantedPods[]; passedOver: string[] } {
  const wanted: WantedPods[] = [];
  const passedOver: string[] = [];
  for (const one of manifestObjects(text)) {
    const pods = podsOf(one, namespace);
    if (pods === undefined) passedOver.push(`${one.kind}/${one.metadata.name}`);
    else wanted.push(pods);
  }
  return { wanted, passedOver };
}

/** Undefined for objects without pods, and for DaemonSets. Throws CliError. */
export function podsOf(object: ManifestObject, fallback: string): WantedPods | undefined {
  const { apiVersion, kind } = object;
  const own = identified(object, object.metadata.namespace ?? fallback);
  const of = `${kind}/${own.metadata.name}`;
  switch (`${apiVersion.split('/')[0] ?? ''}/${kind}`) {
    case 'v1/Pod': {
      const { uid: _, ...metadata } = own.metadata;
      return { of, replicas: 1, pod: shaped({ ...object, metadata }, of), owners: [] };
    }
    case 'apps/Deployment': {
      const { template, replicas = 1 } = workloadSpecOf(object);
      const hash = { 'pod-template-hash': MADE_UP };
      const set = madeBy(own, 'apps/v1', 'ReplicaSet', { ...template?.metadata?.labels, ...hash });
      return { of, replicas, pod: templated(of, set, template, hash), owners: [set, own] };
    }
    case 'apps/StatefulSet': {
      const spec = workloadSpecOf(object);
      return { of, replicas: spec.replicas ?? 1, pod: firstOfSet(of, own, spec), owners: [own] };
    }
    case 'apps/ReplicaSet':
    case 'v1/ReplicationController': {
      const { template, replicas = 1 } = workloadSpecOf(object);
      return { of, replicas, pod: templated(of, own, template), owners: [own] };
    }
    case 'batch/Job': {
      const spec = workloadSpecOf(object);
      return { of, replicas: atOnce(spec), pod: firstOfJob(of, own, spec), owners: [own] };
    }
    case 'batch/CronJob': {
      const spec = jobSpecOf(object);
      const job = madeBy(own, 'batch/v1', 'Job', {});
      return { of, replicas: atOnce(spec), pod: firstOfJob(of, job, spec), owners: [job, own] };
    }
    default:
      return undefined;
  }
}

/** As if it were stored. */
function identified({ apiVersion, kind, metadata, ...rest }: ManifestObject, namespace: string): TypedObject {
  const { name, labels, annotations } = metadata;
  return {
    ...rest,
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      uid: uidFor(kind),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
  };
}

/** A controller that another one makes. */
function madeBy(
  { metadata }: TypedObject,
  apiVersion: string,
  kind: string,
  labels: Record<string, string>,
): TypedObject {
  const { namespace = '', name } = metadata;
  return { apiVersion, kind, metadata: { name: `${name}-${MADE_UP}`, namespace, uid: uidFor(kind), labels } };
}

/** The pod that a controller makes by its template. */
function templated(
  of: string,
  controller: TypedObject,
  template: PodTemplate | undefined,
  more: Record<string, string> = {},
): Pod {
  if (template === undefined) throw unusable(`${of}: spec.template is missing`);
  const { apiVersion, kind, metadata } = controller;
  const { namespace = '', name, uid = '' } = metadata;
  const { annotations } = template.metadata ?? {};
  return shaped(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${name}-${MADE_UP}`,
        namespace,
        labels: { ...template.metadata?.labels, ...more },
        ...(annotations === undefined ? {} : { annotations }),
        ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }],
      },
      spec: template.spec,
    },
    of,
  );
}

function firstOfSet(of: string, set: TypedObject, spec: WorkloadSpec): Pod {
  const first = String(spec.ordinals?.start ?? 0);
  const name = `${set.metadata.name}-${first}`;
  const pod = templated(of, set, spec.template, {
    'statefulset.kubernetes.io/pod-name': name,
    'apps.kubernetes.io/pod-index': first,
    'controller-revision-hash': MADE_UP,
  });
  const claimed = (spec.volumeClaimTemplates ?? []).map(({ metadata }) => ({
    name: metadata.name,
    persistentVolumeClaim: { claimName: `${metadata.name}-${name}`, readOnly: false },
  }));
  const names = new Set(claimed.map((one) => one.name));
  const volumes = [...claimed, ...(pod.spec.volumes ?? []).filter((one) => !names.has(one.name))];
  const subdomain = spec.serviceName ?? '';
  return {
    ...pod,
    metadata: { ...pod.metadata, name },
    spec: {
      ...pod.spec,
      ...(volumes.length === 0 ? {} : { volumes }),
      hostname: name,
      ...(subdomain === '' ? {} : { subdomain }),
    },
  };
}

function firstOfJob(of: string, job: TypedObject, spec: WorkloadSpec): Pod {
  const { name, uid = '' } = job.metadata;
  const isIndexed = spec.completionMode === 'Indexed';
  const index = isIndexed ? { [COMPLETION_INDEX]: '0' } : {};
  const pod = templated(of, job, spec.template, {
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
    'controller-uid': uid,
    'job-name': name,
    ...index,
  });
  if (!isIndexed) return pod;
  const fieldRef = { fieldPath: `metadata.labels['${COMPLETION_INDEX}']` };
  const told = { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef } };
  const telling = <T extends { env?: { name: string }[] }>(one: T): T =>
    one.env?.some((variable) => variable.name === told.name) === true
      ? one
      : { ...one, env: [...(one.env ?? []), told] };
  const { containers, initContainers } = pod.spec;
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      name: `${name}-0-${MADE_UP}`,
      annotations: { ...pod.metadata.annotations, ...index },
    },
    spec: {
      ...pod.spec,
      containers: containers.map(telling),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(telling) }),
      hostname: pod.spec.hostname ?? `${name}-0`,
    },
  };
}

/** Pods of a Job that run at the same time. */
function atOnce({ parallelism = 1, completions = parallelism }: WorkloadSpec): number {
  return Math.min(parallelism, completions);
}

/** Throws CliError when the pod does not have the JSON types of pods; what else is wrong with it the API server says. */
function shaped(pod: object, of: string): Pod {
  const copy: unknown = structuredClone(pod);
  const problem = misshapen(PODS, copy);
  if (problem !== undefined) throw unusable(`the pod of ${of}: ${problem}`);
  return copy as Pod;
}

/** For objects that nobody has created; equal in each run. */
function uidFor(kind: string): string {
  return `00000000-0000-4000-8000-${createHash('sha256').update(kind).digest('hex').slice(0, 12)}`;
}
