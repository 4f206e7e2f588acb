import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCluster, type Cluster } from '../cluster.ts';
import { startKubelet, type KubeletNode } from '../kubelet.ts';
import { machineNetwork } from '../machine-network.ts';
import { repositoryRoot } from '../repository.ts';
import { addMember, installSpillway, startSpillway, waitForNode } from '../spillway.ts';
import type { Workspace } from '../workspace.ts';

export interface TestBed {
  host: Cluster;
  member: Cluster;
  /** The member's only node. */
  node: KubeletNode;
}

/** The member's name, and so that of the virtual node. */
export const VIRTUAL_NODE = 'east';

/**
 * A member with one real kubelet that has the images of `archive`, and a host whose only node is that member's virtual
 * one. It has no taint, because the suite's pods know nothing of virtual nodes, and shows all Events, because the suite waits
 * for those of healthy pods. Pods have tokens for the host, which is the only cluster that the suite knows.
 */
export async function startTestBed(workspace: Workspace, archive: string): Promise<TestBed> {
  const { gateway: bindAddress } = await machineNetwork(workspace);
  const [host, member] = await Promise.all([
    startCluster(workspace, { name: 'host', bindAddress }),
    startCluster(workspace, { name: VIRTUAL_NODE, bindAddress, serviceCidr: '10.97.0.0/16' }),
  ]);
  const node = await startKubelet(member, { node: `${VIRTUAL_NODE}-1` });
  workspace.say('importing the images of the suite');
  await node.containerd.ctr(['images', 'import', archive]);
  await installSpillway(host);
  await startSpillway(host);
  // For virtual-kubelet's suite: exact counters, as the member's kubelet has them.
  await member.apply(readFileSync(join(repositoryRoot(), 'manifests/member/node-metrics.yaml'), 'utf8'));
  const { hostname, port } = new URL(host.server);
  const serviceAccount = { mode: 'Host', apiServer: { host: hostname, port: Number(port) } };
  // One of the specs compares a container's /etc/hosts with that of its node.
  const hostPath = { policy: 'Allow', allowedPrefixes: ['/etc/hosts'] };
  // Nor do all of them fit the baseline level.
  const namespaces = { podSecurity: 'privileged' };
  await addMember(host, member, {
    spec: { taintMode: 'None', podEvents: 'All', serviceAccount, hostPath, namespaces },
  });
  await waitForNode(host, VIRTUAL_NODE);
  return { host, member, node };
}
