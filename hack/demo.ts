import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from './addresses.ts';
import type { Cluster } from './cluster.ts';
import { IMAGES } from './images.ts';
import { joinedKubeconfig } from './joined-kubeconfig.ts';
import { kubectlPlugin } from './kubectl-plugin.ts';
import { manifest } from './manifest.ts';
import { startMetricsServer } from './metrics-server.ts';
import { addMember, installSpillway, startSpillway, waitForNode } from './spillway.ts';
import type { CanRun } from './system-packages.ts';
import { until } from './until.ts';
import { startTopology, type MemberPlan } from './up.ts';
import type { Workspace } from './workspace.ts';

const MEMBERS: readonly MemberPlan[] = [
  { name: 'east', kind: 'kubelet', nodes: 1 },
  { name: 'west', kind: 'kwok', nodes: 3 },
];
/** The host's own node takes four pods, member east three by the policy, and west all others. */
const HOST_NODE = { node: 'local', maxPods: 4 };
const EAST_AT_MOST = 3;
const REPLICAS = 8;
/** Where the first replicas are, when all run. */
const PLACES = { local: 4, east: 3, west: 1 };

/** What a demo runs on besides control planes. */
export interface DemoParts {
  /** Whether the host's node and member east may be real kubelets; else kwok plays them. */
  can: CanRun;
  /** Whether a metrics-server can be had, for `kubectl top`. */
  metrics: boolean;
}

/**
 * The whole of Spillway on one machine: a host with a node of its own, two members, the manager, and a Deployment that is
 * larger than the host. Nothing ends by itself: the caller detaches or closes the workspace.
 * @returns the text that tells a person what to try.
 */
export async function startDemo(workspace: Workspace, { can, metrics }: DemoParts): Promise<string> {
  const { say } = workspace;
  say('starting a host cluster with one node, and two member clusters');
  const extenderPort = await freePort();
  const { host, members } = await startTopology(workspace, MEMBERS, can, { ...HOST_NODE, extenderPort });
  await installSpillway(host);
  await host.apply(['admission/pod-defaults.yaml', 'scheduler/descheduler.yaml'].map(manifest).join('\n---\n'));
  say(metrics ? 'starting spillway manager and a metrics-server' : 'starting spillway manager');
  const [{ process: manager }] = await Promise.all([
    startSpillway(host, { extenderPort }),
    metrics ? startMetricsServer(host) : undefined,
  ]);
  try {
    for (const { cluster, plan } of members) {
      await cluster.apply(manifest('member/node-metrics.yaml'));
      // Pods that are only played are reached by nobody.
      const spec = { network: plan.kind === 'kwok' ? 'Isolated' : 'Flat' };
      await addMember(host, cluster, { services: true, spec });
    }
    await Promise.all(members.map(({ cluster }) => waitForNode(host, cluster.name)));
    say('virtual nodes east and west are Ready; applying a Deployment that the host has no room for');
    await host.apply([openNamespace(), policy(), service(), deployment()]);
    await runningIn(host, PLACES);
    say(`${REPLICAS} pods are Running: ${inWords(PLACES)}`);
    const played = [
      ...(can.ok ? [] : [HOST_NODE.node]),
      ...members.filter(({ plan }) => plan.kind === 'kwok').map(({ cluster }) => cluster.name),
    ];
    // Guides go from one cluster to another by contexts.
    const kubeconfig = join(workspace.dir, 'kubeconfig');
    writeFileSync(kubeconfig, joinedKubeconfig([host, ...members.map(({ cluster }) => cluster)]), { mode: 0o600 });
    return await summary(host, { played, metrics, kubeconfig, plugin: kubectlPlugin(workspace.dir) });
  } catch (error) {
    say(`the end of the manager's log:\n${manager.logTail(30)}`);
    throw error;
  }
}

/** Pods of this namespace may leave the host where a policy says so; nothing else in it knows of Spillway. */
function openNamespace(): object {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'default', labels: { 'spillway.dev/burst': 'policies' } },
  };
}

function policy(): object {
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'hello', namespace: 'default' },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'hello' }],
      placement: {
        clusterAffinity: {
          clusterNames: ['local'],
          overflowAffinities: [{ clusterNames: ['east'], max: EAST_AT_MOST }, { clusterNames: ['west'] }],
        },
      },
    },
  };
}

function service(): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'hello', namespace: 'default' },
    spec: { selector: { app: 'hello' }, ports: [{ port: 80, targetPort: 8080 }] },
  };
}

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

function placesOf(pods: PodList['items']): Record<string, number> {
  const places: Record<string, number> = { local: 0, east: 0, west: 0 };
  for (const { spec, status } of pods) {
    if (status.phase !== 'Running') continue;
    // Where kwok plays it, the host's node has a number.
    const place = (spec.nodeName ?? '').replace(/^local-0$/, 'local');
    places[place] = (places[place] ?? 0) + 1;
  }
  return places;
}

function inWords(places: Record<string, number>): string {
  return Object.entries(places)
    .map(([place, pods]) => `${pods} in ${place}`)
    .join(', ');
}

async function runningIn(host: Cluster, places: Record<string, number>): Promise<void> {
  let seen = '';
  try {
    await until(
      `pods Running, ${inWords(places)}`,
      async () => {
        seen = inWords(placesOf(await helloPods(host)));
        return seen === inWords(places);
      },
      { timeoutMs: 120_000 },
    );
  } catch (error) {
    throw new Error(`pods are Running elsewhere than they should be: ${seen}`, { cause: error });
  }
}

interface Shown {
  /** The places whose nodes kwok plays. */
  played: readonly string[];
  metrics: boolean;
  kubeconfig: string;
  /** The folder with kubectl spillway. */
  plugin: string;
}

async function summary(host: Cluster, { played, metrics, kubeconfig, plugin }: Shown): Promise<string> {
  const pods = await helloPods(host);
  const shown = pods.find(({ spec }) => spec.nodeName === 'east')?.metadata.name ?? 'POD';
  const nodes = await host.kubectl(['get', 'nodes']);
  const table = await host.kubectl(['get', 'pods', '-o', 'wide']);
  const simulated =
    played.length === 0
      ? ''
      : `Nodes of ${played.join(' and ')} are played by kwok: no containers run there, logs are made up, and exec is refused.\n`;
  const call = played.includes('east')
    ? ''
    : `  kubectl exec ${shown} -- wget -qO- http://hello # a Service: pods of host and east answer, ask often\n`;
  const top = metrics
    ? '  kubectl top pods                        # once metrics-server has measured twice, after half a minute\n'
    : '';
  return `
${nodes.stdout}
${table.stdout}
${simulated}
The host is full with ${PLACES.local} pods; ${EAST_AT_MOST} more may go to east, all others go to west. A kubeconfig with contexts host (the current one), east and west,
and the folders with kubectl and kubectl spillway:

  export KUBECONFIG=${kubeconfig} PATH=${dirname(host.kubectlPath)}:${plugin}:$PATH

Things to try in a shell that has read that line; ${shown} runs in member east:

  kubectl get pods -o wide
  kubectl logs ${shown}
  kubectl exec ${shown} -- hostname
${call}  kubectl port-forward ${shown} 8080:8080 # and in another shell: curl localhost:8080
${top}  kubectl spillway why ${shown}
  kubectl spillway status                 # or kubectl spillway ui, for a browser on this machine
  kubectl scale deployment hello --replicas=12
  kubectl get workloadplacements          # how many where, and by which policy
  kubectl scale deployment hello --replicas=3

Nodes pull no images: where a guide has an image of its own, write ${IMAGES.busybox}, which has a shell, wget and httpd.
make demo-down ends it all.`;
}
