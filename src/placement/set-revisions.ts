import type { Container, PodSpec } from '../kube/core-v1.ts';
import { GROUP } from '../api/marks.ts';
import { defined } from '../kube/defined.ts';
import type { ObjectMeta } from '../kube/object.ts';

/** The label by which a StatefulSet tells which revision of its template a pod is of. */
export const SET_REVISION = 'controller-revision-hash';

/** A template of pods, without what placement does not look at. */
export interface SetTemplate {
  readonly metadata: Pick<ObjectMeta, 'labels' | 'annotations'>;
  readonly spec: PodSpec;
}

/** What is kept of a StatefulSet beside what is kept of every owner: which template the next pod of an ordinal is made from. */
export interface SetRevisions {
  readonly metadata: Pick<ObjectMeta, 'generation'>;
  readonly spec?: {
    readonly ordinals?: { readonly start?: number };
    readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: { readonly partition?: number } };
    /** Of `status.updateRevision`; only while a pod may be of another one. */
    readonly template?: SetTemplate;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly currentRevision?: string;
    readonly updateRevision?: string;
    readonly currentReplicas?: number;
  };
}

/**
 * The revision of which its controller makes the next pod of that name (newVersionedStatefulSetPod in Kubernetes' stateful_set_utils.go): below the
 * partition the current one, else the one that it updates to. Undefined: it has not said yet, or that is no pod of its.
 */
export function revisionOfNext(podName: string, { spec = {}, status = {} }: SetRevisions): string | undefined {
  const { currentRevision, updateRevision, currentReplicas = 0 } = status;
  const ordinal = /-(\d+)$/.exec(podName)?.[1];
  if (ordinal === undefined) return undefined;
  const { ordinals, updateStrategy = {} } = spec;
  const { type, rollingUpdate } = updateStrategy;
  const notYet = rollingUpdate?.partition ?? (type === 'RollingUpdate' && !rollingUpdate ? currentReplicas : 0);
  const isOfCurrent = Number(ordinal) < (ordinals?.start ?? 0) + notYet;
  return isOfCurrent ? (currentRevision ?? updateRevision) : updateRevision;
}

/** Its controller has yet to see how it is now, and may make pods of a revision that nobody knows yet. */
export function isUnseenByController({ metadata: { generation = 0 }, status = {} }: SetRevisions): boolean {
  return generation > (status.observedGeneration ?? generation);
}

/** The part of a StatefulSet, as the host has it, that {@link SetRevisions} is about. At rest next to nothing of it is kept. */
export function keptOfSet(raw: object): Required<SetRevisions> {
  const { metadata, spec = {}, status = {} } = raw as SetRevisions & { status?: Counts };
  const {
    observedGeneration,
    currentRevision,
    updateRevision,
    currentReplicas,
    replicas = 0,
    updatedReplicas = 0,
  } = status;
  const { generation } = metadata;
  const { ordinals, updateStrategy, template } = spec;
  const seen = defined({ observedGeneration, updateRevision });
  if (currentRevision === updateRevision && updatedReplicas === replicas) {
    return { metadata: defined({ generation }), spec: {}, status: seen };
  }
  return {
    metadata: defined({ generation }),
    spec: {
      ...defined({ ordinals, updateStrategy }),
      ...(template === undefined ? {} : { template: keptOfTemplate(template) }),
    },
    status: { ...seen, ...defined({ currentRevision, currentReplicas }) },
  };
}

/** Pods there are, and those of them that are of the revision that it updates to. */
interface Counts {
  readonly replicas?: number;
  readonly updatedReplicas?: number;
}

/** Without what containers are told and how they are watched, which may be long. */
function keptOfTemplate({ metadata: { labels, annotations = {} } = {}, spec }: Partial<SetTemplate>): SetTemplate {
  const own = Object.entries(annotations).filter(([key]) => key.startsWith(`${GROUP}/`));
  const { containers = [], initContainers, ...rest } = spec ?? {};
  return {
    metadata: { ...defined({ labels }), ...(own.length === 0 ? {} : { annotations: Object.fromEntries(own) }) },
    spec: {
      ...rest,
      containers: containers.map(asking),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(asking) }),
    },
  };
}

function asking({ name, image, resources, ports, restartPolicy }: Container): Container {
  return { name, ...defined({ image, resources, ports, restartPolicy }) };
}
