/** Why a field of the manager's configuration is what it is when nobody says otherwise. */
export interface Reason {
  /** As the page shows it. Another default needs another reason: a test holds them together. */
  default: string;
  why: string;
  unit?: string;
}

const ALL_ADDRESSES = { default: '0.0.0.0' };
const HOST_CA = {
  default: "the host's ConfigMap kube-system/extension-apiserver-authentication",
};
const KUBERNETES_PORTS = 'above the ports of Kubernetes itself (10248 to 10260)';

/** Of every field that may be left out, by its path. */
export const REASONS: Readonly<Record<string, Reason>> = {
  kubeconfig: {
    default: '$KUBECONFIG, then in-cluster',
    why: 'the order of kubectl and client-go: a pod has no $KUBECONFIG, and people mean theirs',
  },
  context: { default: 'its current-context', why: 'as kubectl' },
  namespace: { default: 'spillway-system', why: 'the manifests grant Leases there and nowhere else' },
  components: {
    default: 'members, scheduler',
    why: 'one Deployment does it all; take one out where it is to be scaled, or to fail, by itself',
  },
  identity: {
    default: 'one that the next process in the same place inherits, so that it need not wait after a crash',
    why: 'with another name a restarted process would wait until the Leases of the one before have run out',
  },
  nodeAddress: {
    default: '$POD_IP, then the first non-loopback IPv4 address',
    why: 'a pod is reached at its IP; API servers refuse nodes/proxy at loopback addresses',
  },
  hostIdentity: {
    default: 'Auto',
    why: 'certificates limit a stolen token to its own node, and not every cluster signs them',
  },
  'kubelet.bindAddress': {
    ...ALL_ADDRESSES,
    why: 'API servers and metrics-server call from outside the pod; callers must show who they are',
  },
  'kubelet.firstPort': {
    default: '0',
    why: 'needs no range that is free on the machine; `manifests/manager.yaml` sets 10260, as firewalls can be told of ports that stay',
  },
  'kubelet.servingCertificate': {
    default: 'mode SelfSigned',
    why: 'needs nobody who approves it; most API servers do not verify kubelets',
  },
  'kubelet.clientCaFile': {
    ...HOST_CA,
    why: 'API servers publish there whose certificates to trust, for such servers',
  },
  'outages.toleration': {
    default: 'Forever',
    why: 'pods in members go on while the manager is away; Kubernetes would delete them, and nobody can take that back',
  },
  'outages.admissionSeconds': {
    default: '300',
    unit: 'seconds',
    why: "the flag's default in Kubernetes; with another value, what admission wrote would count as what the user said",
  },
  'scheduler.bindAddress': {
    ...ALL_ADDRESSES,
    why: 'kube-scheduler runs elsewhere; only who shows a certificate of `clientNames` is answered',
  },
  'scheduler.port': { default: '10270', why: `${KUBERNETES_PORTS}; the manifests name it` },
  'scheduler.names': {
    default: 'those of the Service spillway-scheduler, its cluster IP, and, of mode SelfSigned, nodeAddress',
    why: 'what the manifests have kube-scheduler call',
  },
  'scheduler.servingCertificate': {
    default: 'mode SelfManaged',
    why: 'checked by both sides without a certificate manager, and the same for all replicas behind the Service',
  },
  'scheduler.servingCertificate.secretName': {
    default: 'spillway-scheduler',
    why: 'the one that `manifests/secrets.yaml` lets it write',
  },
  'scheduler.servingCertificate.clientSecretName': {
    default: 'spillway-scheduler-client',
    why: 'as above; the second scheduler mounts it',
  },
  'scheduler.clientCaFile': { ...HOST_CA, why: "kube-scheduler of the cluster has a certificate of the cluster's CA" },
  'scheduler.clientNames': {
    default:
      'system:kube-scheduler, spillway-scheduler-client, system:serviceaccount:spillway-system:spillway-scheduler',
    why: "the cluster's own scheduler, and the second one that the manifests bring: who may ask can have rooms kept",
  },
  'scheduler.scoring.weights.locality': {
    default: '40',
    why: 'outside is slower and costs more: what has room near by stays there, unless two of the others speak against it',
  },
  'scheduler.scoring.weights.freeRoom': {
    default: '30',
    why: 'a full cluster is a wait for the next pods; less than nearness, or pods would leave for room that they do not need',
  },
  'scheduler.scoring.weights.price': {
    default: '20',
    why: 'decides among clusters that are about as near and as free; where none has a price it makes no difference',
  },
  'scheduler.scoring.weights.images': {
    default: '10',
    why: 'an image is pulled once: it decides only where all else is about the same',
  },
  'scheduler.scoring.weights.signals': { default: 'none', why: 'only you know which scores from outside there are' },
  'scheduler.scoring.hysteresis': {
    default: '10',
    unit: 'points of 100',
    why: 'room changes with every pod: without it, the pods of one workload would be scattered over clusters that are about as good',
  },
  'descheduler.movesPerSecond': {
    default: '10',
    unit: 'pods per second',
    why: 'five members at once: no more than what starts the pods elsewhere takes without a queue',
  },
  'descheduler.movesPerSecondPerMember': {
    default: '2',
    unit: 'pods per second',
    why: 'empties a member of 2,000 pods in 17 minutes: slowly enough to see what happens, and to stop it',
  },
  'descheduler.movesPerPodPerHour': {
    default: '5',
    unit: 'moves per pod and hour',
    why: 'a fuse: rules for a better place come to one by themselves; only causes that come and go all the time, and people, come to more',
  },
  'descheduler.dryRun': {
    default: 'false',
    why: 'lost members and taints are to have an effect; rules can be tried one by one with `failover.dryRun` of a policy',
  },
  'http.bindAddress': {
    ...ALL_ADDRESSES,
    why: 'kubelets probe and Prometheus scrapes from outside the pod; there is nothing secret',
  },
  'http.port': { default: '8080', why: 'needs no privileges; the manifests name it' },
  'admission.schedulerName': {
    default: 'the one they have',
    why: 'pods go to another scheduler only where somebody wants it',
  },
  'admission.splitNodeConstraints': {
    default: 'false',
    why: 'without the extender nobody would hold the member to what was taken out of the pod',
  },
  'admission.webhook.enabled': {
    default: 'false',
    why: 'one more thing that has to be reachable when pods are made; the policies of Kubernetes 1.36 need no process',
  },
  'admission.webhook.bindAddress': { ...ALL_ADDRESSES, why: 'the API server calls from outside the pod' },
  'admission.webhook.port': { default: '9443', why: 'what webhooks commonly listen on; the manifests name it' },
  'admission.webhook.configuration': {
    default: 'spillway-pod-defaults',
    why: 'the name in `manifests/admission/webhook.yaml`',
  },
  'admission.webhook.clientCaFile': {
    default: 'whoever asks is answered',
    why: 'API servers show a certificate to webhooks only if they were told to; an answer depends on the question alone',
  },
  'admission.webhook.certificate': { default: 'mode SelfManaged', why: 'needs no certificate manager' },
  'admission.webhook.certificate.secretName': {
    default: 'spillway-webhook',
    why: 'the one that `manifests/secrets.yaml` lets it write',
  },
  'admission.webhook.certificate.names': {
    default: 'spillway-webhook.NAMESPACE.svc',
    why: 'what API servers call for a Service',
  },
  forceLeaveSeconds: {
    default: '300',
    unit: 'seconds',
    why: 'what then goes are the Nodes, with all their pods. Most outages are over by then; Kubernetes waits as long for nodes of its own',
  },
  shutdownGraceSeconds: {
    default: '8',
    unit: 'seconds',
    why: 'short commands end by themselves; with all that comes after it stays well below the 20 s (terminationGracePeriodSeconds) after which the manifests have it killed',
  },
  logLevel: { default: 'info', why: 'each change of state once, and nothing for each pod that goes well' },
};
