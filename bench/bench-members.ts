import type { Node, Pod } from '../src/kube/core-v1.ts';
import { MemberCapacity } from '../src/capacity/member-capacity.ts';

/** The nodes and pods of a member, the pods somebody else's, all in its capacity. */
export function memberWith(nodes: number, pods: number, index: number): MemberCapacity {
  const member = new MemberCapacity({ hostId: 'bench' });
  for (let node = 0; node < nodes; node++)
    member.nodeHandler.added(benchNode(`m${String(index)}-n${String(node)}`, node));
  for (let pod = 0; pod < pods; pod++) {
    member.podHandler.added(
      benchPod(`m${String(index)}-p${String(pod)}`, `m${String(index)}-n${String(pod % nodes)}`, pod),
    );
  }
  return member;
}

export function benchNode(name: string, index: number): Node {
  return {
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'topology.kubernetes.io/zone': `z${String(index % 3)}`,
        disk: index % 2 ? 'ssd' : 'hdd',
      },
    },
    spec: index % 10 === 0 ? { taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }] } : {},
    status: {
      allocatable: { cpu: String(4 + (index % 5) * 4), memory: '64Gi', 'ephemeral-storage': '100Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}

export function benchPod(name: string, nodeName: string | undefined, shape: number): Pod {
  const cpu = `${String(100 + (shape % 40) * 50)}m`;
  return {
    metadata: { name, namespace: 'bench', uid: `uid-${name}`, labels: { app: `app-${String(shape % 40)}` } },
    spec: {
      containers: [{ name: 'c', image: 'registry.example/app:1', resources: { requests: { cpu, memory: '256Mi' } } }],
      ...(shape % 4 === 0 ? { nodeSelector: { disk: 'ssd' } } : {}),
      ...(nodeName === undefined ? {} : { nodeName }),
    },
    status: { phase: 'Running' },
  };
}
