import { keyOf } from '../kube/object.ts';
import type { MemberFencing } from '../members/member-fencing.ts';
import { mirroredNamespace } from '../pods/host-status.ts';
import type { FencingPort } from '../pods/pod-ports.ts';

/** What the pods of one virtual node have to know of an administrator's word that nothing runs there any more. */
export function podFencing(fencing: MemberFencing, nodeName: string): FencingPort {
  return {
    isFenced: () => fencing.isFenced(nodeName),
    get isRead() {
      return fencing.isRead;
    },
    get told() {
      return fencing.told;
    },
    isTold: (uid) => fencing.isTold(uid),
    tell: async (hostPod, signal) => {
      const namespace = mirroredNamespace(hostPod);
      const copy = namespace === undefined ? keyOf(hostPod) : `${namespace}/${hostPod.metadata.name}`;
      return await fencing.tell(hostPod.metadata.uid ?? '', `${nodeName}/${copy}`, signal);
    },
  };
}
