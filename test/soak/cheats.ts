import type { Fields } from '../fixtures/live-pods.ts';

/** A pod that a tenant makes, to get out of the host, or to keep Spillway busy. */
export interface Try {
  readonly what: string;
  readonly metadata: Fields;
  readonly spec: Fields;
  /** What of the answer says why it is refused; undefined: it is let in, and held to something else. */
  readonly refusedWith: string | undefined;
}

/** What the API server answered to it: the words by which it was refused, or undefined. */
export interface Tried {
  readonly one: Pick<Try, 'what' | 'refusedWith'>;
  readonly error: string | undefined;
}

const ON = 'spillway.dev/';
const ONLY_SPILLWAY = 'only Spillway writes this';

export function triesOf(): Try[] {
  const owner = (kind: string, apiVersion: string): Fields => ({
    ownerReferences: [{ apiVersion, kind, name: 'made-up', uid: crypto.randomUUID(), controller: true }],
  });
  const placed = { [`${ON}gang-placed-at`]: '2026-01-01T00:00:00Z', [`${ON}gang-size`]: '2' };
  const cost = { 'controller.kubernetes.io/pod-deletion-cost': '-9', [`${ON}deletion-cost`]: '-9' };
  const constraints = { [`${ON}member-constraints`]: '{"tolerations":[{"operator":"Exists"}]}' };
  const ours = { key: `${ON}virtual-node`, operator: 'Exists' };
  const nothing = { metadata: {}, spec: {}, refusedWith: undefined };
  return [
    {
      ...nothing,
      what: 'the place of a gang',
      metadata: { annotations: placed, labels: { [`${ON}gang`]: 'x' } },
      refusedWith: ONLY_SPILLWAY,
    },
    { ...nothing, what: 'whose deletion cost it is', metadata: { annotations: cost }, refusedWith: ONLY_SPILLWAY },
    {
      ...nothing,
      what: 'a label and a toleration of everything',
      metadata: { labels: { [`${ON}burst`]: 'enabled' } },
      spec: { tolerations: [{ operator: 'Exists' }] },
    },
    {
      ...nothing,
      what: 'a toleration and the choice of virtual nodes',
      spec: { tolerations: [ours], nodeSelector: { type: 'virtual-kubelet' } },
    },
    { ...nothing, what: 'constraints with tolerations', metadata: { annotations: constraints } },
    { ...nothing, what: 'a ReplicaSet that is not there', metadata: owner('ReplicaSet', 'apps/v1') },
    { ...nothing, what: 'a DaemonSet of another API group', metadata: owner('DaemonSet', 'example.com/v1') },
    {
      ...nothing,
      what: 'a DaemonSet that is not there, and the choice of a member',
      metadata: owner('DaemonSet', 'apps/v1'),
      spec: { tolerations: [ours], nodeSelector: { [`${ON}member`]: 'east' } },
    },
    {
      ...nothing,
      what: 'the name of a virtual node',
      spec: { nodeName: 'east-general' },
      refusedWith: 'is a virtual node',
    },
  ];
}

/** Of what a tenant tried: what was let in though it is to be refused, or refused otherwise. */
export function wronglyAnswered(tries: readonly Tried[]): string[] {
  return tries.flatMap(({ one: { what, refusedWith }, error }) => {
    if (refusedWith === undefined) return error === undefined ? [] : [`a pod with ${what} was refused: ${error}`];
    if (error === undefined) return [`a pod with ${what} was let in`];
    return error.includes(refusedWith) ? [] : [`a pod with ${what} was refused with other words: ${error}`];
  });
}
