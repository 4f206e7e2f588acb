import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import type { Cluster } from '../cluster.ts';
import { IMAGES } from '../images.ts';
import { machineNetwork } from '../machine-network.ts';
import { until } from '../until.ts';
import type { TestBed } from './clusters.ts';
import { startNodeFront } from './node-front.ts';
import { goTestOutcomes, type Outcome } from './report.ts';

/** The suite asks for metrics through a pod that has the name of the node, in the namespace of its pods. */
const NAMESPACE = 'default';
const READER = 'virtual-kubelet-suite';

interface NodeObject {
  status: { addresses: { address: string }[]; daemonEndpoints: { kubeletEndpoint: { Port: number } } };
}

/** Runs virtual-kubelet's end-to-end suite against a virtual node of a host, as it is, with the fixture that it needs. */
export async function runVirtualKubeletSuite(
  { host, member }: TestBed,
  node: string,
  program: string,
): Promise<Outcome[]> {
  const { workspace } = host;
  const { gateway } = await machineNetwork(workspace);
  const { status } = (await host.api.call('GET', `/api/v1/nodes/${node}`)) as NodeObject;
  await setPullPolicy(member);
  await host.apply([...metricsReader(), overridePolicy(), standIn(node)]);
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${node}`;
  const podIP = { podIP: gateway, podIPs: [{ ip: gateway }] };
  await host.api.call('PATCH', `${path}/status`, { status: { phase: 'Running', ...podIP } });
  const address = status.addresses[0]?.address ?? gateway;
  const front = await startNodeFront(
    host,
    gateway,
    { address, port: status.daemonEndpoints.kubeletEndpoint.Port },
    READER,
  );
  try {
    workspace.say("running virtual-kubelet's own suite");
    const logFile = join(workspace.dir, 'virtual-kubelet-suite.log');
    const suite = workspace.start({
      name: "virtual-kubelet's suite",
      file: program,
      args: [
        '-test.v',
        '-test.timeout=15m',
        `-kubeconfig=${host.kubeconfig}`,
        `-namespace=${NAMESPACE}`,
        `-node-name=${node}`,
      ],
      logFile,
    });
    await until("virtual-kubelet's suite has ended", () => !suite.running, { timeoutMs: 20 * 60_000, intervalMs: 200 });
    const outcomes = goTestOutcomes(readFileSync(logFile, 'utf8'));
    if (outcomes.length === 0) throw new Error(`virtual-kubelet's suite ran no test:\n${suite.logTail(30)}`);
    return outcomes;
  } finally {
    await front.close();
    await host.api.call('DELETE', path);
  }
}

function metricsReader(): object[] {
  const metadata = { name: READER };
  const apiGroup = 'rbac.authorization.k8s.io';
  return [
    {
      apiVersion: `${apiGroup}/v1`,
      kind: 'ClusterRole',
      metadata,
      rules: [{ apiGroups: [''], resources: ['nodes/stats', 'nodes/metrics'], verbs: ['get'] }],
    },
    {
      apiVersion: `${apiGroup}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup, kind: 'ClusterRole', name: READER },
      subjects: [{ apiGroup, kind: 'User', name: READER }],
    },
  ];
}

/** Gives the containers of the suite's pods, whose images exist nowhere, one that is there. */
function overridePolicy(): object {
  const [value = '', tag = ''] = IMAGES.pause.split(':');
  const imageOverrider = [
    { component: 'Repository', operator: 'replace', value },
    { component: 'Tag', operator: 'add', value: tag },
  ];
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'OverridePolicy',
    metadata: { name: READER, namespace: NAMESPACE },
    spec: {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod' }],
      overrideRules: [{ overriders: { imageOverrider } }],
    },
  };
}

/** In a member without a registry: images without a tag are to be pulled always, unless its owner says otherwise. */
async function setPullPolicy(member: Cluster): Promise<void> {
  await member.apply(pullPolicy());
  const trial = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'trial-', namespace: NAMESPACE },
    spec: { containers: [{ name: 'trial', image: IMAGES.pause, imagePullPolicy: 'Always' }] },
  };
  await until('the pull policy acts', async () => {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`;
    const answer = (await member.api.call('POST', path, trial)) as typeof trial;
    return answer.spec.containers[0]?.imagePullPolicy === 'IfNotPresent';
  });
}

function pullPolicy(): object[] {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const metadata = { name: 'pull-if-not-present' };
  const container = "Object.spec.containers{name: c.name, imagePullPolicy: 'IfNotPresent'}";
  const expression = `Object{spec: Object.spec{containers: object.spec.containers.map(c, ${container})}}`;
  return [
    {
      apiVersion,
      kind: 'MutatingAdmissionPolicy',
      metadata,
      spec: {
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } },
        },
        reinvocationPolicy: 'Never',
        mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
      },
    },
    { apiVersion, kind: 'MutatingAdmissionPolicyBinding', metadata, spec: { policyName: metadata.name } },
  ];
}

/** Never scheduled and never run: only its address counts. */
function standIn(node: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: node, namespace: NAMESPACE },
    spec: { schedulerName: 'nobody', containers: [{ name: 'node', image: IMAGES.pause }] },
  };
}
