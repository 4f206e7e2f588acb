import { conditions, metadata } from './metadata.ts';
import { affinity, opaque, tolerations, topologySpread } from './selectors.ts';
import { fields, flag, listOf, number, quantities, text, textMap, texts, time, type Shape } from './shape.ts';

const resources = fields({
  requests: quantities,
  limits: quantities,
  claims: listOf(fields({ name: text, request: text })),
});
const reference = fields({ name: text, key: text, optional: flag });

const container = fields(
  {
    name: text,
    image: text,
    command: texts,
    args: texts,
    restartPolicy: text,
    resources,
    env: listOf(
      fields(
        {
          name: text,
          value: text,
          valueFrom: fields({
            fieldRef: fields({ fieldPath: text }),
            resourceFieldRef: fields({ resource: text, containerName: text }),
            configMapKeyRef: reference,
            secretKeyRef: reference,
          }),
        },
        ['name'],
      ),
    ),
    envFrom: listOf(fields({ prefix: text, configMapRef: reference, secretRef: reference })),
    ports: listOf(fields({ containerPort: number, name: text, protocol: text, hostPort: number, hostIP: text })),
    volumeMounts: listOf(fields({ name: text, mountPath: text, subPath: text, readOnly: flag })),
    securityContext: opaque,
  },
  ['name'],
);

const projection = fields({
  configMap: reference,
  secret: reference,
  serviceAccountToken: fields({ path: text, audience: text, expirationSeconds: number }),
});
const volume = fields(
  {
    name: text,
    configMap: reference,
    secret: fields({ secretName: text, optional: flag }),
    projected: fields({ sources: listOf(projection) }),
    persistentVolumeClaim: fields({ claimName: text, readOnly: flag }),
    ephemeral: opaque,
    csi: fields({ driver: text, nodePublishSecretRef: reference }),
    emptyDir: opaque,
    hostPath: opaque,
  },
  ['name'],
);

const spec = fields(
  {
    containers: listOf(container),
    initContainers: listOf(container),
    ephemeralContainers: listOf(container),
    volumes: listOf(volume),
    nodeName: text,
    nodeSelector: textMap,
    affinity,
    tolerations,
    topologySpreadConstraints: topologySpread,
    schedulerName: text,
    schedulingGates: listOf(fields({ name: text }, ['name'])),
    serviceAccountName: text,
    automountServiceAccountToken: flag,
    imagePullSecrets: listOf(reference),
    restartPolicy: text,
    terminationGracePeriodSeconds: number,
    activeDeadlineSeconds: number,
    hostname: text,
    subdomain: text,
    priority: number,
    priorityClassName: text,
    runtimeClassName: text,
    overhead: quantities,
    resources,
    readinessGates: listOf(fields({ conditionType: text }, ['conditionType'])),
    resourceClaims: listOf(fields({ name: text }, ['name'])),
    securityContext: opaque,
  },
  ['containers'],
);

const state = fields({
  waiting: fields({ reason: text, message: text }),
  running: fields({ startedAt: time }),
  terminated: fields(
    {
      exitCode: number,
      signal: number,
      reason: text,
      message: text,
      startedAt: time,
      finishedAt: time,
      containerID: text,
    },
    ['exitCode'],
  ),
});
const containerStatuses = listOf(
  fields(
    {
      name: text,
      image: text,
      imageID: text,
      ready: flag,
      restartCount: number,
      containerID: text,
      started: flag,
      state,
      lastState: state,
      allocatedResources: quantities,
      resources,
    },
    ['name'],
  ),
);

const status = fields({
  phase: text,
  conditions,
  message: text,
  reason: text,
  hostIP: text,
  hostIPs: listOf(fields({ ip: text })),
  podIP: text,
  podIPs: listOf(fields({ ip: text }, ['ip'])),
  startTime: time,
  nominatedNodeName: text,
  qosClass: text,
  containerStatuses,
  initContainerStatuses: containerStatuses,
  ephemeralContainerStatuses: containerStatuses,
  resize: text,
  resources,
  allocatedResources: quantities,
  observedGeneration: number,
});

export const pod: Shape = fields({ metadata, spec, status }, ['spec']);
