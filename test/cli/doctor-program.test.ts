import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { customResourceDefinition } from '../../src/api/crd.ts';
import { KINDS } from '../../src/api/kinds.ts';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { manifestsOf } from '../../src/cli/doctor/manifests.ts';
import { runProgram } from '../../src/cli/program.ts';
import { selfSigned } from '../../src/serving/serving-key.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';
import { FakeTerminal } from './fake-terminal.ts';

/** The whole verb against an API server that answers as it is told: one thing after the other is broken there. */

interface World {
  /** Objects by the path of their list. */
  lists: Record<string, object[]>;
  version: string;
  /** What the clock of the API server is ahead, in ms. */
  aheadMs: number;
  /** Words of the API server when it asks a virtual node; undefined: it reaches it. */
  portError: string | undefined;
  metrics: number;
  /** Of rights that the manager lacks. */
  lacks: (resource: string) => boolean;
}

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const OURS = '/apis/spillway.dev/v1alpha1';
const MEMBERS = `${OURS}/memberclusters`;
const POLICIES = `${OURS}/placementpolicies`;
const PLACEMENTS = `${OURS}/workloadplacements`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases';
const NAMESPACES = '/api/v1/namespaces';
const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const GUARDS = `${ADMISSION}/validatingadmissionpolicies`;
const BINDINGS = `${ADMISSION}/validatingadmissionpolicybindings`;
const WEBHOOKS = `${ADMISSION}/mutatingwebhookconfigurations`;
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/spillway-system/endpointslices';
const NODES = '/api/v1/nodes';
const PODS = '/api/v1/pods';
const BUDGETS = '/apis/policy/v1/poddisruptionbudgets';

const LIST_KINDS: Record<string, string> = {
  customresourcedefinitions: 'CustomResourceDefinition',
  memberclusters: 'MemberCluster',
  placementpolicies: 'PlacementPolicy',
  clusterplacementpolicies: 'ClusterPlacementPolicy',
  clustertaintpolicies: 'ClusterTaintPolicy',
  workloadplacements: 'WorkloadPlacement',
  leases: 'Lease',
  namespaces: 'Namespace',
  certificatesigningrequests: 'CertificateSigningRequest',
  validatingadmissionpolicies: 'ValidatingAdmissionPolicy',
  validatingadmissionpolicybindings: 'ValidatingAdmissionPolicyBinding',
  mutatingadmissionpolicies: 'MutatingAdmissionPolicy',
  mutatingwebhookconfigurations: 'MutatingWebhookConfiguration',
  endpointslices: 'EndpointSlice',
  nodes: 'Node',
  pods: 'Pod',
  poddisruptionbudgets: 'PodDisruptionBudget',
  servicecidrs: 'ServiceCIDR',
};
const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();
const condition = (type: string, status: string, reason = type, message = `${type} is told.`): object => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: ago(60),
});
const WELL = ['Ready', 'Reachable', 'CredentialsValid', 'IdentityPinned', 'DeletionsAllowed', 'CapacityFresh'];
const member = (
  broken: Record<string, string> = {},
  version = 'v1.35.1',
  but: Record<string, string> = {},
): object => ({
  metadata: { name: 'east' },
  spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } },
  status: {
    version,
    conditions: WELL.map((type) =>
      broken[type] === undefined ? condition(type, 'True', but[type] ?? type) : condition(type, 'False', broken[type]),
    ),
  },
});
/** One that is to exchange Services; `bad`: what is told of that. */
const exchanging = (bad: object[] = []): object => {
  const { spec, status, ...rest } = member() as { spec: object; status: { conditions: object[] } };
  const conditions = [...status.conditions, ...bad];
  return { ...rest, spec: { ...spec, services: { multiCluster: 'Exchange' } }, status: { ...status, conditions } };
};
const told = (one: object): object => {
  const { status, ...rest } = member() as { status: { conditions: object[] } };
  return { ...rest, status: { ...status, conditions: [...status.conditions, one] } };
};
const upstreamKinds = (): object[] =>
  (manifestsOf('multi-cluster/crds.yaml') ?? []).map((one) => ({
    ...one,
    status: { conditions: [condition('Established', 'True')] },
  }));
/** A host in which all is there that the exchange of Services needs. */
function exchange(one: World): void {
  put(MEMBERS, exchanging())(one);
  one.lists[CRDS]?.push(...upstreamKinds());
  const of = (kind: string): object[] =>
    (manifestsOf('multi-cluster/host.yaml') ?? []).filter((object) => object.kind === kind);
  one.lists[GUARDS]?.push(...of('ValidatingAdmissionPolicy'));
  one.lists[BINDINGS]?.push(...of('ValidatingAdmissionPolicyBinding'));
}
/** It lasts as long as the slowest machine takes for all tests, which share some of these. */
const lease = (name: string, renewed = ago(2)): object => ({
  metadata: { name },
  spec: { holderIdentity: 'manager_1', leaseDurationSeconds: 3_600, renewTime: renewed },
});
const request = (status: object): object => ({
  metadata: { name: 'spillway-east-abcde', creationTimestamp: ago(60) },
  spec: { signerName: 'kubernetes.io/kubelet-serving' },
  status,
});
const virtual = (ready = 'True', ...taints: object[]): object => ({
  metadata: { name: 'east' },
  spec: { providerID: 'spillway://east/east', taints },
  status: { conditions: [condition('Ready', ready)] },
});
const pod = (podIP: string): object => ({
  metadata: {
    name: 'web-0',
    namespace: 'shop',
    labels: { app: 'web' },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u', controller: true }],
  },
  spec: { nodeName: 'east', containers: [] },
  status: { phase: 'Running', podIP },
});
/** Of a workload of three. */
const budget = (desiredHealthy: number): object => ({
  metadata: { name: 'web', namespace: 'shop', generation: 1 },
  spec: { selector: { matchLabels: { app: 'web' } }, minAvailable: desiredHealthy },
  status: { observedGeneration: 1, expectedPods: 3, desiredHealthy, currentHealthy: 3, disruptionsAllowed: 0 },
});
let goodCa = '';
let oldCa = '';
const webhook = (caBundle: string): object => ({
  metadata: { name: 'spillway-pod-defaults' },
  webhooks: [
    {
      name: 'bursting.pods.spillway.dev',
      failurePolicy: 'Ignore',
      clientConfig: { caBundle, service: { namespace: 'spillway-system', name: 'spillway-webhook' } },
    },
  ],
});
const guardsOf = (kind: string): object[] =>
  ['rbac.yaml', 'node-guard.yaml', 'storage.yaml', 'scheduler/pod-guard.yaml', 'admission/node-taints.yaml']
    .flatMap((file) => manifestsOf(file) ?? [])
    .filter((one) => one.kind === kind);

/** A host in which nothing is wrong. */
function healthy(): World {
  return {
    lists: {
      [CRDS]: KINDS.map((kind) => ({
        ...customResourceDefinition(kind),
        status: { conditions: [condition('Established', 'True')] },
      })),
      [MEMBERS]: [member()],
      [POLICIES]: [{ metadata: { name: 'web', namespace: 'shop', creationTimestamp: ago(600) }, spec: {} }],
      [`${OURS}/clusterplacementpolicies`]: [],
      [`${OURS}/clustertaintpolicies`]: [],
      [PLACEMENTS]: [
        {
          metadata: { name: 'deployment-web', namespace: 'shop' },
          spec: { workload: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u' } },
        },
      ],
      [LEASES]: [lease('spillway-member-east'), lease('spillway-scheduler')],
      [NAMESPACES]: [{ metadata: { name: 'shop', labels: { 'spillway.dev/burst': 'enabled' } } }],
      [CSRS]: [request({ certificate: 'abc', conditions: [condition('Approved', 'True')] })],
      [GUARDS]: guardsOf('ValidatingAdmissionPolicy'),
      [BINDINGS]: guardsOf('ValidatingAdmissionPolicyBinding'),
      [`${ADMISSION}/mutatingadmissionpolicies`]: [],
      [WEBHOOKS]: [webhook(goodCa)],
      [SLICES]: [
        {
          metadata: { name: 'a' },
          addressType: 'IPv4',
          endpoints: [{ addresses: ['10.0.0.9'], conditions: { ready: true } }],
        },
      ],
      [NODES]: [virtual(), { metadata: { name: 'real' }, spec: { podCIDR: '10.1.0.0/24' } }],
      [PODS]: [pod('10.2.0.7')],
      [BUDGETS]: [budget(2)],
      [`${NAMESPACES}/shop/pods`]: [pod('10.2.0.7')],
      '/apis/networking.k8s.io/v1/servicecidrs': [{ metadata: { name: 'k' }, spec: { cidrs: ['10.96.0.0/16'] } }],
    },
    version: 'v1.36.3',
    aheadMs: 0,
    portError: undefined,
    metrics: 200,
    lacks: () => false,
  };
}

let world: World;
let server: TestServer;
const dir = mkdtempSync(join(tmpdir(), 'spillway-doctor-'));
const kubeconfig = join(dir, 'config');

beforeAll(async () => {
  const address = { nodeName: 'ca', addresses: ['127.0.0.1'] };
  const text = async (now: number, lifeMs: number): Promise<string> =>
    Buffer.from((await selfSigned(address, now, lifeMs)).cert).toString('base64');
  [goodCa, oldCa] = await Promise.all([text(Date.now(), 3_600_000), text(Date.now() - 7_200_000, 3_600_000)]);
  const own = await selfSigned({ nodeName: 'host', addresses: ['127.0.0.1'] }, Date.now(), 3_600_000);
  server = await startHttpServer((req, res, body) => answer(req.url ?? '/', res, body), own);
  const ca = Buffer.from(own.cert).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: server.url, 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token: 'secret' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
});
afterAll(async () => {
  await server?.close();
  rmSync(dir, { recursive: true, force: true });
});

function answer(url: string, res: ServerResponse, body: string): void {
  const { pathname, searchParams } = new URL(url, 'http://host');
  res.setHeader('Date', new Date(Date.now() + world.aheadMs).toUTCString());
  const refuse = (code: number, message: string): void =>
    sendJson(res, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message });
  if (pathname === '/version') return sendJson(res, 200, { gitVersion: world.version });
  if (pathname.endsWith('/proxy/healthz')) {
    if (world.portError !== undefined) return refuse(503, world.portError);
    res.end('ok');
    return;
  }
  if (pathname.endsWith('/subjectaccessreviews')) {
    const { spec } = JSON.parse(body) as { spec: { resourceAttributes: { resource: string } } };
    return sendJson(res, 201, { status: { allowed: !world.lacks(spec.resourceAttributes.resource) } });
  }
  if (pathname === '/apis/metrics.k8s.io/v1beta1')
    return world.metrics === 200 ? sendJson(res, 200, {}) : refuse(world.metrics, 'no figures');
  const items = world.lists[pathname];
  if (items === undefined) return refuse(404, 'the server could not find the requested resource');
  const onlyVirtual = pathname === NODES && searchParams.has('labelSelector');
  const [, kind = ''] = /\/([a-z]+)$/.exec(pathname) ?? [];
  const apiVersion = /^\/apis?\/((?:[a-z0-9.]+\/)?v1[a-z0-9]*)/.exec(pathname)?.[1];
  const shown = (onlyVirtual ? items.slice(0, 1) : items).map((one, index) => {
    const { metadata = {} } = one as { metadata?: object };
    return { ...one, metadata: { uid: `uid-${String(index)}`, resourceVersion: '1', ...metadata } };
  });
  sendJson(res, 200, {
    apiVersion,
    kind: `${LIST_KINDS[kind] ?? kind}List`,
    metadata: { resourceVersion: '1' },
    items: shown,
  });
}

async function doctor(): Promise<{ code: number; findings: Finding[]; notes: string[] }> {
  const terminal = new FakeTerminal({ env: { HOME: dir } });
  const code = await runProgram(['doctor', '--kubeconfig', kubeconfig, '-o', 'json'], terminal);
  const { findings } = JSON.parse(terminal.stdout === '' ? '{"findings":[]}' : terminal.stdout) as {
    findings: Finding[];
  };
  // A machine that is busy takes its time, and is told of it.
  const notes = terminal.notes.filter((note) => !note.startsWith('waiting for the answer'));
  return { code, findings, notes };
}

const put = (path: string, ...items: object[]) => {
  return (one: World): void => {
    one.lists[path] = items;
  };
};
const without = (path: string) => {
  return (one: World): void => {
    one.lists[path] = (one.lists[path] ?? []).slice(1);
  };
};
const port = (words: string) => {
  return (one: World): void => {
    one.portError = words;
  };
};

interface Breakage {
  do: (one: World) => void;
  check: string;
  /** Default: failed. */
  verdict?: 'warning';
  says: RegExp;
  fix: RegExp;
  /** Checks that have to be told with it, as they follow from the same cause. */
  also?: string[];
}

const BROKEN: Record<string, Breakage> = {
  'a disruption budget keeps pods of a member where they are': {
    do: put(BUDGETS, budget(3)),
    check: 'budgets',
    verdict: 'warning',
    says: /PodDisruptionBudget shop\/web \(minAvailable: 3, of 3\) can spare no pod: pods of StatefulSet\/web are never moved/,
    fix: /kubectl patch poddisruptionbudget web -n shop/,
  },
  'the host is too old': {
    do: (one) => (one.version = 'v1.29.9'),
    check: 'host version',
    says: /1\.29\.9 is older than 1\.30/,
    fix: /upgrade/,
    also: ['member versions'],
  },
  'a member is too old': {
    do: put(MEMBERS, member({}, 'v1.31.0')),
    check: 'member versions',
    verdict: 'warning',
    says: /east has Kubernetes v1\.31\.0, this cluster v1\.36\.3/,
    fix: /bring the two closer/,
  },
  'the clock of the API server is wrong': {
    do: (one) => (one.aheadMs = -90_000),
    check: 'clock',
    says: /[89]\d\.\d s apart/,
    fix: /NTP/,
  },
  'the clock of a manager is ahead': {
    do: put(LEASES, lease('spillway-member-east', ago(-3_600)), lease('spillway-scheduler')),
    check: 'clock',
    says: /a manager's clock is \d+ s ahead/,
    fix: /NTP/,
  },
  'a kind is missing': { do: without(CRDS), check: 'kinds', says: /is not there/, fix: /manifests\/crds\// },
  'no manager runs': {
    do: put(LEASES, lease('spillway-scheduler')),
    check: 'manager',
    says: /no manager works for any member/,
    fix: /get pods,leases/,
  },
  'a member cannot be reached': {
    do: put(MEMBERS, member({ Reachable: 'Timeout', Ready: 'Timeout' })),
    check: 'members',
    says: /east: Reachable is False \(Timeout\)/,
    fix: /API server of the member/,
  },
  'a member refuses the credentials': {
    do: put(MEMBERS, member({ CredentialsValid: 'Unauthorized', Ready: 'Unauthorized' })),
    check: 'members',
    says: /CredentialsValid is False \(Unauthorized\)/,
    fix: /kubeconfig that works/,
  },
  'the token of a member is not renewed': {
    do: put(MEMBERS, member({}, 'v1.35.1', { CredentialsValid: 'TokenNotRenewed' })),
    check: 'members',
    verdict: 'warning',
    says: /east: CredentialsValid is True \(TokenNotRenewed\)/,
    fix: /repeat kubectl spillway join/,
  },
  'another cluster answers': {
    do: put(MEMBERS, member({ IdentityPinned: 'IdentityChanged', Ready: 'IdentityChanged' })),
    check: 'members',
    says: /IdentityPinned is False/,
    fix: /confirm the other cluster/,
  },
  'pods have power over nodes where no level says so': {
    do: put(MEMBERS, told(condition('PodSecuritySet', 'False', 'NoLevelSet', 'kubectl label namespace shop'))),
    check: 'members',
    verdict: 'warning',
    says: /east: PodSecuritySet is False \(NoLevelSet\): kubectl label namespace shop/,
    fix: /owner of the member says/,
  },
  'namespaces allow more than the spec says': {
    do: put(MEMBERS, told(condition('PodSecuritySet', 'True', 'OtherLevels', '1 namespace allows more'))),
    check: 'members',
    verdict: 'warning',
    says: /PodSecuritySet is True \(OtherLevels\): 1 namespace allows more/,
    fix: /owner of the member says/,
  },
  'two MemberClusters stand for one cluster': {
    do: put(MEMBERS, told(condition('ClusterUnique', 'False', 'SharedCluster', 'west, too'))),
    check: 'members',
    verdict: 'warning',
    says: /ClusterUnique is False \(SharedCluster\): west, too/,
    fix: /delete one of the two/,
  },
  'Services are to be exchanged, and the host has no kinds for it': {
    do: (one) => {
      exchange(one);
      one.lists[CRDS] = one.lists[CRDS]?.slice(0, KINDS.length) ?? [];
    },
    check: 'kinds',
    says: /serviceexports\.multicluster\.x-k8s\.io, serviceimports\.multicluster\.x-k8s\.io is not served in v1beta1/,
    fix: /upgrade --multi-cluster Exchange/,
  },
  'Services are to be exchanged, and the kinds of the host are too old': {
    do: (one) => {
      exchange(one);
      const old = upstreamKinds().map((kind) => ({
        ...kind,
        spec: {
          versions: [
            { name: 'v1beta1', served: false },
            { name: 'v1alpha1', served: true },
          ],
        },
      }));
      one.lists[CRDS] = [...(one.lists[CRDS]?.slice(0, KINDS.length) ?? []), ...old];
    },
    check: 'kinds',
    says: /is not served in v1beta1/,
    fix: /to v0\.5 or newer/,
  },
  'Services are to be exchanged, and the manager has no right to': {
    do: (one) => {
      exchange(one);
      one.lacks = (resource) => resource === 'serviceimports';
    },
    check: 'rights',
    says: /may not list serviceimports\.multicluster\.x-k8s\.io/,
    fix: /apply -f manifests\/multi-cluster\/host\.yaml/,
  },
  'Services are to be exchanged, and nothing holds the manager to its own': {
    do: (one) => {
      exchange(one);
      one.lists[BINDINGS] = guardsOf('ValidatingAdmissionPolicyBinding');
    },
    check: 'guards',
    says: /not there: ValidatingAdmissionPolicyBinding spillway-multi-cluster-guard/,
    fix: /apply -f manifests\/multi-cluster\/host\.yaml/,
  },
  'Services are to be exchanged, and the member grants no rights': {
    do: (one) => {
      exchange(one);
      put(
        MEMBERS,
        exchanging([condition('ServicesExchanged', 'False', 'ExchangeRightMissing', 'It refuses it.')]),
      )(one);
    },
    check: 'members',
    says: /east: ServicesExchanged is False \(ExchangeRightMissing\): It refuses it\./,
    fix: /join --exchange-services/,
  },
  'nothing keeps people from emptying a member by a taint': {
    do: (one) => {
      one.lists[BINDINGS] = (guardsOf('ValidatingAdmissionPolicyBinding') as { metadata: { name: string } }[]).filter(
        ({ metadata }) => metadata.name !== 'spillway-node-taints',
      );
    },
    check: 'guards',
    verdict: 'warning',
    says: /^kubectl taint with effect NoExecute is taken on virtual nodes, .* \(not there: ValidatingAdmissionPolicyBinding spillway-node-taints\)$/,
    fix: /^kubectl apply -f manifests\/admission\/node-taints\.yaml$/,
  },
  'somebody has tainted a virtual node with NoExecute': {
    do: (one) =>
      put(
        NODES,
        virtual('True', { key: 'maintenance', effect: 'NoExecute' }),
        ...(one.lists[NODES] ?? []).slice(1),
      )(one),
    check: 'virtual nodes',
    verdict: 'warning',
    says: /^east has the taint maintenance:NoExecute: Kubernetes deletes all pods there/,
    fix: /kubectl taint node east maintenance:NoExecute-; in spec\.taints of MemberCluster east/,
  },
  'somebody drains a virtual node with NoExecute': {
    do: (one) =>
      put(
        NODES,
        virtual('True', { key: 'spillway.dev/drain', effect: 'NoExecute' }),
        ...(one.lists[NODES] ?? []).slice(1),
      )(one),
    check: 'virtual nodes',
    verdict: 'warning',
    says: /^east has the taint spillway\.dev\/drain:NoExecute/,
    fix: /with effect NoSchedule pods are moved/,
  },
  'somebody drains a virtual node, and perhaps has forgotten it': {
    do: (one) =>
      put(
        NODES,
        virtual('True', { key: 'spillway.dev/drain', effect: 'NoSchedule' }),
        ...(one.lists[NODES] ?? []).slice(1),
      )(one),
    check: 'virtual nodes',
    verdict: 'warning',
    says: /^east is to be emptied \(taint spillway\.dev\/drain\): it takes no new pods/,
    fix: /^kubectl taint node east spillway\.dev\/drain-, when that is over$/,
  },
  'a ClusterTaintPolicy names a condition that no member has': {
    do: put(`${OURS}/clustertaintpolicies`, {
      metadata: { name: 'degraded' },
      status: { conditions: [condition('Consistent', 'False', 'Contradictory', 'no member has a condition Odd')] },
    }),
    check: 'policies',
    verdict: 'warning',
    says: /^ClusterTaintPolicy degraded: no member has a condition Odd$/,
    fix: /correct the policy/,
  },
  'a virtual node is not served': {
    do: (one) => put(NODES, virtual('Unknown'), ...(one.lists[NODES] ?? []).slice(1))(one),
    check: 'virtual nodes',
    says: /east is not ready/,
    fix: /check of the manager/,
  },
  'the API server does not reach the manager': {
    do: port('dial tcp 10.0.0.9:10250: connect: connection refused'),
    check: 'kubelet ports',
    says: /does not reach east: dial tcp/,
    fix: /address and ports/,
  },
  'a certificate is not trusted': {
    do: port('tls: failed to verify certificate: x509: certificate signed by unknown authority'),
    check: 'kubelet ports',
    says: /unknown authority/,
    fix: /approve the request/,
  },
  'a certificate has expired': {
    do: port('tls: failed to verify certificate: x509: certificate has expired or is not yet valid'),
    check: 'kubelet ports',
    says: /has expired/,
    fix: /renews it by itself: see that the clocks .* agree/,
  },
  'nobody approves': {
    do: put(CSRS, request({})),
    check: 'certificates',
    verdict: 'warning',
    says: /spillway-east-abcde .* waits for an approval/,
    fix: /kubectl certificate approve spillway-east-abcde/,
  },
  'nobody signs': {
    do: put(CSRS, request({ conditions: [condition('Approved', 'True')] })),
    check: 'certificates',
    says: /is approved, and nobody has signed it/,
    fix: /signer runs/,
  },
  'the signer refuses': {
    do: put(CSRS, request({ conditions: [condition('Denied', 'True', 'No', 'not in this house')] })),
    check: 'certificates',
    says: /was refused: not in this house/,
    fix: /who refused it/,
  },
  'a right is taken away': {
    do: (one) => (one.lacks = (resource) => resource === 'poddisruptionbudgets'),
    check: 'rights',
    says: /may not list poddisruptionbudgets\.policy/,
    fix: /apply -f manifests\/rbac\.yaml/,
  },
  'the manager has no right to move pods': {
    do: (one) => (one.lacks = (resource) => resource === 'workloadrebalancers'),
    check: 'rights',
    verdict: 'warning',
    says: /^pods are not moved .*: the manager may not list workloadrebalancers\.spillway\.dev/,
    fix: /apply -f manifests\/scheduler\/descheduler\.yaml/,
  },
  'a guard is taken away': { do: without(BINDINGS), check: 'guards', says: /not there: /, fix: /manifests\// },
  'namespaces opted in, and nobody gives tolerations': {
    do: put(WEBHOOKS),
    check: 'admission',
    verdict: 'warning',
    says: /pods of shop get no toleration/,
    fix: /pod-defaults\.yaml/,
  },
  'nobody is behind the webhook': {
    do: put(SLICES, { metadata: { name: 'a' }, addressType: 'IPv4', endpoints: null }),
    check: 'webhook',
    says: /nobody is ready behind Service spillway-system\/spillway-webhook; pods are created meanwhile as if/,
    fix: /admission\.webhook\.enabled/,
  },
  'the CA of the webhook has expired': {
    do: (one) => put(WEBHOOKS, webhook(oldCa))(one),
    check: 'webhook',
    says: /CA in its caBundle has expired/,
    fix: /fills in caBundle by itself/,
  },
  'the webhook was never given a CA': {
    do: put(WEBHOOKS, webhook('')),
    check: 'webhook',
    says: /no caBundle/,
    fix: /admission\.webhook\.enabled/,
  },
  'nobody answers schedulers': {
    do: put(LEASES, lease('spillway-member-east')),
    check: 'scheduling',
    says: /nobody answers schedulers.*shop\/web/,
    fix: /components: \[members, scheduler\]/,
  },
  'no scheduler asks': {
    do: put(PLACEMENTS),
    check: 'scheduling',
    verdict: 'warning',
    says: /no scheduler has asked about any pod yet/,
    fix: /has the extender/,
  },
  'a policy is not in use': {
    do: put(POLICIES, {
      metadata: { name: 'web', namespace: 'shop' },
      status: { conditions: [condition('Accepted', 'False', 'Invalid', 'spec.placement: no')] },
    }),
    check: 'policies',
    says: /shop\/web: spec\.placement: no/,
    fix: /correct the policy/,
  },
  'pods of a member have addresses of ours': {
    do: put(PODS, pod('10.1.0.7')),
    check: 'networks',
    verdict: 'warning',
    says: /pods of east .*10\.1\.0\.7, and 10\.1\.0\.0\/24 is for pods of node real/,
    fix: /do not overlap/,
  },
  'pods of a member have addresses of our Services': {
    do: put(PODS, pod('10.96.3.3')),
    check: 'networks',
    verdict: 'warning',
    says: /10\.96\.0\.0\/16 is for Services/,
    fix: /do not overlap/,
  },
  'nobody has figures': {
    do: (one) => (one.metrics = 404),
    check: 'metrics API',
    verdict: 'warning',
    says: /nobody serves metrics\.k8s\.io/,
    fix: /install metrics-server/,
  },
  'metrics-server is down': {
    do: (one) => (one.metrics = 503),
    check: 'metrics API',
    verdict: 'warning',
    says: /does not answer \(503\)/,
    fix: /get apiservice/,
  },
};

describe('doctor', () => {
  it('finds nothing wrong where nothing is', async () => {
    world = healthy();
    const { code, findings, notes } = await doctor();
    expect(notes).toEqual([]);
    expect(findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([]);
    expect({ code, notes }).toEqual({ code: 0, notes: [] });
    const looked = new Set(findings.map(({ check }) => check));
    const broken = Object.values(BROKEN).map(({ check }) => check);
    expect([...looked].filter((check) => !broken.includes(check))).toEqual([]);
  });

  it.each<[string, (one: World) => void]>([
    ['Services are exchanged', exchange],
    [
      'they are not any more, as somebody wants it',
      put(MEMBERS, told(condition('ServicesExchanged', 'False', 'NotExchanged'))),
    ],
    ['virtual nodes are in service again', put(MEMBERS, told(condition('OutOfService', 'False', 'InService')))],
  ])('finds nothing wrong where %s', async (_name, act) => {
    world = healthy();
    act(world);
    const { code, findings } = await doctor();
    expect(findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([]);
    expect(code).toBe(0);
  });

  it.each(Object.entries(BROKEN))('names it, and nothing else: %s', async (_name, { do: act, ...wanted }) => {
    world = healthy();
    act(world);
    const { code, findings } = await doctor();
    const { check, verdict = 'failed', says, fix, also = [] } = wanted;
    const bad = findings.filter((one) => one.verdict !== 'ok');
    expect(bad).toContainEqual(
      expect.objectContaining({ check, verdict, says: expect.stringMatching(says), fix: expect.stringMatching(fix) }),
    );
    expect(bad.map((one) => one.check).filter((one) => one !== check && !also.includes(one))).toEqual([]);
    expect(code).toBe(bad.some((one) => one.verdict === 'failed') ? 5 : 0);
    expect(code).toBe(verdict === 'failed' ? 5 : 0);
  });

  it('does not stop at the first', async () => {
    world = healthy();
    port('connection refused')(world);
    put(CSRS, request({}))(world);
    world.metrics = 404;
    const { code, findings } = await doctor();
    expect(code).toBe(5);
    const bad = findings.filter(({ verdict }) => verdict !== 'ok').map(({ check }) => check);
    expect(bad).toEqual(['kubelet ports', 'certificates', 'metrics API']);
  });
});
