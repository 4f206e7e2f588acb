import type { Command } from 'commander';
import { CLUSTER_TAINT_POLICIES } from '../api/cluster-taint-policy.ts';
import { KINDS } from '../api/kinds.ts';
import { BURST_LABEL, MEMBER_LABEL } from '../api/marks.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../api/placement-policy.ts';
import { WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import { ApiError, isForbidden } from '../kube/errors.ts';
import { memberOfNode } from '../api/provider-id.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { Lease } from '../kube/lease.ts';
import type { KubeObject } from '../kube/object.ts';
import {
  CERTIFICATE_SIGNING_REQUESTS,
  ENDPOINT_SLICES,
  LEASES,
  NAMESPACES,
  NODES,
  PODS,
  type Resource,
  resourceOf,
} from '../kube/resource.ts';
import type { Cli } from './cli.ts';
import { certificatesIssued, portsReached, type PortAnswer } from './doctor/certificate-checks.ts';
import { budgetsOf } from './doctor/budget-reading.ts';
import { notAllowed, type Finding } from './doctor/finding.ts';
import { findingsText } from './doctor/findings-text.ts';
import {
  clockSkew,
  exchangeKindsPresent,
  hostVersion,
  kindsPresent,
  managerClock,
  memberVersions,
  metricsApi,
} from './doctor/host-checks.ts';
import { manifestsOf, type Manifest } from './doctor/manifests.ts';
import { networksApart, type ServiceRange } from './doctor/network-checks.ts';
import { notInstalled } from './doctor/not-installed.ts';
import {
  defaultingPresent,
  guardsPresent,
  NODE_TAINTS,
  movesGranted,
  rightsGranted,
  rightsIn,
  type Right,
} from './doctor/rights-checks.ts';
import {
  managersAlive,
  movesMayBegin,
  membersWell,
  policiesWell,
  schedulingWired,
  virtualNodesWell,
  wantsExchange,
} from './doctor/spillway-checks.ts';
import { nothingIsDrained, nothingIsEvictedAtOnce } from './doctor/taint-checks.ts';
import { webhooksServed, type Endpoints, type WebhookConfiguration } from './doctor/webhook-checks.ts';
import { EXIT } from './exit-code.ts';
import { clusterFlags, outputFlags, systemNamespaceFlag, type OutputFlags, type SystemFlags } from './flags.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, knownResource } from './known-kinds.ts';
import { documented, type Format } from './output.ts';
import { isHeld, SCHEDULER_LEASE } from './overview.ts';
import { painted } from './terminal.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { MissingRight, type Viewer } from './viewer.ts';

type Flags = ClusterFlags & OutputFlags & SystemFlags;
const FORMATS: readonly Format[] = ['table', 'json', 'yaml'];

const admission = (kind: string): Resource => knownResource({ apiVersion: 'admissionregistration.k8s.io/v1', kind });
const POLICIES = admission('ValidatingAdmissionPolicy');
const BINDINGS = admission('ValidatingAdmissionPolicyBinding');
const MUTATING = admission('MutatingAdmissionPolicy');
const WEBHOOKS = admission('MutatingWebhookConfiguration');
const SERVICE_RANGES = resourceOf('networking.k8s.io/v1', 'ServiceCIDR', 'servicecidrs', false);
/** Name of both, in manifests/admission. */
const POD_DEFAULTS = 'spillway-pod-defaults';
/** Rights and guards of the manager where members exchange Services. */
const EXCHANGE = 'multi-cluster/host.yaml';
/** Without these pods are placed, and not moved. */
const MOVES = 'scheduler/descheduler.yaml';
/** Of each virtual node so many pods are looked at. */
const MOST_PODS = 50;
/** For one question to a virtual node, in ms. */
const PORT_DEADLINE_MS = 10_000;
/** More virtual nodes than these are not asked one by one. */
const MOST_PORTS = 50;

export function addDoctor(program: Command, cli: Cli): void {
  const command = program
    .command('doctor')
    .summary('check what Spillway needs: each failure with its reason and what helps')
    .description(
      'Looks at versions, clocks, kinds, managers, members, virtual nodes, certificates, rights, guards, webhooks, scheduling, policies, disruption budgets, networks and metrics, and says of ' +
        'each failure why it is one and what helps. Reads only. Ends with 5 when a check failed; what you may not look at is shown as ? and is no failure.',
    );
  systemNamespaceFlag(outputFlags(clusterFlags(command), FORMATS)).action(
    async (flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        const findings = await examine(host, flags.systemNamespace);
        if (flags.output === 'json' || flags.output === 'yaml') {
          cli.terminal.out(documented({ kind: 'Diagnosis', findings }, flags.output));
        } else {
          cli.terminal.out(findingsText(findings, (colour, text) => painted(cli.terminal, colour, text)));
        }
        return findings.some(({ verdict }) => verdict === 'failed') ? EXIT.findings : EXIT.ok;
      }),
  );
}

export async function examine(host: Viewer, systemNamespace: string): Promise<Finding[]> {
  const [server, members, nodes, leases, policies, taintPolicies, namespaces, placements] = await Promise.all([
    serverOf(host),
    host.tryList<KubeObject>(MEMBER_CLUSTERS).catch(notInstalled),
    host.tryList<Node>(NODES, { labelSelector: MEMBER_LABEL }),
    host.tryList<Lease>(LEASES, { namespace: systemNamespace }),
    bothPolicies(host),
    host.tryList<KubeObject>(CLUSTER_TAINT_POLICIES).catch(notInstalled),
    host.tryList<KubeObject>(NAMESPACES, { labelSelector: BURST_LABEL }),
    host.tryList<KubeObject>(WORKLOAD_PLACEMENTS, { limit: 1 }).catch(notInstalled),
  ]);
  const { now } = server;
  const known = {
    members: orNone(members),
    leases: orNone(leases),
    policies: orNone(policies),
    namespaces: orNone(namespaces),
  };
  const names = known.members.map(({ metadata }) => metadata.name);
  const ports = nodes instanceof MissingRight ? nodes : await portAnswers(host, nodes);
  const answersSchedulers = known.leases.some((lease) => lease.metadata.name === SCHEDULER_LEASE && isHeld(lease, now));
  const exchange = wantsExchange(known.members);
  const versions = new Map(known.members.map((one) => [one.metadata.name, versionOf(one)]));
  const scheduling = [leases, policies, namespaces, placements].find((one) => one instanceof MissingRight);
  return [
    hostVersion(server.version),
    clockSkew(now, server.cameAt),
    ...(leases instanceof MissingRight
      ? []
      : managerClock(
          leases.map(({ spec }) => spec?.renewTime ?? ''),
          now,
        )),
    ...(await judged(host, 'kinds', CUSTOM_RESOURCE_DEFINITIONS, (found) => [
      ...kindsPresent(KINDS, found),
      ...(exchange ? exchangeKindsPresent(found) : []),
    ])),
    ...judge('manager', leases, (found) => managersAlive(names, found, now)),
    ...(leases instanceof MissingRight ? [] : movesMayBegin(leases)),
    ...judge('members', members, membersWell),
    ...memberVersions(server.version, versions),
    ...judge('virtual nodes', nodes, (found) => virtualNodesWell(known.members, found)),
    ...nothingIsEvictedAtOnce(orNone(nodes)),
    ...nothingIsDrained(orNone(nodes)),
    ...judge('kubelet ports', ports, portsReached),
    ...(await judged(host, 'certificates', CERTIFICATE_SIGNING_REQUESTS, (requests) =>
      certificatesIssued({
        requests,
        nodes: new Set(orNone(nodes).map(({ metadata }) => metadata.name)),
        portsWork:
          ports instanceof MissingRight || ports.length === 0
            ? undefined
            : ports.every(({ error }) => error === undefined),
        now,
      }),
    )),
    ...(await rights(host, [
      'rbac.yaml',
      ...(answersSchedulers ? ['scheduler/rbac.yaml', MOVES] : []),
      ...(exchange ? [EXCHANGE] : []),
    ])),
    ...(await guards(host, [
      'rbac.yaml',
      'node-guard.yaml',
      'storage.yaml',
      ...(answersSchedulers ? ['scheduler/pod-guard.yaml'] : []),
      ...(exchange ? [EXCHANGE] : []),
      NODE_TAINTS,
    ])),
    ...(await defaulting(host, known.namespaces)),
    ...(await webhooks(host, now)),
    ...(scheduling instanceof MissingRight
      ? [notAllowed('scheduling', scheduling.right)]
      : schedulingWired({ ...known, placements: orNone(placements), now })),
    ...judge('policies', policies, (found) => policiesWell(found, orNone(taintPolicies))),
    ...(taintPolicies instanceof MissingRight ? [notAllowed('policies', taintPolicies.right)] : []),
    ...(await budgetsOf(host, orNone(nodes), known.policies)),
    ...(await networks(host)),
    metricsApi(await metricsStatus(host)),
  ];
}

function orNone<T>(answer: readonly T[] | MissingRight): readonly T[] {
  return answer instanceof MissingRight ? [] : answer;
}

function judge<T>(
  check: string,
  answer: readonly T[] | MissingRight,
  of: (found: readonly T[]) => Finding[],
): Finding[] {
  return answer instanceof MissingRight ? [notAllowed(check, answer.right)] : of(answer);
}

async function judged(
  host: Viewer,
  check: string,
  resource: Resource,
  of: (found: readonly KubeObject[]) => Finding[],
): Promise<Finding[]> {
  return judge(check, await host.tryList<KubeObject>(resource), of);
}

async function bothPolicies(host: Viewer): Promise<KubeObject[] | MissingRight> {
  const [own, clusterWide] = await Promise.all([
    host.tryList<KubeObject>(PLACEMENT_POLICIES).catch(notInstalled),
    host.tryList<KubeObject>(CLUSTER_PLACEMENT_POLICIES).catch(notInstalled),
  ]);
  if (own instanceof MissingRight) return own;
  return clusterWide instanceof MissingRight ? clusterWide : [...own, ...clusterWide];
}

/** Version and clock of the API server; whoever may ask anything may ask this. Times in ms. */
async function serverOf(host: Viewer): Promise<{ version: string; now: number; cameAt: number }> {
  return await host.ask('read the version', async (signal) => {
    const answer = await host.client.stream({ path: '/version', signal });
    const cameAt = Date.now();
    const date = Date.parse(String(answer.headers['date'] ?? ''));
    const chunks: Buffer[] = [];
    for await (const chunk of answer.body) chunks.push(chunk as Buffer);
    const { gitVersion } = JSON.parse(Buffer.concat(chunks).toString()) as { gitVersion?: unknown };
    return {
      version: typeof gitVersion === 'string' ? gitVersion : '',
      now: Number.isNaN(date) ? cameAt : date,
      cameAt,
    };
  });
}

function versionOf(member: KubeObject): string | undefined {
  const { status } = member as { status?: { version?: unknown } };
  return typeof status?.version === 'string' ? status.version : undefined;
}

/** Lets the API server ask each virtual node, as it does for logs and exec. */
async function portAnswers(host: Viewer, nodes: readonly Node[]): Promise<PortAnswer[] | MissingRight> {
  const answers = await Promise.all(
    nodes.slice(0, MOST_PORTS).map(async ({ metadata: { name } }): Promise<PortAnswer | MissingRight> => {
      const path = `/api/v1/nodes/${encodeURIComponent(name)}/proxy/healthz`;
      try {
        await host.client.text({ path, deadlineMs: PORT_DEADLINE_MS, retry: false });
        return { node: name, error: undefined };
      } catch (error) {
        if (isForbidden(error)) return new MissingRight('get nodes/proxy');
        const words =
          error instanceof ApiError
            ? (error.status.message ?? error.message)
            : error instanceof Error
              ? error.message
              : '';
        return { node: name, error: words };
      }
    }),
  );
  const missing = answers.find((one) => one instanceof MissingRight);
  return missing instanceof MissingRight
    ? missing
    : answers.filter((one): one is PortAnswer => !(one instanceof MissingRight));
}

async function rights(host: Viewer, files: readonly string[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const file of files) {
    const manifests = manifestsOf(file);
    if (manifests === undefined) return [withoutManifests('rights')];
    const wanted = rightsIn(manifests);
    const refused = await refusedOf(host, wanted);
    if (refused instanceof MissingRight) return [notAllowed('rights', refused.right)];
    const finding = rightsGranted(file, wanted.length, refused);
    findings.push(file === MOVES ? movesGranted(finding) : finding);
  }
  return findings;
}

function withoutManifests(check: string): Finding {
  return { check, verdict: 'unknown', says: 'not looked at: the folder manifests did not come with this program' };
}

/** Asks the API server about each right; nobody is impersonated. */
async function refusedOf(host: Viewer, wanted: readonly Right[]): Promise<Right[] | MissingRight> {
  try {
    const answers = await Promise.all(wanted.map(async (right) => await mayThey(host, right)));
    return wanted.filter((_, index) => answers[index] === false);
  } catch (error) {
    if (isForbidden(error)) return new MissingRight('create subjectaccessreviews.authorization.k8s.io');
    throw error;
  }
}

async function mayThey(host: Viewer, { user, ...resourceAttributes }: Right): Promise<boolean> {
  const [, , namespace = ''] = user.split(':');
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  const review = await host.client.request<{ status?: { allowed?: boolean } }>({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups, resourceAttributes },
    },
    retry: true,
  });
  return review.status?.allowed === true;
}

async function guards(host: Viewer, files: readonly string[]): Promise<Finding[]> {
  const manifests = new Map<string, readonly Manifest[]>();
  for (const file of files) {
    const found = manifestsOf(file);
    if (found === undefined) return [withoutManifests('guards')];
    manifests.set(file, found);
  }
  const [policies, bindings] = await Promise.all([
    host.tryList<KubeObject>(POLICIES),
    host.tryList<KubeObject>(BINDINGS),
  ]);
  if (policies instanceof MissingRight) return [notAllowed('guards', policies.right)];
  if (bindings instanceof MissingRight) return [notAllowed('guards', bindings.right)];
  return guardsPresent(manifests, { policies, bindings });
}

async function defaulting(host: Viewer, namespaces: readonly KubeObject[]): Promise<Finding[]> {
  const bursting = namespaces.map(({ metadata }) => metadata.name);
  if (bursting.length === 0) return [];
  const [policies, webhooks] = await Promise.all([
    host.tryList<KubeObject>(MUTATING).catch(notInstalled),
    host.tryList<KubeObject>(WEBHOOKS),
  ]);
  const found = [...orNone(policies), ...orNone(webhooks)].some(({ metadata }) => metadata.name === POD_DEFAULTS);
  const missing = [policies, webhooks].find((one) => one instanceof MissingRight);
  return !found && missing instanceof MissingRight
    ? [notAllowed('admission', missing.right)]
    : defaultingPresent(bursting, found);
}

async function webhooks(host: Viewer, now: number): Promise<Finding[]> {
  const all = await host.tryList<WebhookConfiguration>(WEBHOOKS);
  if (all instanceof MissingRight) return [notAllowed('webhook', all.right)];
  const configurations = all.filter(({ metadata }) => metadata.name === POD_DEFAULTS);
  const services = configurations.flatMap(({ webhooks: calls = [] }) =>
    calls.flatMap(({ clientConfig }) => (clientConfig?.service === undefined ? [] : [clientConfig.service])),
  );
  const endpoints = new Map<string, readonly Endpoints[] | undefined>();
  for (const { namespace, name } of services) {
    const key = `${namespace}/${name}`;
    if (endpoints.has(key)) continue;
    const labelSelector = `kubernetes.io/service-name=${name}`;
    const found = await host.tryList<Endpoints>(ENDPOINT_SLICES, { namespace, labelSelector });
    endpoints.set(key, found instanceof MissingRight ? undefined : found);
  }
  return webhooksServed({ configurations, endpoints, now });
}

async function networks(host: Viewer): Promise<Finding[]> {
  const [nodes, services] = await Promise.all([
    host.tryList<Node>(NODES),
    host.tryList<ServiceRange>(SERVICE_RANGES).catch(notInstalled),
  ]);
  if (nodes instanceof MissingRight) return [notAllowed('networks', nodes.right)];
  const virtual = nodes.filter((node) => memberOfNode(node) !== undefined).slice(0, MOST_PORTS);
  const found = await Promise.all(
    virtual.map(async ({ metadata: { name } }) => {
      const fieldSelector = `spec.nodeName=${name},status.phase=Running`;
      return await host.tryList<Pod>(PODS, { fieldSelector, limit: MOST_PODS });
    }),
  );
  const missing = found.find((one) => one instanceof MissingRight);
  if (missing instanceof MissingRight) return [notAllowed('networks', missing.right)];
  return networksApart({ nodes, pods: found.flatMap(orNone), services: orNone(services) });
}

async function metricsStatus(host: Viewer): Promise<number> {
  try {
    await host.client.request({ path: '/apis/metrics.k8s.io/v1beta1', retry: false });
    return 200;
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}
