/** `verbs resources`, each with commas between: every verb on every resource. */
type Questions = string;

const WRITE = 'create,update,patch,delete,deletecollection';
const WORKLOADS =
  'deployments.apps,replicasets.apps,statefulsets.apps,daemonsets.apps,jobs.batch,cronjobs.batch,replicationcontrollers';
const STREAMS = 'pods/exec,pods/attach,pods/portforward,pods/proxy';
const POLICIES = ['placementpolicies', 'overridepolicies', 'clusterplacementpolicies', 'clusteroverridepolicies'];

/** What none of the roles allows, be it the host's or a member's. */
const NOBODY: readonly Questions[] = [
  `${WRITE} ${WORKLOADS}`,
  'update,patch ' + ['deployments', 'replicasets', 'statefulsets'].map((kind) => `${kind}.apps/scale`).join(','),
  'update,deletecollection pods',
  'create pods/binding,bindings',
  'update pods/ephemeralcontainers,pods/resize,pods/status',
  'get,create pods/proxy,services/proxy',
  'create,update,patch nodes/proxy',
  'update,deletecollection nodes',
  'update,patch,deletecollection namespaces',
  'update namespaces/finalize',
  'deletecollection secrets,configmaps,services,endpointslices.discovery.k8s.io,events,persistentvolumeclaims',
  'deletecollection persistentvolumes,leases.coordination.k8s.io,poddisruptionbudgets.policy',
  `${WRITE} serviceaccounts,resourcequotas,limitranges,networkpolicies.networking.k8s.io,ingresses.networking.k8s.io`,
  'create serviceaccounts/token',
  ...['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'].map(
    (kind) => `${WRITE},escalate,bind ${kind}.rbac.authorization.k8s.io`,
  ),
  'impersonate users,groups,serviceaccounts',
  'approve,sign signers.certificates.k8s.io',
  'update,patch certificatesigningrequests.certificates.k8s.io/approval',
  ...['validatingadmissionpolicies', 'mutatingadmissionpolicies', 'validatingwebhookconfigurations'].map(
    (kind) => `${WRITE} ${kind}.admissionregistration.k8s.io`,
  ),
  'create,update,patch,delete,deletecollection mutatingwebhookconfigurations.admissionregistration.k8s.io',
  `${WRITE} customresourcedefinitions.apiextensions.k8s.io,apiservices.apiregistration.k8s.io`,
  `${WRITE} priorityclasses.scheduling.k8s.io,storageclasses.storage.k8s.io`,
  ...[...POLICIES, 'clustertaintpolicies', 'placementscores'].map((kind) => `${WRITE} ${kind}.spillway.dev`),
  'create,update,delete,deletecollection memberclusters.spillway.dev',
  'create,update,patch,deletecollection workloadrebalancers.spillway.dev,workloadmigrations.spillway.dev',
  'update,patch,deletecollection workloadplacements.spillway.dev',
];

const NO_PODS_MADE = 'create pods';
const NO_PODS_ENDED = ['delete pods', 'create pods/eviction'];
const NO_PODS_CHANGED = ['patch pods', 'patch pods/status,pods/ephemeralcontainers,pods/resize'];
const NO_STREAMS = [`get,create ${STREAMS}`, 'get pods/log', 'get nodes/proxy'];
const NO_NODES = `${WRITE} nodes,nodes/status`;
const NO_NAMESPACES = 'create,delete namespaces';
const NO_SECRETS = [`get,list,watch,${WRITE} secrets`, `${WRITE} configmaps`];
const NO_SERVICES = `${WRITE} services,endpointslices.discovery.k8s.io`;
const NO_VOLUMES = `${WRITE} persistentvolumeclaims,persistentvolumes`;
const NO_BUDGETS = `${WRITE} poddisruptionbudgets.policy`;
const NO_LEASES = `get,${WRITE} leases.coordination.k8s.io`;
const NO_ORDERS = 'delete workloadrebalancers.spillway.dev,workloadmigrations.spillway.dev';
const NO_RECORDS = 'create,delete workloadplacements.spillway.dev';
const NO_MEMBERS = 'patch memberclusters.spillway.dev,memberclusters.spillway.dev/status';
const NO_EXCHANGE = `${WRITE} serviceexports.multicluster.x-k8s.io,serviceimports.multicluster.x-k8s.io`;

/** Of what is not pods, all that the manager and the host write at all. */
const NOTHING_ELSE: readonly Questions[] = [
  NO_NODES,
  NO_NAMESPACES,
  ...NO_SECRETS,
  NO_SERVICES,
  NO_VOLUMES,
  NO_BUDGETS,
  NO_LEASES,
  NO_ORDERS,
  NO_RECORDS,
  NO_MEMBERS,
  NO_EXCHANGE,
];
const NO_POD_WORK: readonly Questions[] = [NO_PODS_MADE, ...NO_PODS_ENDED, ...NO_PODS_CHANGED, ...NO_STREAMS];

const without = (all: readonly Questions[], ...some: readonly Questions[]): Questions[] =>
  all.filter((one) => !some.includes(one));

const MANAGED = 'spillway-system';
/** What a namespace that is lent or made for the host keeps from it. */
const OF_LENT: readonly Questions[] = [
  'create pods/eviction',
  'patch pods/status',
  'get nodes/proxy',
  NO_NODES,
  NO_SERVICES,
  `${WRITE} persistentvolumes`,
  'update persistentvolumeclaims',
  'patch poddisruptionbudgets.policy',
  NO_LEASES,
  NO_ORDERS,
  NO_RECORDS,
  NO_MEMBERS,
  NO_EXCHANGE,
];
/** What exchanging Services takes is not even all of what is written of Services. */
const OF_EXCHANGE: readonly Questions[] = [
  ...NO_POD_WORK,
  'get,list,watch pods',
  'patch services,endpointslices.discovery.k8s.io',
  `${WRITE} serviceexports.multicluster.x-k8s.io`,
  'update,deletecollection serviceimports.multicluster.x-k8s.io',
  ...without(NOTHING_ELSE, NO_SERVICES, NO_EXCHANGE),
];
const NOTHING: readonly Questions[] = [...NO_POD_WORK, 'get,list,watch pods', ...NOTHING_ELSE];

/** By namespace, '' is everywhere. */
type Places = Readonly<Record<string, readonly Questions[]>>;

/**
 * By file of manifests/: what the roles that it binds must never allow by themselves, whatever the file says. It is written down once
 * more, as what is expected of a file cannot be read from that file.
 */
export const NEVER: Readonly<Record<string, Places>> = {
  'rbac.yaml': {
    '': [
      ...NO_POD_WORK,
      'get,list,watch pods',
      'create,update nodes,nodes/status',
      NO_NAMESPACES,
      ...NO_SECRETS,
      NO_SERVICES,
      'create,update,delete persistentvolumeclaims',
      'update persistentvolumes',
      'create,update,delete poddisruptionbudgets.policy',
      NO_LEASES,
      NO_ORDERS,
      NO_RECORDS,
      NO_EXCHANGE,
    ],
    [MANAGED]: [...NO_POD_WORK, `${WRITE} secrets,configmaps`, NO_SERVICES, 'patch leases.coordination.k8s.io'],
  },
  'rbac-service-account.yaml': {
    '': [
      NO_PODS_MADE,
      'create pods/eviction',
      'patch pods,pods/ephemeralcontainers,pods/resize',
      ...NO_STREAMS,
      'update,patch,delete nodes',
      'create,update,delete nodes/status',
      `${WRITE} secrets,configmaps`,
      ...without(NOTHING_ELSE, NO_NODES, ...NO_SECRETS),
    ],
    'kube-node-lease': [NO_PODS_MADE, `${WRITE} secrets,configmaps`, 'patch,delete leases.coordination.k8s.io'],
  },
  'secrets.yaml': {
    '': NOTHING,
    [MANAGED]: [...without(NOTHING, ...NO_SECRETS), 'get,list,watch,update,delete secrets', `${WRITE} configmaps`],
  },
  'outages.yaml': {
    '': [
      'get,list,watch pods',
      NO_PODS_MADE,
      ...NO_PODS_ENDED,
      'patch pods/status,pods/ephemeralcontainers,pods/resize',
      ...NO_STREAMS,
      ...NOTHING_ELSE,
    ],
  },
  'scheduler/rbac.yaml': {
    '': [
      NO_PODS_MADE,
      ...NO_PODS_ENDED,
      'patch pods/status,pods/ephemeralcontainers,pods/resize',
      ...NO_STREAMS,
      ...without(NOTHING_ELSE, NO_RECORDS),
    ],
  },
  'scheduler/gangs.yaml': {
    '': ['list,watch pods', NO_PODS_MADE, 'delete pods', ...NO_PODS_CHANGED, ...NO_STREAMS, ...NOTHING_ELSE],
  },
  'scheduler/descheduler.yaml': {
    '': [
      'list,watch pods',
      NO_PODS_MADE,
      'delete pods',
      'patch pods/status,pods/ephemeralcontainers,pods/resize',
      ...NO_STREAMS,
      ...without(NOTHING_ELSE, NO_ORDERS),
    ],
  },
  'scheduler/second-scheduler.yaml': {
    '': NOTHING,
    [MANAGED]: [...without(NOTHING, NO_LEASES), 'get,list,watch,update,patch,delete leases.coordination.k8s.io'],
  },
  'admission/webhook.yaml': {
    '': [...NOTHING, 'get,list,watch mutatingwebhookconfigurations.admissionregistration.k8s.io'],
  },
  'multi-cluster/host.yaml': { '': OF_EXCHANGE },
  'member/read.yaml': { '': [...NO_POD_WORK, ...NOTHING_ELSE] },
  'member/namespaced.yaml': { '': NOTHING, shop: [...OF_LENT, NO_NAMESPACES] },
  'member/dedicated.yaml': { '': OF_LENT },
  'member/token.yaml': { '': NOTHING, 'spillway-access': NOTHING },
  'member/node-metrics.yaml': { '': [...without(NOTHING, ...NO_STREAMS), `get,create ${STREAMS}`, 'get pods/log'] },
  'member/services.yaml': {
    '': [...without(NOTHING, NO_SERVICES), 'patch services,endpointslices.discovery.k8s.io'],
  },
  'member/privileged.yaml': { '': NOTHING },
  'member/multi-cluster.yaml': { '': OF_EXCHANGE },
};

/** One verb on one resource each, as `verb resource namespace`. */
export function neverIn(namespace: string, lines: readonly Questions[]): string[] {
  return [...NOBODY, ...lines].flatMap((line) => {
    const [verbs = '', resources = ''] = line.split(' ');
    return verbs
      .split(',')
      .flatMap((verb) => resources.split(',').map((resource) => `${verb} ${resource} ${namespace}`.trim()));
  });
}
