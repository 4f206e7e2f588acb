import { describe, expect, it } from 'vitest';
import { customResourceDefinition } from '../../src/api/crd.ts';
import { KINDS } from '../../src/api/kinds.ts';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { findingsText } from '../../src/cli/doctor/findings-text.ts';
import {
  clockSkew,
  hostVersion,
  kindsPresent,
  managerClock,
  memberVersions,
  metricsApi,
} from '../../src/cli/doctor/host-checks.ts';
import { manifestsOf } from '../../src/cli/doctor/manifests.ts';
import { defaultingPresent, guardsPresent, rightsGranted, rightsIn } from '../../src/cli/doctor/rights-checks.ts';
import { certificatesIssued, portsReached } from '../../src/cli/doctor/certificate-checks.ts';
import {
  managersAlive,
  movesMayBegin,
  membersWell,
  policiesWell,
  schedulingWired,
  virtualNodesWell,
} from '../../src/cli/doctor/spillway-checks.ts';
import { networksApart } from '../../src/cli/doctor/network-checks.ts';
import { webhooksServed, type Endpoints, type WebhookConfiguration } from '../../src/cli/doctor/webhook-checks.ts';
import type { Condition, Node, Pod } from '../../src/kube/core-v1.ts';
import type { Lease } from '../../src/kube/lease.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { selfSigned } from '../../src/serving/serving-key.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const at = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1000).toISOString();
const condition = (
  type: string,
  status: Condition['status'],
  reason = type,
  message = `${type} is so.`,
): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: at(60),
});
const lease = (name: string, renewedAgo = 2): Lease => ({
  metadata: { name },
  spec: { holderIdentity: 'a_1', leaseDurationSeconds: 15, renewTime: at(renewedAgo) },
});
const member = (name: string, ...conditions: Condition[]): KubeObject => {
  const object = {
    metadata: { name },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } } },
    status: { conditions },
  };
  return object;
};
const stoppedLease = (said: string): Lease => ({
  metadata: { name: 'spillway-descheduler', annotations: { 'spillway.dev/moves-stopped': said } },
});
const node = (name: string, ready: Condition['status'] = 'True'): Node => ({
  metadata: { name },
  spec: { providerID: `spillway://${name}/${name}` },
  status: { conditions: [condition('Ready', ready)] },
});
const verdicts = (findings: readonly Finding[]): string[] => findings.map(({ verdict }) => verdict);
const first = (findings: readonly Finding[]): Finding => findings[0] ?? { check: '', verdict: 'unknown', says: '' };

describe('the host', () => {
  it('has to be of 1.30 or newer, and members near to it', () => {
    expect(hostVersion('v1.36.3').verdict).toBe('ok');
    expect(hostVersion('v1.29.9+k3s1')).toMatchObject({ verdict: 'failed', fix: 'upgrade this cluster' });
    expect(hostVersion('nonsense').verdict).toBe('failed');
    const members = new Map([
      ['old', 'v1.32.0'],
      ['good', 'v1.33.1'],
      ['newer', 'v1.37.0'],
      ['newest', 'v1.38.0'],
      ['unknown', undefined],
    ]);
    const findings = memberVersions('v1.36.3', members);
    expect(findings.map(({ says }) => says.split(' ')[0])).toEqual(['old', 'newest']);
    expect(verdicts(memberVersions('v1.36.3', new Map([['a', 'v1.36.0']])))).toEqual(['ok']);
  });

  it('has a clock like ours, and like those of managers', () => {
    expect(clockSkew(NOW, NOW + 900).verdict).toBe('ok');
    expect(clockSkew(NOW, NOW + 20_000).verdict).toBe('warning');
    expect(clockSkew(NOW, NOW - 90_000).verdict).toBe('failed');
    expect(managerClock([at(3), at(1)], NOW)).toEqual([]);
    expect(managerClock([], NOW)).toEqual([]);
    expect(verdicts(managerClock([at(-20)], NOW))).toEqual(['warning']);
    expect(verdicts(managerClock([at(-120)], NOW))).toEqual(['failed']);
  });

  it('has our kinds as this program knows them', () => {
    const stored = KINDS.map((kind) => {
      const crd = structuredClone<KubeObject & { status?: object }>(customResourceDefinition(kind));
      crd.status = { conditions: [condition('Established', 'True')] };
      return crd;
    });
    expect(verdicts(kindsPresent(KINDS, stored))).toEqual(['ok']);
    const missing = kindsPresent(KINDS, stored.slice(1));
    expect(missing).toMatchObject([
      { verdict: 'failed', fix: 'kubectl apply -f manifests/crds/spillway.dev_memberclusters.yaml' },
    ]);
    const [one] = structuredClone(stored);
    const older = {
      ...one,
      metadata: { name: one?.metadata.name ?? '' },
      spec: { versions: [{ name: 'v1alpha1', schema: {} }] },
    };
    expect(first(kindsPresent(KINDS, [older, ...stored.slice(1)])).says).toMatch(/of another version/);
    const refused = { ...one, metadata: { name: one?.metadata.name ?? '' }, status: { conditions: [] } };
    expect(first(kindsPresent(KINDS, [refused, ...stored.slice(1)])).says).toMatch(/not established/);
  });

  it('may lack the metrics API', () => {
    expect(metricsApi(200).verdict).toBe('ok');
    expect(metricsApi(404)).toMatchObject({ verdict: 'warning', fix: 'install metrics-server' });
    expect(metricsApi(503).says).toMatch(/does not answer/);
  });
});

describe('managers and members', () => {
  it('every member has a manager', () => {
    expect(verdicts(managersAlive(['east'], [lease('spillway-member-east')], NOW))).toEqual(['ok']);
    expect(first(managersAlive(['east', 'west'], [lease('spillway-member-east')], NOW)).says).toBe(
      'no manager works for west',
    );
    expect(first(managersAlive(['east'], [lease('spillway-member-east', 60)], NOW)).says).toMatch(
      /no manager works for any/,
    );
    expect(managersAlive([], [], NOW)).toEqual([]);
  });

  it('warns that somebody has stopped all moves, and how to go on', () => {
    expect(movesMayBegin([lease('spillway-descheduler')])).toEqual([]);
    expect(first(movesMayBegin([stoppedLease('INC-7')]))).toMatchObject({
      verdict: 'warning',
      says: expect.stringMatching(/^all moves are stopped \(.*: INC-7\)$/),
      fix: expect.stringContaining('kubectl spillway resume-moves'),
    });
  });

  it('conditions that are not well are told once, by their cause', () => {
    const well = [condition('Ready', 'True'), condition('Reachable', 'True')];
    expect(verdicts(membersWell([member('east', ...well)]))).toEqual(['ok']);
    expect(verdicts(membersWell([]))).toEqual(['warning']);
    const lost = member(
      'west',
      condition('Ready', 'False', 'Timeout'),
      condition('Reachable', 'False', 'Timeout', 'No answer.'),
      condition('CredentialsValid', 'Unknown', 'NotContacted'),
      condition('IdentityPinned', 'Unknown', 'NotContacted'),
      condition('CapacityFresh', 'False', 'MemberUnreachable'),
    );
    expect(membersWell([member('east', ...well), lost])).toMatchObject([
      { verdict: 'failed', says: 'west: Reachable is False (Timeout): No answer.' },
    ]);
    expect(first(membersWell([member('fresh')])).says).toMatch(/no manager has looked/);
    const ignored = member('quiet', ...well, condition('BudgetsMirrored', 'False', 'Ignored'));
    expect(verdicts(membersWell([ignored]))).toEqual(['ok']);
    const broken: KubeObject & { spec: object } = { metadata: { name: 'odd' }, spec: {} };
    expect(first(membersWell([broken])).says).toMatch(/spec cannot be read/);
  });

  it('virtual nodes are there and served', () => {
    expect(verdicts(virtualNodesWell([member('east')], [node('east')]))).toEqual(['ok']);
    expect(first(virtualNodesWell([member('east')], [])).says).toMatch(/is not there/);
    expect(first(virtualNodesWell([member('east')], [node('east', 'Unknown')])).says).toMatch(/east is not ready/);
  });

  it('a virtual node that fails with its member is a matter of the member', () => {
    const conditions = [condition('Ready', 'Unknown', 'MemberUnreachable', 'cluster "east" does not answer')];
    expect(virtualNodesWell([member('east')], [{ ...node('east'), status: { conditions } }])).toMatchObject([
      {
        verdict: 'failed',
        says: 'east is not ready: cluster "east" does not answer',
        fix: 'see the check of member east',
        page: 'concepts/failover.md#nodes-that-fail-with-their-member',
      },
    ]);
  });

  it('the API server reaches their ports', () => {
    expect(verdicts(portsReached([{ node: 'east', error: undefined }]))).toEqual(['ok']);
    const [trust, network] = portsReached([
      { node: 'east', error: 'tls: failed to verify certificate: x509: unknown authority' },
      { node: 'west', error: 'dial tcp: connection refused' },
    ]);
    expect(trust?.fix).toMatch(/serving certificate/);
    expect(network?.fix).toMatch(/address and ports/);
  });
});

describe('certificates', () => {
  const request = (name: string, signerName: string, status: object, secondsAgo = 60): KubeObject => {
    const object = { metadata: { name, creationTimestamp: at(secondsAgo) }, spec: { signerName }, status };
    return object;
  };
  const SERVING = 'kubernetes.io/kubelet-serving';
  const nodes = new Set(['east', 'east-gpu']);
  const judge = (requests: KubeObject[], portsWork?: boolean): Finding[] =>
    certificatesIssued({ requests, nodes, portsWork, now: NOW });

  it.each<[string, KubeObject, string, RegExp]>([
    ['nobody approved', request('spillway-east-abcde', SERVING, {}), 'failed', /waits for an approval/],
    [
      'nobody signed',
      request('spillway-east-abcde', SERVING, { conditions: [condition('Approved', 'True')] }),
      'failed',
      /nobody has signed/,
    ],
    [
      'denied',
      request('spillway-east-abcde', SERVING, { conditions: [condition('Denied', 'True')] }),
      'failed',
      /was refused/,
    ],
    ['just made', request('spillway-east-abcde', SERVING, {}, 3), 'ok', /unanswered/],
    ['of a real node', request('csr-abcde', SERVING, {}), 'ok', /unanswered/],
    ['of another member', request('spillway-west-abcde', SERVING, {}), 'ok', /unanswered/],
    [
      'issued',
      request('spillway-east-abcde', SERVING, { conditions: [condition('Approved', 'True')], certificate: 'pem' }),
      'ok',
      /unanswered/,
    ],
  ])('%s', (_what, one, verdict, says) => {
    expect(judge([one])).toMatchObject([{ verdict, says: expect.stringMatching(says) }]);
  });

  it('of several for one purpose the newest counts', () => {
    const old = request('spillway-east-abcde', SERVING, { conditions: [condition('Denied', 'True')] }, 600);
    const issued = request('spillway-east-fghij', SERVING, { certificate: 'pem' });
    expect(verdicts(judge([old, issued]))).toEqual(['ok']);
    expect(verdicts(judge([issued, old, request('spillway-east-gpu-klmno', SERVING, {})]))).toEqual(['failed']);
  });

  it('that nobody checks are no failure', () => {
    expect(verdicts(judge([request('spillway-east-abcde', SERVING, {})], true))).toEqual(['warning']);
    const client = request('spillway-east-abcde', 'kubernetes.io/kube-apiserver-client-kubelet', {});
    expect(verdicts(judge([client], true))).toEqual(['failed']);
  });
});

describe('rights and guards', () => {
  const files = ['rbac.yaml', 'node-guard.yaml', 'storage.yaml', 'scheduler/rbac.yaml', 'scheduler/pod-guard.yaml'];

  it('are those of the manifests that come along', () => {
    const rights = rightsIn(manifestsOf('rbac.yaml') ?? []);
    const manager = 'system:serviceaccount:spillway-system:spillway-manager';
    expect(rights).toContainEqual({
      user: manager,
      verb: 'patch',
      group: 'spillway.dev',
      resource: 'memberclusters',
      subresource: 'status',
      name: '',
      namespace: '',
    });
    expect(rights).toContainEqual({
      user: manager,
      verb: 'get',
      group: '',
      resource: 'secrets',
      subresource: '',
      name: '',
      namespace: 'spillway-system',
    });
    expect(rights).toContainEqual({
      user: manager,
      verb: 'get',
      group: '',
      resource: 'namespaces',
      subresource: '',
      name: 'kube-system',
      namespace: '',
    });
    for (const file of files) expect(manifestsOf(file)?.length).toBeGreaterThan(0);
    expect(manifestsOf('nothing.yaml')).toBeUndefined();
  });

  it('that are missing are named, with the manifest that grants them', () => {
    const rights = rightsIn(manifestsOf('rbac.yaml') ?? []);
    expect(rightsGranted('rbac.yaml', rights.length, []).verdict).toBe('ok');
    const refused = rights.filter(({ resource }) => resource === 'poddisruptionbudgets');
    expect(rightsGranted('rbac.yaml', rights.length, refused)).toMatchObject({
      verdict: 'failed',
      says: 'the manager may not list poddisruptionbudgets.policy, watch poddisruptionbudgets.policy, patch poddisruptionbudgets.policy',
      fix: 'kubectl apply -f manifests/rbac.yaml',
    });
    expect(rightsGranted('rbac.yaml', rights.length, rights).says).toMatch(/ and \d+ more$/);
  });

  it('policies of the API server are looked for by name', () => {
    const guards = new Map([['node-guard.yaml', manifestsOf('node-guard.yaml') ?? []]]);
    const there = (guards.get('node-guard.yaml') ?? []).map(({ metadata }) => ({ metadata }));
    expect(verdicts(guardsPresent(guards, { policies: there, bindings: there }))).toEqual(['ok']);
    const found = guardsPresent(guards, { policies: there, bindings: [] });
    expect(found).toMatchObject([{ verdict: 'failed', fix: 'kubectl apply -f manifests/node-guard.yaml' }]);
    expect(first(found).says).toMatch(/ValidatingAdmissionPolicyBinding spillway-node-guard/);
  });

  it('namespaces that opted in need admission', () => {
    expect(defaultingPresent([], false)).toEqual([]);
    expect(verdicts(defaultingPresent(['shop'], true))).toEqual(['ok']);
    expect(verdicts(defaultingPresent(['shop'], false))).toEqual(['warning']);
  });
});

describe('scheduling', () => {
  const policy = (name: string, secondsAgo: number, ...conditions: Condition[]): KubeObject => {
    const object = { metadata: { name, namespace: 'shop', creationTimestamp: at(secondsAgo) }, status: { conditions } };
    return object;
  };
  const facts = {
    policies: [policy('web', 600)],
    namespaces: [],
    placements: [],
    leases: [lease('spillway-scheduler')],
    now: NOW,
  };

  it('rules need somebody who answers, and a scheduler that asks', () => {
    expect(first(schedulingWired({ ...facts, leases: [] }))).toMatchObject({
      verdict: 'failed',
      says: expect.stringMatching(/policy shop\/web/),
    });
    expect(first(schedulingWired(facts))).toMatchObject({ verdict: 'warning', fix: expect.stringMatching(/extender/) });
    expect(verdicts(schedulingWired({ ...facts, placements: [policy('deployment-web', 5)] }))).toEqual(['ok']);
    expect(verdicts(schedulingWired({ ...facts, policies: [policy('new', 5)] }))).toEqual(['ok']);
    expect(verdicts(schedulingWired({ ...facts, policies: [], leases: [] }))).toEqual(['ok']);
    const shop: KubeObject = { metadata: { name: 'shop', labels: { 'spillway.dev/burst': 'enabled' } } };
    expect(verdicts(schedulingWired({ ...facts, policies: [], namespaces: [shop], leases: [] }))).toEqual(['failed']);
  });

  it('policies that cannot be used, or only in part, are told', () => {
    expect(verdicts(policiesWell([policy('a', 9, condition('Accepted', 'True'))]))).toEqual(['ok']);
    expect(verdicts(policiesWell([policy('a', 9, condition('Accepted', 'False', 'Invalid'))]))).toEqual(['failed']);
    expect(verdicts(policiesWell([policy('a', 9, condition('Consistent', 'False'))]))).toEqual(['warning']);
  });

  it('ClusterTaintPolicies are counted, and told where they contradict what there is', () => {
    const well = policy('b', 9, condition('Accepted', 'True'), condition('Consistent', 'True'));
    expect(policiesWell([well], [well])).toMatchObject([{ verdict: 'ok', says: '2 in use' }]);
    const odd = policy(
      'b',
      9,
      condition('Accepted', 'True'),
      condition('Consistent', 'False', 'Contradictory', 'no member that it is for has a condition Odd'),
    );
    expect(policiesWell([], [odd])).toMatchObject([
      {
        verdict: 'warning',
        says: expect.stringMatching(/^ClusterTaintPolicy .*b: no member that it is for has a condition Odd$/),
      },
    ]);
  });
});

describe('webhooks', () => {
  const bundle = async (until: string): Promise<string> => {
    const life = Date.parse(until) - NOW;
    const addresses = { nodeName: 'ca', addresses: ['127.0.0.1'] };
    const { cert } =
      life > 0 ? await selfSigned(addresses, NOW, life) : await selfSigned(addresses, Date.parse(until) - 9_000, 9_000);
    return Buffer.from(cert).toString('base64');
  };
  const configuration = (caBundle: string, failurePolicy = 'Ignore'): WebhookConfiguration => ({
    metadata: { name: 'spillway-pod-defaults' },
    webhooks: [
      {
        name: 'a',
        failurePolicy,
        clientConfig: { caBundle, service: { namespace: 'spillway-system', name: 'spillway-webhook' } },
      },
    ],
  });
  const slices = (...ready: boolean[]): ReadonlyMap<string, Endpoints[]> =>
    new Map([
      [
        'spillway-system/spillway-webhook',
        [{ metadata: { name: 's' }, endpoints: ready.map((one) => ({ conditions: { ready: one } })) }],
      ],
    ]);

  it('need a CA that is in time, and somebody who is ready', async () => {
    const good = await bundle('2030-01-01');
    const found = (one: WebhookConfiguration, endpoints: ReadonlyMap<string, Endpoints[]>): Finding[] =>
      webhooksServed({ configurations: [one], endpoints, now: NOW });
    expect(webhooksServed({ configurations: [], endpoints: new Map(), now: NOW })).toEqual([]);
    expect(verdicts(found(configuration(good), slices(false, true)))).toEqual(['ok']);
    // Who may not look at endpoints is told nothing wrong.
    expect(verdicts(found(configuration(good), new Map()))).toEqual(['ok']);
    expect(first(found(configuration(good), slices(false)))).toMatchObject({
      verdict: 'failed',
      says: expect.stringMatching(
        /nobody is ready behind Service spillway-system\/spillway-webhook; pods are created meanwhile as if/,
      ),
    });
    expect(first(found(configuration('', 'Fail'), slices(true))).says).toMatch(/no caBundle.*is refused meanwhile$/);
    expect(first(found(configuration('bm9uc2Vuc2U='), slices(true))).says).toMatch(/no certificate in its caBundle/);
    expect(first(found(configuration(await bundle('2020-01-01')), slices(true))).says).toMatch(
      /has expired \(2020-01-01/,
    );
  });
});

describe('networks', () => {
  const virtual: Node = { metadata: { name: 'east' }, spec: { providerID: 'spillway://east/east' } };
  const real = (podCIDR: string): Node => ({ metadata: { name: 'n1' }, spec: Object.assign({}, { podCIDR }) });
  const pod = (podIP: string, more: object = {}): Pod => ({
    metadata: { name: 'web-0', namespace: 'shop' },
    spec: { containers: [], nodeName: 'east', ...more },
    status: { podIP },
  });
  const services = [{ metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.96.0.0/16', 'fd00::/112'] } }];

  it('of members that use our addresses are named', () => {
    const found = (one: Pod, cidr = '10.0.1.0/24'): Finding[] =>
      networksApart({ nodes: [virtual, real(cidr)], pods: [one], services });
    expect(verdicts(found(pod('10.0.2.9')))).toEqual(['ok']);
    expect(found(pod('10.0.1.9'))).toMatchObject([
      {
        verdict: 'warning',
        says: expect.stringMatching(
          /^pods of east .* shop\/web-0 has 10\.0\.1\.9, and 10\.0\.1\.0\/24 is for pods of node n1/,
        ),
      },
    ]);
    expect(first(found(pod('fd00::7'))).says).toMatch(/fd00::\/112 is for Services/);
    expect(verdicts(found(pod('10.0.1.9', { hostNetwork: true })))).toEqual(['ok']);
    expect(verdicts(found(pod('nonsense'), 'nonsense'))).toEqual(['ok']);
    expect(networksApart({ nodes: [virtual], pods: [], services })).toEqual([]);
  });
});

it('findings are lines with what helps below them, and a sum', () => {
  const findings: Finding[] = [
    { check: 'clock', verdict: 'ok', says: 'well' },
    { check: 'members', verdict: 'failed', says: 'west:\u001b[31m lost', fix: 'look', page: 'security.md' },
    { check: 'rights', verdict: 'unknown', says: 'not looked at' },
  ];
  expect(findingsText(findings)).toBe(
    [
      'ok    clock    well',
      'FAIL  members  west:[31m lost',
      '               fix: look',
      '               see: docs/security.md',
      '?     rights   not looked at',
      '',
      '1 failure, 0 warnings, 1 not looked at',
      '',
    ].join('\n'),
  );
});
