import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { HOST_LABEL, MIRRORED_CONDITION, NODE_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { Pod, PodStatus, ResourceList } from '../../src/kube/core-v1.ts';
import { addTo, type Amounts, parseAmounts } from '../../src/kube/amounts.ts';
import { podRequests } from '../../src/capacity/pod-requests.ts';
import { memberNode, poolOf } from '../fixtures/member-nodes.ts';
import { memberFit, policyOnPods } from '../fixtures/member-room.ts';

/** Of every pod the namespace in the member lacks what a LimitRange adds. */
const DEFAULTS = { memory: '100Mi' };
const NODES = ['a', 'b'];
const CPUS_THERE = ['50m', '1', '7'];
const BIG = { cpu: '1000', memory: '1000Gi', pods: '500', 'example.com/gpu': '1000' };

/** A pod as the host has it, and what the member makes of it. */
interface Shape {
  asks: ResourceList;
  init: ResourceList | undefined;
  whole: ResourceList | undefined;
  granted: ResourceList | undefined;
  overhead: ResourceList | undefined;
  /** What an override makes of the CPUs of the first container. */
  cpuThere: string;
  /** Overhead that the member's own runtime class adds. */
  overheadThere: ResourceList | undefined;
  place: 'shop' | 'elsewhere';
}

type Copy = 'none' | 'waiting' | 'stuck' | 'placed' | 'finished';

/** The truth of one pod. */
interface Known {
  shape: Shape;
  uid: string;
  node: string;
  host: 'none' | 'bound' | 'mirrored' | 'deleting' | 'finished';
  copy: Copy;
}

const cpu = fc.constantFrom('100m', '1', '2500m');
const quantities = fc.record(
  { cpu, memory: fc.constantFrom('1Gi', '300Mi'), 'example.com/gpu': fc.constantFrom('1', '2') },
  { requiredKeys: ['cpu'] },
);
const perhaps = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(of, { nil: undefined });
const shape: fc.Arbitrary<Shape> = fc.record({
  asks: quantities,
  init: perhaps(fc.record({ cpu: fc.constantFrom('50m', '5') })),
  whole: perhaps(fc.record({ cpu: fc.constantFrom('3', '6') })),
  granted: perhaps(fc.record({ cpu: fc.constantFrom('200m', '4') })),
  overhead: perhaps(fc.record({ cpu: fc.constantFrom('10m', '1') })),
  cpuThere: fc.constantFrom(...CPUS_THERE),
  overheadThere: perhaps(fc.record({ cpu: fc.constantFrom('20m', '2'), memory: fc.constant('64Mi') })),
  place: fc.constantFrom('shop', 'shop', 'shop', 'elsewhere'),
});
const step = fc.record({
  pod: fc.nat(5),
  shape,
  node: fc.constantFrom(...NODES),
  what: fc.constantFrom(
    'bind',
    'bind',
    'copy',
    'mirror',
    'place',
    'place',
    'stick',
    'end',
    'finish',
    'delete',
    'go',
    'drop',
    'forget',
  ),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function hostPodOf({ shape: one, uid, host }: Known): Pod {
  const { asks, init, whole, granted, overhead, place, cpuThere } = one;
  const status: PodStatus = {
    phase: host === 'finished' ? 'Failed' : 'Pending',
    ...(granted === undefined
      ? {}
      : {
          containerStatuses: [
            { name: 'c', ready: true, restartCount: 0, image: '', imageID: '', resources: { requests: granted } },
          ],
        }),
    conditions: host === 'mirrored' || host === 'finished' ? [{ type: MIRRORED_CONDITION, status: 'True' }] : [],
  };
  return {
    metadata: {
      name: uid,
      namespace: place,
      uid,
      labels: { cpuThere },
      ...(host === 'deleting' ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      nodeName: 'east',
      containers: [{ name: 'c', image: 'i', resources: { requests: asks } }],
      ...(init === undefined ? {} : { initContainers: [{ name: 'i', image: 'i', resources: { requests: init } }] }),
      ...(whole === undefined ? {} : { resources: { requests: whole } }),
      ...(overhead === undefined ? {} : { overhead, runtimeClassName: 'heavy' }),
    },
    status,
  };
}

/** The copy as the member has it once admission there is through. */
function copyOf(known: Known): Pod {
  const { shape: one, uid, node, copy } = known;
  const filled = (list: ResourceList): ResourceList => ({ ...DEFAULTS, ...list });
  const { overhead: _, initContainers, ...spec } = hostPodOf(known).spec;
  const { runtimeClassName: _class, ...rest } = spec;
  return {
    metadata: {
      name: uid,
      namespace: 'member-shop',
      uid: `copy-${uid}`,
      labels: { [HOST_LABEL]: 'host-1', [NODE_LABEL]: 'east', [UID_LABEL]: uid },
    },
    spec: {
      ...rest,
      nodeName: copy === 'placed' || copy === 'finished' ? node : '',
      containers: [{ name: 'c', image: 'i', resources: { requests: filled({ ...one.asks, cpu: one.cpuThere }) } }],
      ...(initContainers === undefined
        ? {}
        : { initContainers: [{ name: 'i', image: 'i', resources: { requests: filled(one.init ?? {}) } }] }),
      ...(one.overheadThere === undefined ? {} : { overhead: one.overheadThere }),
    },
    status: {
      phase: copy === 'finished' ? 'Succeeded' : 'Pending',
      conditions: copy === 'stuck' ? [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] : [],
    },
  };
}

/** The member's figure of a pod that has no copy yet: what the host's runtime class adds is taken to be what the member's will. */
function expectedOf(known: Known): Amounts {
  const copy = copyOf({ ...known, shape: { ...known.shape, overheadThere: known.shape.overhead } });
  return podRequests(copy);
}

const isThere = (copy: Copy): boolean => copy !== 'none';

it('allocatable less what the host counts is the room that is left, whatever pods do', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.record({ cpu: fc.constantFrom('0', '3', '1990') }),
      fc.constantFrom(undefined, '20', '5'),
      (steps, headroom, cap) => {
        const caps = parseAmounts(cap === undefined ? {} : { cpu: cap });
        const pool = poolOf({ headroom: parseAmounts(headroom), caps });
        const { capacity, virtual, state } = memberFit({ pools: [pool] });
        for (const name of NODES) capacity.nodeHandler.added(memberNode(name, { allocatable: BIG, capacity: BIG }));
        state.policies = CPUS_THERE.map((value) => {
          const path = '/spec/containers/0/resources/requests/cpu';
          return policyOnPods({ plaintext: [{ path, operator: 'replace', value }] }, { cpuThere: value });
        });
        capacity.limitRangeHandler.added({
          metadata: { name: 'defaults', namespace: 'member-shop' },
          spec: { limits: [{ type: 'Container', defaultRequest: DEFAULTS }] },
        });
        const pods = new Map<number, Known>();
        let made = 0;
        const tellHost = (known: Known): void => virtual.hostPodHandler.updated(hostPodOf(known));
        const tellMember = (known: Known): void => capacity.podHandler.updated(copyOf(known));

        const act = ({ pod: index, shape: fresh, node, what }: Step): void => {
          const known = pods.get(index);
          if (known === undefined || (known.host === 'none' && known.copy === 'none')) {
            if (what !== 'bind') return;
            made += 1;
            const bound: Known = { shape: fresh, uid: `p${String(made)}`, node, host: 'bound', copy: 'none' };
            pods.set(index, bound);
            tellHost(bound);
            return;
          }
          const isLive = known.host === 'bound' || known.host === 'mirrored';
          const isUnplaced = known.copy === 'waiting' || known.copy === 'stuck';
          switch (what) {
            case 'bind':
              // A status of no importance.
              if (known.host !== 'none') tellHost(known);
              break;
            case 'copy':
              if (known.host !== 'bound' || isThere(known.copy) || known.shape.place !== 'shop') break;
              known.copy = 'waiting';
              tellMember(known);
              break;
            case 'mirror':
              if (known.host !== 'bound' || !isThere(known.copy)) break;
              known.host = 'mirrored';
              tellHost(known);
              break;
            case 'place':
            case 'stick':
              if (!isUnplaced) break;
              known.copy = what === 'place' ? 'placed' : 'stuck';
              tellMember(known);
              break;
            case 'end':
              if (known.copy !== 'placed') break;
              known.copy = 'finished';
              tellMember(known);
              break;
            case 'finish':
              if (!isLive || !isThere(known.copy)) break;
              known.host = 'finished';
              tellHost(known);
              break;
            case 'delete':
              if (!isLive) break;
              known.host = 'deleting';
              tellHost(known);
              break;
            case 'go':
              if (known.host === 'none') break;
              virtual.hostPodHandler.deleted(hostPodOf(known));
              known.host = 'none';
              break;
            case 'drop':
              if (!isThere(known.copy)) break;
              if (known.host === 'bound') {
                known.host = 'mirrored';
                tellHost(known);
              }
              capacity.podHandler.deleted(copyOf(known));
              known.copy = 'none';
              break;
            case 'forget':
              state.known = !state.known;
              for (const one of pods.values()) if (one.host !== 'none') virtual.noteBound(hostPodOf(one));
              break;
          }
        };

        /** From nothing but the truth: free room of the nodes without the pods that are coming; headroom and cap; the host's own figure. */
        const check = (): void => {
          const free = new Map<string, bigint>();
          for (const _ of NODES) addTo(free, parseAmounts(BIG));
          const taken = new Map<string, bigint>();
          const bound = new Map<string, bigint>();
          const unknown = new Map<string, bigint>();
          for (const known of pods.values()) {
            const { host, copy } = known;
            const isHostLive = host === 'bound' || host === 'mirrored' || host === 'deleting';
            if (isHostLive) addTo(bound, podRequests(hostPodOf(known)));
            if (copy === 'placed' || copy === 'waiting') addTo(taken, podRequests(copyOf(known)));
            if (host !== 'bound') continue;
            // The member has no word of it yet: what it asks for there is foreseen, or is not known.
            if (!state.known) addTo(unknown, podRequests(hostPodOf(known)));
            else if (copy === 'none' && known.shape.place === 'shop') addTo(taken, expectedOf(known));
          }
          const shown = parseAmounts(virtual.offer()?.allocatable);
          for (const name of new Set([...shown.keys(), ...free.keys(), ...bound.keys()])) {
            const left = (free.get(name) ?? 0n) - (taken.get(name) ?? 0n) - (pool.headroom.get(name) ?? 0n);
            const most = pool.caps.get(name);
            const rest = most === undefined ? left : most - (taken.get(name) ?? 0n);
            const room = (rest < left ? rest : left) - (unknown.get(name) ?? 0n) + (bound.get(name) ?? 0n);
            expect([name, shown.get(name) ?? 0n]).toEqual([name, room > 0n ? room : 0n]);
          }
        };
        for (const [index, one] of steps.entries()) {
          act(one);
          if (index % 3 === 0) check();
        }
        check();
      },
    ),
    { numRuns: 500 },
  );
});
