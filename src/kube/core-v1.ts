/**
 * Pods, nodes and the smaller kinds of core/v1 as this program reads them, as they travel on the wire. The shapes name what is looked at, not all that exists:
 * unknown fields stay on the objects at run time, so objects are changed by spreading, never rebuilt from these types.
 * Quantities and times are strings as Kubernetes writes them.
 */
import type { KubeObject } from './object.ts';

/** Resource name to quantity, such as `{ cpu: '500m', memory: '1Gi' }`. */
export type ResourceList = Record<string, string | number>;
export type IntOrString = number | string;

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastProbeTime?: string | null;
  lastHeartbeatTime?: string;
  observedGeneration?: number;
}

export interface LabelSelectorRequirement {
  key: string;
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  values?: string[];
}
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: LabelSelectorRequirement[];
}

export type TaintEffect = 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
export interface Taint {
  key: string;
  value?: string;
  effect: TaintEffect;
  timeAdded?: string;
}
export interface Toleration {
  key?: string;
  operator?: 'Exists' | 'Equal' | 'Lt' | 'Gt';
  value?: string;
  effect?: TaintEffect | '';
  tolerationSeconds?: number;
}

export interface LocalObjectReference {
  name?: string;
}
export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
  fieldPath?: string;
}

// --- Pods ---

export interface Pod extends KubeObject {
  spec: PodSpec;
  status?: PodStatus;
}

export interface PodSpec {
  containers: Container[];
  initContainers?: Container[];
  ephemeralContainers?: EphemeralContainer[];
  volumes?: Volume[];
  nodeName?: string;
  nodeSelector?: Record<string, string>;
  affinity?: Affinity;
  tolerations?: Toleration[];
  topologySpreadConstraints?: TopologySpreadConstraint[];
  schedulerName?: string;
  schedulingGates?: { name: string }[];
  serviceAccountName?: string;
  serviceAccount?: string;
  automountServiceAccountToken?: boolean;
  imagePullSecrets?: LocalObjectReference[];
  restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  terminationGracePeriodSeconds?: number;
  activeDeadlineSeconds?: number;
  hostname?: string;
  subdomain?: string;
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  hostUsers?: boolean;
  hostAliases?: { ip: string; hostnames?: string[] }[];
  dnsPolicy?: string;
  enableServiceLinks?: boolean;
  priority?: number;
  priorityClassName?: string;
  preemptionPolicy?: string;
  runtimeClassName?: string;
  overhead?: ResourceList;
  resources?: ResourceRequirements;
  readinessGates?: { conditionType: string }[];
  resourceClaims?: { name: string; resourceClaimName?: string; resourceClaimTemplateName?: string }[];
  securityContext?: Record<string, unknown>;
  os?: { name: string };
}

export interface ResourceRequirements {
  requests?: ResourceList;
  limits?: ResourceList;
  claims?: { name: string; request?: string }[];
}

export interface Container {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  env?: EnvVar[];
  envFrom?: EnvFromSource[];
  ports?: ContainerPort[];
  resources?: ResourceRequirements;
  /** `Always` on an init container makes it a sidecar (KEP-753). */
  restartPolicy?: string;
  volumeMounts?: VolumeMount[];
  volumeDevices?: { name: string; devicePath: string }[];
  imagePullPolicy?: string;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
  securityContext?: Record<string, unknown>;
  livenessProbe?: Record<string, unknown>;
  readinessProbe?: Record<string, unknown>;
  startupProbe?: Record<string, unknown>;
  lifecycle?: Record<string, unknown>;
}
export interface EphemeralContainer extends Container {
  targetContainerName?: string;
}
export interface ContainerPort {
  containerPort: number;
  name?: string;
  protocol?: string;
  hostPort?: number;
  hostIP?: string;
}
export interface VolumeMount {
  name: string;
  mountPath: string;
  subPath?: string;
  subPathExpr?: string;
  readOnly?: boolean;
}

export interface KeySelector {
  name?: string;
  key: string;
  optional?: boolean;
}
export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: {
    fieldRef?: { fieldPath: string; apiVersion?: string };
    resourceFieldRef?: { resource: string; containerName?: string; divisor?: string };
    configMapKeyRef?: KeySelector;
    secretKeyRef?: KeySelector;
    fileKeyRef?: { volumeName: string; path: string; key: string; optional?: boolean };
  };
}
export interface EnvFromSource {
  prefix?: string;
  configMapRef?: { name?: string; optional?: boolean };
  secretRef?: { name?: string; optional?: boolean };
}

export interface KeyToPath {
  key: string;
  path: string;
  mode?: number;
}
export interface ConfigMapVolumeSource {
  name?: string;
  items?: KeyToPath[];
  optional?: boolean;
  defaultMode?: number;
}
export interface SecretVolumeSource {
  secretName?: string;
  items?: KeyToPath[];
  optional?: boolean;
  defaultMode?: number;
}
export interface VolumeProjection {
  configMap?: { name?: string; items?: KeyToPath[]; optional?: boolean };
  secret?: { name?: string; items?: KeyToPath[]; optional?: boolean };
  serviceAccountToken?: { path: string; audience?: string; expirationSeconds?: number };
  downwardAPI?: { items?: unknown[] };
  clusterTrustBundle?: Record<string, unknown>;
  podCertificate?: Record<string, unknown>;
}
export interface Volume {
  name: string;
  configMap?: ConfigMapVolumeSource;
  secret?: SecretVolumeSource;
  projected?: { sources?: VolumeProjection[]; defaultMode?: number };
  emptyDir?: Record<string, unknown>;
  downwardAPI?: Record<string, unknown>;
  hostPath?: { path: string; type?: string };
  persistentVolumeClaim?: { claimName: string; readOnly?: boolean };
  ephemeral?: Record<string, unknown>;
  csi?: { driver: string; nodePublishSecretRef?: LocalObjectReference };
  image?: Record<string, unknown>;
}

export interface NodeSelectorRequirement {
  key: string;
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
  values?: string[];
}
export interface NodeSelectorTerm {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
}
export interface NodeSelector {
  nodeSelectorTerms: NodeSelectorTerm[];
}
export interface NodeAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector;
  preferredDuringSchedulingIgnoredDuringExecution?: { weight: number; preference: NodeSelectorTerm }[];
}
export interface PodAffinityTerm {
  topologyKey: string;
  labelSelector?: LabelSelector;
  namespaces?: string[];
  namespaceSelector?: LabelSelector;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
}
export interface PodAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: { weight: number; podAffinityTerm: PodAffinityTerm }[];
}
export interface Affinity {
  nodeAffinity?: NodeAffinity;
  podAffinity?: PodAffinity;
  podAntiAffinity?: PodAffinity;
}
export interface TopologySpreadConstraint {
  maxSkew: number;
  topologyKey: string;
  whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway';
  labelSelector?: LabelSelector;
  minDomains?: number;
  matchLabelKeys?: string[];
  nodeAffinityPolicy?: 'Honor' | 'Ignore';
  nodeTaintsPolicy?: 'Honor' | 'Ignore';
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
export interface PodStatus {
  phase?: PodPhase;
  conditions?: Condition[];
  message?: string;
  reason?: string;
  hostIP?: string;
  hostIPs?: { ip: string }[];
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
  nominatedNodeName?: string;
  qosClass?: string;
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
  ephemeralContainerStatuses?: ContainerStatus[];
  resize?: string;
  resources?: ResourceRequirements;
  allocatedResources?: ResourceList;
  observedGeneration?: number;
}
export interface ContainerStatus {
  name: string;
  image: string;
  imageID: string;
  ready: boolean;
  restartCount: number;
  containerID?: string;
  started?: boolean;
  state?: ContainerState;
  lastState?: ContainerState;
  allocatedResources?: ResourceList;
  resources?: ResourceRequirements;
}
export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: ContainerStateTerminated;
}
export interface ContainerStateTerminated {
  exitCode: number;
  signal?: number;
  reason?: string;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
  containerID?: string;
}

// --- Nodes ---

export interface Node extends KubeObject {
  spec?: NodeSpec;
  status?: NodeStatus;
}
export interface NodeSpec {
  providerID?: string;
  unschedulable?: boolean;
  taints?: Taint[];
  podCIDR?: string;
  podCIDRs?: string[];
}
export interface NodeAddress {
  type: 'InternalIP' | 'ExternalIP' | 'Hostname' | 'InternalDNS' | 'ExternalDNS';
  address: string;
}
export interface NodeSystemInfo {
  machineID: string;
  systemUUID: string;
  bootID: string;
  kernelVersion: string;
  osImage: string;
  containerRuntimeVersion: string;
  kubeletVersion: string;
  kubeProxyVersion: string;
  operatingSystem: string;
  architecture: string;
}
export interface NodeStatus {
  capacity?: ResourceList;
  allocatable?: ResourceList;
  conditions?: Condition[];
  addresses?: NodeAddress[];
  daemonEndpoints?: { kubeletEndpoint?: { Port: number } };
  nodeInfo?: NodeSystemInfo;
  images?: { names?: string[]; sizeBytes?: number }[];
  declaredFeatures?: string[];
}

// --- Smaller kinds ---

/** `data` values are base64. */
export interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  immutable?: boolean;
}
export interface Namespace extends KubeObject {
  status?: { phase?: 'Active' | 'Terminating'; conditions?: Condition[] };
}
export interface Event extends KubeObject {
  involvedObject: ObjectReference;
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  source?: { component?: string; host?: string };
  reportingComponent?: string;
  reportingInstance?: string;
  action?: string;
}
