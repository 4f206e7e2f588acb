import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Say } from '../hack/progress.ts';
import type { Pod } from '../src/kube/core-v1.ts';
import { fitRequestOf, type FitRequest } from '../src/capacity/fit-request.ts';
import type { MemberCapacity } from '../src/capacity/member-capacity.ts';
import { podRequests } from '../src/capacity/pod-requests.ts';
import { keyOf } from '../src/kube/object.ts';
import { nodesChosenBy } from '../src/kube/node-selector.ts';
import { firstUntolerated } from '../src/kube/taints.ts';
import { parseAmounts } from '../src/kube/amounts.ts';
import { podProjection } from '../src/members/pod-projection.ts';
import { benchNode, benchPod, memberWith } from './bench-members.ts';
import {
  asReference,
  measured,
  median,
  type Measurement,
  quantile,
  type SuiteReport,
  thirds,
  withSpread,
} from './measurement.ts';
import { samplePod } from './sample-pod.ts';

const MEMBERS = 100;
const NODES = 1_000;
const PODS = 10_000;
const QUESTIONS = 2_000;
/** Pods whose memory is measured. */
const HELD_PODS = 20_000;

/** What asking all members about one pod costs, and what holding their pods does. */
export async function capacity(say: Say): Promise<SuiteReport> {
  say(`capacity: ${String(MEMBERS)} members of ${String(NODES)} nodes, ${String(PODS)} pods`);
  const members = Array.from({ length: MEMBERS }, (_, index) => memberWith(NODES, PODS / MEMBERS, index));
  const measurements = [...questions(members), scan(), await Promise.resolve(memory())];
  return {
    suite: 'capacity',
    failures: [],
    measurements: withRatio(measurements),
    notes: [
      `One question asks each of ${String(MEMBERS)} members with ${String(NODES)} nodes whether, and on how many of its nodes, ` +
        `a pod fits; ${String(PODS)} pods run there. Before each one a pod was reserved somewhere. "A scan" is the same ` +
        'question by a loop over the Node objects, with what pods use summed up beforehand. Times are CPU time.',
    ],
  };
}

function withRatio(measurements: Measurement[]): Measurement[] {
  const value = (name: string): number => measurements.find((one) => one.name === name)?.value ?? Number.NaN;
  const ratio = value(MEDIAN) / value(SCAN);
  return [measured('capacity: a question against a scan of all nodes', ratio, 'ratio', 'lower', 0.05), ...measurements];
}

const MEDIAN = 'capacity: does a pod fit, all members, median';
const SCAN = 'capacity: the same by a scan, median';

function questions(members: readonly MemberCapacity[]): Measurement[] {
  const ask = (request: FitRequest): number => {
    const began = process.cpuUsage();
    let nodes = 0;
    for (const member of members) {
      const answer = member.fits(request);
      if (answer.fits) nodes += answer.nodes;
    }
    if (nodes === 0) throw new Error('the pod fits nowhere');
    return cpuMs(began);
  };
  const known = Array.from({ length: 40 }, (_, shape) => fitRequestOf(benchPod('asks', undefined, shape), 'v'));
  for (const request of known) ask(request);
  const times: number[] = [];
  for (let index = 0; index < QUESTIONS; index++) {
    const request = known[index % known.length];
    const member = members[(index * 37) % members.length];
    if (request === undefined || member === undefined) throw new Error('nothing to ask');
    member.reserve(`pod-${String(index)}`, request);
    times.push(ask(request));
  }
  // Requests that nobody had before, as when every Deployment asks for something else.
  const fresh = Array.from({ length: 200 }, (_, index) => {
    const pod = benchPod('asks', undefined, 1);
    const requests = { cpu: `${String(101 + index)}m`, memory: '300Mi' };
    return ask(
      fitRequestOf({ ...pod, spec: { ...pod.spec, containers: [{ name: 'c', resources: { requests } }] } }, 'v'),
    );
  });
  return [
    withSpread(
      measured('capacity: does a pod fit, all members, p99', quantile(times, 0.99), 'ms', 'lower', 2),
      thirds(times, (all) => quantile(all, 0.99)),
    ),
    withSpread(measured(MEDIAN, median(times), 'ms', 'lower'), thirds(times, median)),
    withSpread(
      measured('capacity: the same for requests nobody had before, median', median(fresh), 'ms', 'lower', 5),
      thirds(fresh, median),
    ),
  ];
}

/** CPU time, garbage collection included: what else runs on the machine does not count. */
function cpuMs(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1_000;
}

function scan(): Measurement {
  const nodes = Array.from({ length: MEMBERS * NODES }, (_, index) => benchNode(`n${String(index)}`, index));
  const free = nodes.map((node) => parseAmounts(node.status?.allocatable));
  const pod = benchPod('asks', undefined, 0);
  const wanted = podRequests(pod);
  const chosen = nodesChosenBy(pod.spec);
  const times = Array.from({ length: 10 }, () => {
    const began = process.cpuUsage();
    let fitting = 0;
    for (const [index, node] of nodes.entries()) {
      if (!chosen(node) || firstUntolerated([], node.spec?.taints ?? []) !== undefined) continue;
      const left = free[index];
      if ([...wanted].every(([name, nanos]) => (left?.get(name) ?? 0n) >= nanos)) fitting += 1;
    }
    if (fitting === 0) throw new Error('the pod fits nowhere');
    return cpuMs(began);
  });
  return asReference(measured(SCAN, median(times), 'ms', 'lower'));
}

/** Bytes of heap for a pod of somebody else: the projection in a cache, and what is noted about it. */
function memory(): Measurement {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const member = memberWith(NODES, 0, 0);
  const project = podProjection('bench');
  const cache = new Map<string, Pod>();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < HELD_PODS; index++) {
    // Parsed from text as from the API server, so that nothing is shared that would not be shared there.
    const raw = JSON.parse(JSON.stringify(heldPod(index))) as Pod;
    const pod = project(raw);
    cache.set(keyOf(pod), pod);
    member.podHandler.added(pod);
  }
  collect();
  const bytes = (process.memoryUsage().heapUsed - before) / HELD_PODS;
  if (cache.size !== HELD_PODS || member.size.pods !== HELD_PODS) throw new Error('pods are missing');
  return measured('capacity: memory for a pod of a member', bytes, 'bytes', 'lower', 614);
}

/** As in real clusters: names with hashes, labels in common with siblings, about 30 pods of a kind. */
function heldPod(index: number): Pod {
  const kind = Math.floor(index / 30);
  const pod = samplePod(index);
  const hash = (kind * 2_654_435_761).toString(36).slice(0, 10);
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      name: `service-${String(kind)}-${hash}-${index.toString(36).padStart(5, 'x')}`,
      namespace: `team-${String(kind % 20)}`,
      uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      resourceVersion: String(1_000_000 + index),
      labels: { app: `service-${String(kind)}`, 'pod-template-hash': hash },
    },
    spec: { ...pod.spec, nodeName: `m0-n${String(index % NODES)}` },
    status: { phase: 'Running' },
  };
}
