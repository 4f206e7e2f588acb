import { dirname } from 'node:path';
import type { Cluster } from './cluster.ts';
import { IMAGES } from './images.ts';
import { addMember, installSpillway, startSpillway, waitForNode } from './spillway.ts';
import type { CanRun } from './system-packages.ts';
import { until } from './until.ts';
import { startTopology, type MemberPlan, type Topology } from './up.ts';
import type { Workspace } from './workspace.ts';

const MEMBERS: readonly MemberPlan[] = [
  { name: 'east', kind: 'kubelet', nodes: 1 },
  { name: 'west', kind: 'kwok', nodes: 3 },
];
const REPLICAS = 4;

/**
 * The whole of Spillway on one machine: a host, two members, the manager, and a Deployment whose pods run in both
 * members. Nothing ends by itself: the caller detaches or closes the workspace.
 * @param can whether one member may be a real kubelet; else both are simulated.
 * @returns the text that tells a person what to try.
 */
export async function startDemo(workspace: Workspace, can: CanRun): Promise<string> {
  const { say } = workspace;
  say('starting a host cluster and two member clusters');
  const { host, members } = await startTopology(workspace, MEMBERS, can);
  await installSpillway(host);
  say('starting spillway manager');
  const { process: manager } = await startSpillway(host);
  try {
    return await burst(workspace, host, members);
  } catch (error) {
    say(`the end of the manager's log:\n${manager.logTail(30)}`);
    throw error;
  }
}

/** Registers the members, applies the Deployment and waits for its pods. */
async function burst(workspace: Workspace, host: Cluster, members: Topology['members']): Promise<string> {
  const { say } = workspace;
  for (const { cluster } of members) await addMember(host, cluster);
  await Promise.all(members.map(({ cluster }) => waitForNode(host, cluster.name)));
  say(`virtual nodes ${members.map(({ cluster }) => cluster.name).join(' and ')} are Ready; applying a Deployment`);
  await host.apply([deployment()]);
  await runningEverywhere(
    host,
    members.map(({ cluster }) => cluster.name),
  );
  say(`${REPLICAS} pods are Running in the members`);
  const simulated = members.filter(({ plan }) => plan.kind === 'kwok').map(({ cluster }) => cluster.name);
  const real = members.find(({ plan }) => plan.kind === 'kubelet')?.cluster.name;
  return summary(host, members[0]?.cluster, real, simulated);
}

/** An ordinary Deployment; only the toleration says that its pods may leave the host. */
function deployment(): object {
  const labels = { app: 'hello' };
  const greet = 'while :; do echo "$(date -u +%T) hello from $HOSTNAME"; sleep 5; done & exec httpd -f -p 8080 -h /tmp';
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'hello', namespace: 'default', labels },
    spec: {
      replicas: REPLICAS,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }],
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: labels },
            },
          ],
          containers: [
            {
              name: 'hello',
              image: IMAGES.busybox,
              command: ['sh', '-c', `echo hello from $HOSTNAME > /tmp/index.html; ${greet}`],
              ports: [{ containerPort: 8080 }],
              resources: { requests: { cpu: '50m', memory: '16Mi' } },
            },
          ],
          terminationGracePeriodSeconds: 2,
        },
      },
    },
  };
}

interface PodList {
  items: { metadata: { name: string }; spec: { nodeName?: string }; status: { phase?: string } }[];
}

async function helloPods(host: Cluster): Promise<PodList['items']> {
  const path = '/api/v1/namespaces/default/pods?labelSelector=app%3Dhello';
  return ((await host.api.call('GET', path)) as PodList).items;
}

async function runningEverywhere(host: Cluster, nodes: readonly string[]): Promise<void> {
  await until(
    `${REPLICAS} pods Running on ${nodes.join(' and ')}`,
    async () => {
      const running = (await helloPods(host)).filter((pod) => pod.status.phase === 'Running');
      const used = new Set(running.map((pod) => pod.spec.nodeName));
      return running.length === REPLICAS && nodes.every((node) => used.has(node));
    },
    { timeoutMs: 120_000 },
  );
}

async function summary(
  host: Cluster,
  first: Cluster | undefined,
  real: string | undefined,
  simulated: readonly string[],
): Promise<string> {
  const pods = await helloPods(host);
  const shown = pods.find((pod) => pod.spec.nodeName === (real ?? first?.name))?.metadata.name ?? 'POD';
  const table = await host.kubectl(['get', 'pods', '-o', 'wide']);
  const nodes = await host.kubectl(['get', 'nodes']);
  return `
${nodes.stdout}
${table.stdout}
${simulated.length === 0 ? '' : `Pods on ${simulated.join(' and ')} are simulated by kwok: no containers run there, logs and exec are made up.\n`}
The host's kubeconfig, and the folder with kubectl:

  export KUBECONFIG=${host.kubeconfig} PATH=${dirname(host.kubectlPath)}:$PATH

Five things to try:

  kubectl get pods -o wide
  kubectl logs -f ${shown}
  kubectl exec -it ${shown} -- sh
  kubectl port-forward ${shown} 8080:8080        # then: curl localhost:8080
  kubectl scale deployment hello --replicas 10

make demo-down ends it all.`;
}
