import type { Condition, NodeAddress, NodeSystemInfo, ResourceList, Taint } from '../kube/core-v1.ts';

export interface DesiredCondition extends Pick<Condition, 'type' | 'status'> {
  reason: string;
  message: string;
  /** Nothing new is known: a condition that is there stays as it is. */
  onlyIfAbsent?: boolean;
}

/** A virtual node as it should be; where something is not known now, what is there stays. */
export interface DesiredNode {
  readonly name: string;
  /** The MemberCluster it stands for. */
  readonly member: string;
  readonly providerID: string;
  readonly labels: Readonly<Record<string, string>>;
  /** False while the member's nodes are not known: labels that came from them earlier are kept. */
  readonly labelsComplete: boolean;
  readonly taints: readonly Taint[];
  /** Keys of own taints of which it is not known now whether they belong there; an existing node keeps them as they are. */
  readonly undecidedTaints: readonly string[];
  /** True cordons the node; false only takes back a cordon of our own. */
  readonly unschedulable: boolean;
  readonly addresses: readonly NodeAddress[];
  readonly kubeletPort: number;
  readonly conditions: readonly DesiredCondition[];
  readonly nodeInfo: NodeSystemInfo | undefined;
  readonly capacity: ResourceList | undefined;
  readonly allocatable: ResourceList | undefined;
  /** Labels that choose the member's nodes behind it. Undefined: what the Node says stays. */
  readonly pool?: Readonly<Record<string, string>> | undefined;
  /** In how many ms it is to be otherwise though nothing happens (> 0). */
  readonly changesInMs?: number | undefined;
  /** Sorted and unique. */
  readonly declaredFeatures: readonly string[] | undefined;
}
