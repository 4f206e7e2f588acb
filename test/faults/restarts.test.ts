import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { podCompleteStage, type Stage } from '../../hack/kwok-stages.ts';
import { until } from '../../hack/until.ts';
import {
  describeWrite,
  type Fields,
  isReady,
  newNamespace,
  podsOf,
  podSpec,
  read,
  shell,
  untilRunning,
  writesOf,
} from '../fixtures/live-pods.ts';
import {
  idle,
  inBatches,
  isPodOf,
  Lab,
  MEMBER,
  numbered,
  phaseOf,
  report,
  seconds,
  underVersion,
  wait,
} from './lab.ts';

const PODS = 1_000;
const RESTARTS = 20;
const JOBS = 200;

/** A Job's pod ends when it is told to, with the exit code that it carries. */
const ENDS = {
  go: 'faults.example/go',
  code: 'faults.example/exit-code',
};

describe('the program ends and starts again', () => {
  let lab: Lab;

  beforeAll(async () => {
    lab = await Lab.start({ kwok: { stages: [endStage()] } });
  });
  afterAll(() => lab?.close());

  test('F01: killed and replaced by other versions twenty times, it writes nothing about a thousand healthy pods', async (context) => {
    const steady = await newNamespace(lab.host, 'steady');
    await lab.runPods(steady, numbered(PODS, 'steady'), 300_000);
    await until('nothing is being written any more', async () => {
      const before = await lab.lives(steady);
      await wait(3_000);
      return JSON.stringify(before) === JSON.stringify(await lab.lives(steady));
    });
    const before = await lab.lives(steady);
    const since = Date.now();
    const back: number[] = [];
    for (let round = 0; round < RESTARTS; round++) {
      const began = Date.now();
      if (round % 2 === 0) await lab.crash();
      else await lab.upgrade(underVersion(lab.workspace, round % 4 === 1 ? '99.0.0' : '0.0.1'));
      await lab.works();
      back.push(Date.now() - began);
    }
    expect(await lab.lives(steady)).toEqual(before);
    for (const cluster of [lab.host, lab.member]) {
      expect(writesOf(cluster, since).filter(isPodOf(steady)).map(describeWrite), cluster.name).toEqual([]);
    }
    expect(lab.violations()).toEqual([]);
    back.sort((a, b) => a - b);
    const [median, last] = [back[RESTARTS / 2] ?? 0, back.at(-1) ?? 0];
    const figures =
      `${RESTARTS} restarts (10 kill -9, 10 changes of version), ${PODS} pods: 0 writes, all UIDs and versions the same; ` +
      `a new pod ran ${seconds(median)} after the end of the former process (median; longest ${seconds(last)})`;
    report(context, ['F01'], 'no pod touched', figures);
  }, 1_200_000);

  /** Starts it with changes to how, does something, and starts it as it was. */
  async function startedWith(change: { env?: NodeJS.ProcessEnv; logFile?: string }, act: () => Promise<void>) {
    const { spec } = lab.spillway.process;
    const former = { env: spec.env ?? process.env, logFile: spec.logFile };
    await lab.crash(() => Promise.resolve(Object.assign(spec, change)));
    try {
      await act();
      expect(lab.spillway.process.running).toBe(true);
    } finally {
      await lab.crash(() => Promise.resolve(Object.assign(spec, former)));
    }
  }

  test('F06 F10: a small heap, and a full disk', async (context) => {
    const steady = 'steady';
    const before = await lab.lives(steady);
    const since = Date.now();
    const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
    let [small, made] = ['', 0];
    await startedWith({ env: { ...process.env, NODE_OPTIONS: '--max-old-space-size=64' } }, async () => {
      for (; made < 5; made++) await lab.works();
      small = mebibytes(lab.spillway.process.usage()?.rssBytes ?? 0);
    });
    report(context, ['F06'], 'works', `RSS ${small} with ${PODS} pods and 64 MiB of heap; ${made} new pods ran`);
    await startedWith({ logFile: '/dev/full' }, async () => {
      await lab.works();
      await lab.works();
    });
    report(
      context,
      ['F10'],
      'works',
      'every line of the log fails with ENOSPC; new pods run. Nothing else is written to disks',
    );
    expect(await lab.lives(steady)).toEqual(before);
    const writes = [...writesOf(lab.host, since), ...writesOf(lab.member, since)].filter(isPodOf(steady));
    expect(writes.map(describeWrite)).toEqual([]);
    expect(lab.violations()).toEqual([]);
  }, 300_000);

  test('F11: two hundred Jobs end while the host API and the program are down: exact exit codes, none runs again', async (context) => {
    const jobs = await newNamespace(lab.host, 'jobs');
    const code = (index: number): number => (index % 3 === 0 ? 0 : index % 200);
    await inBatches(numbered(JOBS, 'job'), async (name) => {
      const annotations = { [ENDS.code]: String(code(Number(name.slice(4)))) };
      const spec = podSpec([shell('exit 0')], { restartPolicy: 'Never' });
      const job: Fields = {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name, namespace: jobs },
        spec: { backoffLimit: 0, template: { metadata: { annotations }, spec } },
      };
      await lab.host.api.call('POST', `/apis/batch/v1/namespaces/${jobs}/jobs`, job);
    });
    const running = async (): Promise<boolean> =>
      (await podsOf(lab.host, jobs)).filter((pod) => phaseOf(pod) === 'Running').length === JOBS;
    await until('all Jobs run', running, { timeoutMs: 120_000, intervalMs: 500 });
    const uids = new Map((await podsOf(lab.host, jobs)).map(({ metadata }) => [metadata.uid, metadata.name]));

    const server = lab.host.component('kube-apiserver');
    await lab.spillway.process.stop('SIGKILL');
    await server.stop('SIGKILL');
    const since = Date.now();
    await inBatches(await podsOf(lab.member, jobs), ({ metadata }) =>
      lab.member.api.call('PATCH', `/api/v1/namespaces/${jobs}/pods/${metadata.name}`, {
        metadata: { annotations: { [ENDS.go]: 'now' } },
      }),
    );
    const over = async (cluster: Lab['host']): Promise<boolean> =>
      (await podsOf(cluster, jobs)).filter((pod) => /Succeeded|Failed/.test(phaseOf(pod))).length === JOBS;
    await until('all have ended in the member', async () => await over(lab.member), { timeoutMs: 60_000 });
    server.restart();
    await lab.host.whenReady();
    lab.spillway.process.restart();
    const began = Date.now();
    await until('the host knows how all ended', async () => await over(lab.host), {
      timeoutMs: 120_000,
      intervalMs: 250,
    });
    const took = Date.now() - began;

    const pods = await podsOf(lab.host, jobs);
    expect(new Map(pods.map(({ metadata }) => [metadata.uid, metadata.name]))).toEqual(uids);
    for (const { metadata, status } of pods) {
      const wanted = Number(metadata.annotations?.[ENDS.code]);
      const seen = status?.containerStatuses?.[0]?.state?.terminated?.exitCode;
      expect([metadata.name, status?.phase, seen]).toEqual([
        metadata.name,
        wanted === 0 ? 'Succeeded' : 'Failed',
        wanted,
      ]);
    }
    expect(
      writesOf(lab.member, since)
        .filter(({ verb }) => verb === 'create')
        .filter(isPodOf(jobs)),
    ).toEqual([]);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F11'],
      'exit codes exact, none run again',
      `${JOBS} of ${JOBS} Jobs; 0 pods created; all known ${seconds(took)} after the host came back`,
    );
  }, 600_000);

  // Last: the host marks pods of a Node that is silent so long.
  test('F04 F07: it stands still, for 20 s and for two minutes', async (context) => {
    const still = await newNamespace(lab.host, 'still');
    await lab.runPods(still, numbered(20, 'still'));
    const below = async (): Promise<unknown[]> =>
      (await podsOf(lab.member, still)).map(({ metadata }) => [metadata.name, metadata.uid, metadata.resourceVersion]);
    const above = async (): Promise<unknown[]> =>
      (await podsOf(lab.host, still)).map(({ metadata }) => [metadata.name, metadata.uid]);
    const ready = async (): Promise<string> => {
      const node = await read<{ status: { conditions: { type: string; status: string }[] } }>(
        lab.host,
        `/api/v1/nodes/${MEMBER}`,
      );
      return node?.status.conditions.find(({ type }) => type === 'Ready')?.status ?? '';
    };
    const [membersBefore, hostBefore] = [await below(), await above()];
    lab.spillway.process.signal('SIGSTOP');
    const answers = new Set<string>();
    for (const began = Date.now(); Date.now() < began + 20_000; await wait(500)) answers.add(await ready());
    lab.spillway.process.signal('SIGCONT');
    await lab.works();
    expect([...answers]).toEqual(['True']);
    report(context, ['F07'], 'not noticed', 'the Node was Ready all the time; 20 of 20 pods untouched');

    lab.spillway.process.signal('SIGSTOP');
    const began = Date.now();
    await lab.host.apply([idle('meanwhile', still)]);
    await until('the Node is given up', async () => (await ready()) !== 'True', { timeoutMs: 110_000 });
    const given = Date.now() - began;
    await wait(120_000 - given);
    const awake = Date.now();
    lab.spillway.process.signal('SIGCONT');
    await until('the Node is Ready again', async () => (await ready()) === 'True', { timeoutMs: 60_000 });
    const back = Date.now() - awake;
    await untilRunning(lab.host, still, 'meanwhile', { timeoutMs: 60_000 });
    await until('all pods are ready again', async () => (await podsOf(lab.host, still)).every(isReady), {
      timeoutMs: 60_000,
    });
    expect((await above()).filter((one) => !String(one).startsWith('meanwhile'))).toEqual(hostBefore);
    expect((await below()).filter((one) => !String(one).startsWith('meanwhile'))).toEqual(membersBefore);
    expect(lab.violations()).toEqual([]);
    report(
      context,
      ['F04'],
      'Node NotReady, then Ready; no pod touched',
      `given up by the host after ${seconds(given)}, Ready ${seconds(back)} after SIGCONT; 20 of 20 member pods unchanged`,
    );
  }, 400_000);
});

/** Replaces the stage that ends pods of Jobs at once. */
function endStage(): Stage {
  return podCompleteStage(
    { key: `.metadata.annotations["${ENDS.go}"]`, operator: 'Exists' },
    {
      next: {
        statusTemplate: `
{{ $now := Now }}
{{ $began := or .status.startTime $now }}
{{ $code := index .metadata.annotations "${ENDS.code}" }}
{{ if eq $code "0" }}
phase: Succeeded
{{ else }}
phase: Failed
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated: {exitCode: {{ $code }}, reason: Ended, startedAt: {{ $began | Quote }}, finishedAt: {{ $now | Quote }}}
{{ end }}
`,
      },
    },
  );
}
