/** A kwok.x-k8s.io/v1alpha1 Stage: what a fake node or pod becomes, and when. */
export interface Stage {
  apiVersion: 'kwok.x-k8s.io/v1alpha1';
  kind: 'Stage';
  metadata: { name: string };
  spec: Record<string, unknown>;
}

function stage(name: string, kind: 'Node' | 'Pod', matchExpressions: object[], rest: object): Stage {
  return {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: { resourceRef: { apiGroup: 'v1', kind }, selector: { matchExpressions }, ...rest },
  };
}

const NODE_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status';
const POD_READY = NODE_READY;
const NOT_DELETING = { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' };

const NODE_CONDITIONS = `
{{ $now := Now }}
{{ $since := or .metadata.creationTimestamp $now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $since | Quote }}
{{ end }}`;

/** The Node object is created with addresses, capacity and nodeInfo; only conditions and the port are missing. */
const nodeInitialize = stage('node-initialize', 'Node', [{ key: NODE_READY, operator: 'NotIn', values: ['True'] }], {
  next: {
    statusTemplate: `${NODE_CONDITIONS}
{{ with NodePort }}
daemonEndpoints:
  kubeletEndpoint:
    Port: {{ . }}
{{ end }}
phase: Running
`,
  },
});

const nodeHeartbeat = stage(
  'node-heartbeat-with-lease',
  'Node',
  [
    { key: '.status.phase', operator: 'In', values: ['Running'] },
    { key: NODE_READY, operator: 'In', values: ['True'] },
  ],
  // The Lease keeps the node alive; the status is only refreshed now and then, as a kubelet does.
  {
    delay: { durationMilliseconds: 600_000, jitterDurationMilliseconds: 610_000 },
    next: { statusTemplate: NODE_CONDITIONS },
  },
);

const podReady = stage(
  'pod-ready',
  'Pod',
  [
    NOT_DELETING,
    { key: '.status.phase', operator: 'In', values: ['Pending'] },
    { key: POD_READY, operator: 'NotIn', values: ['True'] },
  ],
  {
    next: {
      statusTemplate: `
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
- {type: PodReadyToStartContainers, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
{{ with .spec.initContainers }}
initContainerStatuses:
{{ range . }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
{{ if eq (or .restartPolicy "") "Always" }}
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ else }}
  started: false
  state:
    terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}
{{ end }}
{{ end }}
{{ end }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ with PodIPsWith .spec.nodeName (or .spec.hostNetwork false) (or .metadata.uid "") (or .metadata.name "") (or .metadata.namespace "") }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
`,
    },
  },
);

/** Told by the label and not by the owner: a copy of a Job's pod in another cluster has no owner there. */
export const OF_JOB = { key: '.metadata.labels["batch.kubernetes.io/job-name"]', operator: 'Exists' };

/** How pods that run end, of those that `whose` is true of; a cluster that is given one has it in place of the usual one. */
export function podCompleteStage(whose: object, rest: object): Stage {
  const running = { key: '.status.phase', operator: 'In', values: ['Running'] };
  return stage('pod-complete', 'Pod', [NOT_DELETING, running, whose], rest);
}

const podComplete = podCompleteStage(OF_JOB, {
  next: {
    statusTemplate: `
{{ $now := Now }}
{{ $began := or .status.startTime $now }}
phase: Succeeded
conditions:
- {type: PodReadyToStartContainers, status: "False", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated: {exitCode: 0, reason: Completed, startedAt: {{ $began | Quote }}, finishedAt: {{ $now | Quote }}}
{{ end }}
`,
  },
});

/** At once, whatever the grace period; finalizers still hold the object. */
const podDelete = stage('pod-delete', 'Pod', [{ key: '.metadata.deletionTimestamp', operator: 'Exists' }], {
  next: { delete: true },
});

const FAST_STAGES: readonly Stage[] = [nodeInitialize, nodeHeartbeat, podReady, podComplete, podDelete];

/** The fast set, with `extra` added; an extra stage replaces one of the same name. */
export function stagesWith(extra: readonly Stage[]): Stage[] {
  const byName = new Map([...FAST_STAGES, ...extra].map((one) => [one.metadata.name, one]));
  return [...byName.values()];
}
