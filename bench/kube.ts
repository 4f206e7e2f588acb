import { Bench } from 'tinybench';
import type { Say } from '../hack/progress.ts';
import type { Pod } from '../src/kube/core-v1.ts';
import { WatchDecoder } from '../src/kube/watch-decoder.ts';
import { WorkQueue } from '../src/kube/workqueue.ts';
import { decide, type PodFacts } from '../src/pods/decide.ts';
import { hostStatus } from '../src/pods/host-status.ts';
import { isApplied } from '../src/pods/applied.ts';
import { translatePod, type TranslateContext } from '../src/pods/translate.ts';
import { asReference, measured, median, type Measurement, type SuiteReport, withSpread } from './measurement.ts';
import { eachLine } from './plain-api.ts';
import { samplePod } from './sample-pod.ts';
import { compareTransports } from './transport.ts';

/** Watch events in one piece of work for the decoders, cut into pieces as a socket hands them out. */
const EVENTS = 500;
const CHUNK = 64 * 1024;

/** Small measurements of single parts, in this very process. */
export async function kube(say: Say): Promise<SuiteReport> {
  const measurements: Measurement[] = [];
  measurements.push(...(await compareTransports(say)));
  measurements.push(...(await parts()));
  measurements.push(await workQueue());
  return {
    suite: 'kube',
    failures: [],
    measurements,
    notes: [
      `Single parts in one process; medians. The sample pod has ${JSON.stringify(samplePod(0)).length} bytes of JSON. ` +
        'The transport speaks plain HTTP to a server in a process of its own; TLS would cost both clients the same.',
    ],
  };
}

async function parts(): Promise<Measurement[]> {
  const bench = new Bench({ time: 1_000, warmupTime: 300 });
  const chunks = watchChunks();
  let seen = 0;
  bench.add('decode', () => {
    const decoder = new WatchDecoder();
    for (const chunk of chunks) decoder.push(chunk, () => (seen += 1));
  });
  bench.add('plain decode', () => {
    let rest: Buffer | undefined;
    for (const chunk of chunks) {
      rest = eachLine(rest, chunk, (line) => {
        if (JSON.parse(line.toString()) !== null) seen += 1;
      });
    }
  });

  // Objects are parsed anew each time: what is remembered of an object must not make the work look cheaper than it is.
  const context = translateContext();
  const hostPod = samplePod(0);
  const translated = translatePod(hostPod, context);
  if (translated.kind !== 'pod') throw new Error(`the sample pod is refused: ${translated.message}`);
  const hostText = JSON.stringify(hostPod);
  const memberText = JSON.stringify(runningMemberPod(translated.pod));
  const parse = (text: string): Pod => JSON.parse(text) as Pod;
  bench.add('parse host', () => parse(hostText));
  bench.add('translate', () => translatePod(parse(hostText), context));
  bench.add('parse both', () => [parse(hostText), parse(memberText)]);
  bench.add('decide', () => decide(parse(hostText), parse(memberText), podFacts(context)));
  const decision = decide(parse(hostText), parse(memberText), podFacts(context));
  if (decision.do !== 'patch-status') throw new Error(`expected a status patch, decided to ${decision.do}`);
  await bench.run();

  const micros = (task: string): number => {
    const result = bench.getTask(task)?.result;
    if (result === undefined || !('latency' in result)) throw new Error(`no result for ${task}`);
    return result.latency.p50 * 1000;
  };
  if (seen === 0) throw new Error('no watch event was decoded');
  const decoded = micros('decode') / EVENTS;
  const plain = micros('plain decode') / EVENTS;
  return [
    measured('kube: watch event decode against JSON.parse', decoded / plain, 'ratio', 'lower', 2),
    measured('kube: watch event decode', decoded, 'us/event', 'lower'),
    asReference(measured('kube: watch event decode by JSON.parse', plain, 'us/event', 'lower')),
    measured('pods: translate one pod', micros('translate') - micros('parse host'), 'us', 'lower', 200),
    measured(
      'pods: decide upon one pod, status patch included',
      micros('decide') - micros('parse both'),
      'us',
      'lower',
      200,
    ),
  ];
}

function watchChunks(): Buffer[] {
  const lines = Array.from(
    { length: EVENTS },
    (_, index) => `${JSON.stringify({ type: 'MODIFIED', object: samplePod(index) })}\n`,
  );
  const bytes = Buffer.from(lines.join(''));
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += CHUNK) chunks.push(bytes.subarray(at, at + CHUNK));
  return chunks;
}

function translateContext(): TranslateContext {
  return {
    hostId: 'abcdef0123456789',
    nodeName: 'member',
    member: 'member',
    memberNamespace: 'bench',
    serviceEnv: [
      { name: 'KUBERNETES_SERVICE_HOST', value: '10.96.0.1' },
      { name: 'KUBERNETES_SERVICE_PORT', value: '443' },
    ],
  };
}

function podFacts(context: TranslateContext): PodFacts {
  const { member, hostId, nodeName } = context;
  const now = '2026-01-01T00:00:05Z';
  return {
    member,
    hostId,
    nodeName,
    reachable: true,
    ignored: () => false,
    hostDeletionSeen: () => false,
    outdated: (hostPod, memberPod) => !isApplied(hostPod, memberPod),
    hostAnnotations: () => ({}),
    hostStatus: (hostPod, memberPod) =>
      hostStatus(hostPod, memberPod, { member, network: 'Flat', inSync: isApplied(hostPod, memberPod) }, now),
    now,
  };
}

/** The copy as the member reports it once it runs. */
function runningMemberPod(pod: Pod): Pod {
  const at = '2026-01-01T00:00:04Z';
  const types = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'];
  return {
    ...pod,
    metadata: { ...pod.metadata, uid: 'member-uid', resourceVersion: '20', generation: 1 },
    status: {
      phase: 'Running',
      startTime: at,
      podIP: '10.128.0.7',
      podIPs: [{ ip: '10.128.0.7' }],
      conditions: types.map((type) => ({ type, status: 'True', lastTransitionTime: at })),
      containerStatuses: pod.spec.containers.map(({ name, image = '' }) => ({
        name,
        image,
        imageID: '',
        ready: true,
        started: true,
        restartCount: 0,
        state: { running: { startedAt: at } },
      })),
    },
  };
}

/** What queueing one key and starting its handler costs. */
async function workQueue(): Promise<Measurement> {
  const keys = Array.from({ length: 100_000 }, (_, index) => `bench/pod-${index}`);
  const rounds: number[] = [];
  for (let round = 0; round < 5; round++) {
    let left = keys.length;
    const stop = new AbortController();
    const queue = new WorkQueue({
      name: 'bench',
      concurrency: 16,
      handler: async () => {
        left -= 1;
        if (left === 0) stop.abort();
      },
    });
    const before = process.cpuUsage();
    for (const key of keys) queue.add(key);
    await queue.run(stop.signal);
    const { user, system } = process.cpuUsage(before);
    rounds.push((user + system) / keys.length);
  }
  return withSpread(measured('kube: work queue, one key', median(rounds), 'us', 'lower', 20), rounds);
}
