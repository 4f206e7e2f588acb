import type { Cluster } from '../../hack/cluster.ts';
import { manifest } from '../../hack/manifest.ts';
import { SYSTEM_NAMESPACE } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { newServingRequest } from '../../src/serving/serving-key.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import { kubectl } from '../fixtures/live-pods.ts';
import { policy } from '../fixtures/scheduling.ts';

/** Something that is broken on purpose, and what doctor has to say of it. */
export interface Break {
  readonly what: string;
  readonly work: (host: Cluster) => Promise<unknown>;
  readonly told: readonly (readonly [Finding['verdict'], check: string, says: RegExp, fix: RegExp])[];
}

const OURS = '/apis/spillway.dev/v1alpha1';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM_NAMESPACE}/leases`;
const RBAC = '/apis/rbac.authorization.k8s.io/v1/clusterroles';

/** While the manager runs: it, or Kubernetes, has to say something of these first. */
export const WHILE_IT_WORKS: readonly Break[] = [
  {
    what: 'a request for a serving certificate that nobody approves',
    work: async (host) => {
      const { request } = await newServingRequest({ nodeName: 'east', addresses: ['127.0.0.1'] });
      await host.api.call('POST', CSRS, {
        metadata: { name: 'spillway-east-abcde' },
        spec: {
          signerName: 'kubernetes.io/kubelet-serving',
          request: Buffer.from(request).toString('base64'),
          usages: ['digital signature', 'server auth'],
        },
      });
    },
    told: [
      [
        'failed',
        'certificates',
        /spillway-east-abcde \(kubernetes\.io\/kubelet-serving\) waits for an approval/,
        /^kubectl certificate approve spillway-east-abcde$/,
      ],
    ],
  },
  {
    what: 'a policy for another namespace than its own',
    work: async (host) => {
      const resourceSelectors = [{ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'bank' }];
      const wrong = policy('default', 'beyond', {}) as { spec: object };
      await host.apply([{ ...wrong, spec: { ...wrong.spec, resourceSelectors } }]);
      await kubectl(host, ['wait', '--for=condition=Accepted=false', '-n', 'default', 'placementpolicy/beyond']);
    },
    told: [['failed', 'policies', /default\/beyond: .*must be default, the namespace of the policy/, /the policy/]],
  },
  {
    what: 'a budget that can spare no pod',
    work: async (host) => {
      const spec = { minAvailable: '100%', selector: { matchLabels: { app: 'web' } } };
      const metadata = { name: 'tight', namespace: 'sim-weights' };
      await host.apply([{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec }]);
    },
    told: [
      [
        'warning',
        'budgets',
        /sim-weights\/tight \(minAvailable: 100%, of 6\) can spare no pod: .*Deployment\/web/,
        /^kubectl patch poddisruptionbudget tight -n sim-weights /,
      ],
    ],
  },
];

/** Once no manager runs that would put it right. */
export const ONCE_IT_IS_AWAY: readonly Break[] = [
  {
    what: 'a guard that somebody deleted',
    work: async (host) => await host.api.call('DELETE', `${BINDINGS}/spillway-claim-guard`),
    told: [['failed', 'guards', /ValidatingAdmissionPolicyBinding spillway-claim-guard/, /storage\.yaml/]],
  },
  {
    what: 'a taint that has Kubernetes evict all, and one that was forgotten, where nothing keeps people from the first',
    work: async (host) => {
      await host.api.call('DELETE', `${BINDINGS}/spillway-node-taints`);
      const taints = ['example.com/now=:NoExecute', 'spillway.dev/drain=:NoSchedule'];
      // The API server takes a moment to forget a rule.
      await until('they are taken', async () => (await host.kubectl(['taint', 'node', 'east', ...taints])).code === 0);
    },
    told: [
      ['warning', 'guards', /effect NoExecute is taken on virtual nodes/, /node-taints\.yaml/],
      ['warning', 'virtual nodes', /east has the taint example\.com\/now:NoExecute/, /example\.com\/now:NoExecute-/],
      ['warning', 'virtual nodes', /east is to be emptied \(taint spillway\.dev\/drain\)/, /spillway\.dev\/drain-/],
    ],
  },
  {
    what: 'a right that the manager lacks',
    work: async (host) => {
      const role = (await host.api.call('GET', `${RBAC}/spillway-manager`)) as { rules: { resources?: string[] }[] };
      const rules = role.rules.filter(({ resources = [] }) => !resources.includes('poddisruptionbudgets'));
      await host.api.call('PATCH', `${RBAC}/spillway-manager`, { rules });
    },
    told: [['failed', 'rights', /may not list poddisruptionbudgets\.policy/, /rbac\.yaml/]],
  },
  {
    what: 'a kind of another version',
    work: async (host) => {
      const path = '/spec/versions/0/schema/openAPIV3Schema/description';
      const patch = JSON.stringify([{ op: 'replace', path, value: 'Another one.' }]);
      await kubectl(host, ['patch', 'crd', 'placementscores.spillway.dev', '--type=json', '-p', patch]);
    },
    told: [['failed', 'kinds', /placementscores\.spillway\.dev is of another version/, /manifests\/crds/]],
  },
  {
    what: 'Services that are to be exchanged where nothing is for that',
    work: async (host) => {
      const spec = { services: { multiCluster: 'Exchange' } };
      await host.api.call('PATCH', `${OURS}/memberclusters/west`, { spec });
    },
    told: [
      ['failed', 'kinds', /is to exchange Services, and serviceexports/, /upgrade --multi-cluster Exchange/],
      ['failed', 'rights', /serviceimports\.multicluster\.x-k8s\.io/, /multi-cluster\/host\.yaml/],
    ],
  },
  {
    what: 'a member that is too old',
    work: async (host) =>
      await host.api.call('PATCH', `${OURS}/memberclusters/west/status`, { status: { version: 'v1.20.3' } }),
    told: [['warning', 'member versions', /west has Kubernetes v1\.20\.3/, /bring the two closer together/]],
  },
  {
    what: 'a virtual node that is not there',
    work: async (host) => await host.api.call('DELETE', '/api/v1/nodes/west'),
    told: [['failed', 'virtual nodes', /west of member west is not there/, /clusters west/]],
  },
  {
    what: 'addresses of pods in a member that the host has, too',
    work: async (host) => {
      // As the kubelets of members give them here.
      const podCIDR = '10.128.0.0/14';
      const spec = { podCIDR, podCIDRs: [podCIDR], taints: [{ key: 'nobody', effect: 'NoSchedule' }] };
      await host.api.call('POST', '/api/v1/nodes', { metadata: { name: 'overlapping' }, spec });
    },
    told: [
      ['warning', 'networks', /pods of east have addresses .* 10\.128\.0\.0\/14 is for pods of node overl/, /overlap/],
    ],
  },
  {
    what: 'a manager whose clock is ahead',
    work: async (host) => {
      const renewTime = new Date(Date.now() + 600_000).toISOString().replace('Z', '000Z');
      await host.api.call('POST', LEASES, { metadata: { name: 'elsewhere' }, spec: { renewTime } });
    },
    told: [['failed', 'clock', /a manager's clock is \d+ s ahead/, /NTP/]],
  },
  {
    what: 'a stop of all moves that was forgotten',
    work: async (host) => await kubectlSpillway(host, ['stop-moves', '--reason', 'for a test']),
    told: [['warning', 'moves', /for a test/, /resume-moves/]],
  },
  {
    what: 'a namespace that opted in where nobody gives pods what they need',
    work: async (host) => {
      const labels = { 'spillway.dev/burst': 'enabled' };
      await host.api.call('PATCH', '/api/v1/namespaces/default', { metadata: { labels } });
    },
    told: [['warning', 'admission', /pods of default get no toleration/, /pod-defaults\.yaml/]],
  },
];

/** Last, as it is somebody who gives pods what they need, as far as anybody can see. */
export const AT_LAST: Break = {
  what: 'a webhook that nobody serves',
  work: async (host) => {
    await host.apply(manifest('admission/webhook.yaml'));
  },
  told: [
    ['failed', 'webhook', /cannot call spillway-pod-defaults: it has no caBundle/, /admission\.webhook\.enabled/],
    ['failed', 'webhook', /nobody is ready behind Service spillway-system\/spillway-webhook/, /endpointslices/],
  ],
};

/** What doctor has not said of all that is broken. */
export function untold(breaks: readonly Break[], findings: readonly Finding[]): string[] {
  return breaks.flatMap(({ what, told }) => {
    const isTold = told.every(([verdict, check, says, fix]) =>
      findings.some(
        (one) => one.verdict === verdict && one.check === check && says.test(one.says) && fix.test(one.fix ?? ''),
      ),
    );
    return isTold ? [] : [what];
  });
}
