import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { manifest } from '../../hack/manifest.ts';
import { until } from '../../hack/until.ts';
import type { WorkloadMigration } from '../../src/api/workload-migration.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { counted } from '../../src/kube/counted.ts';
import type { PersistentVolumeClaim } from '../../src/kube/volumes.ts';
import { eventsOf, type Fields, isReady, kubectl, podsOf, read } from '../fixtures/live-pods.ts';
import { GuideShell } from '../fixtures/guide-shell.ts';
import { Guide } from '../fixtures/guide.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';
import { diskClass, startProvisioner } from '../fixtures/provisioner.ts';
import { fewestReady } from '../fixtures/ready-count.ts';
import { burstSpec, deployment, policyInUse, settled, whereAre } from '../fixtures/scheduling.ts';
import { isReleased, MovesHarness } from './moves-harness.ts';

/** Workloads leave a member on demand: all that is meant, or nothing. */
let m: MovesHarness;
let host: Cluster;
let namespace = '';
/** What the pages have people type, which is done here as it stands there. */
const guide = new Guide('docs/guides/drain-and-migrate.md');
const failover = new Guide('docs/concepts/failover.md');
let shell: GuideShell;
beforeAll(async () => {
  m = await MovesHarness.start('migrated');
  ({ host } = m);
  shell = new GuideShell(host, []);
});
afterAll(async () => {
  await m?.close();
});
beforeEach(async () => {
  namespace = await m.begin();
});
afterEach(async () => {
  await m.end();
});

async function move(...words: string[]) {
  return await kubectlSpillway(host, ['move', '-n', namespace, '--from', 'east', '--to', 'west', ...words], {
    timeoutMs: 110_000,
  });
}

async function stored(): Promise<WorkloadMigration[]> {
  const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/workloadmigrations`;
  return (await read<{ items: WorkloadMigration[] } & WorkloadMigration>(host, path))?.items ?? [];
}

/** Of the only migration that there is, once its condition Complete has that reason. */
async function untilState(reason: string): Promise<WorkloadMigration> {
  return await until(`the migration is ${reason}`, async () => {
    const [only, ...others] = await stored();
    const complete = only?.status?.conditions?.find(({ type }) => type === 'Complete');
    if (others.length > 0) throw new Error('there are several');
    if (complete?.reason === reason) return only;
    throw new Error(`it is ${JSON.stringify(complete)}`);
  });
}

/** As the page has it, in the namespace of this test. */
const inOurs = (script: string): string => script.replaceAll('-n shop', `-n ${namespace}`);

/** What is left is judged in several looks, seconds apart: what would be begun has been by then. */
async function lookedAtAgain() {
  const { stdout } = await move('deployment/web', '--dry-run=server');
  const released = namesOf((await m.pods()).filter(isReleased));
  return { report: stdout.split('\n')[1], released, evicted: evicted() };
}

/** Each new pod is Ready as soon as it is there, until they are so. */
async function openUntil(wanted: Record<string, number>): Promise<void> {
  const total = Object.values(wanted).reduce((all, one) => all + one, 0);
  await until(`they are ${JSON.stringify(wanted)}`, async () => {
    for (const pod of await m.ungated()) await m.open(pod);
    const all = await m.pods();
    const are = Object.entries(wanted).every(([place, count]) => whereAre(all)[place] === count);
    return are && all.length === total && all.every(isReady);
  });
}

const evicted = (): string[] => m.evictions().map(({ objectRef }) => objectRef?.name ?? '');
const namesOf = (pods: readonly Pod[]): string[] => pods.map(({ metadata: { name } }) => name).toSorted();

describe('the commands of the guide', () => {
  const [dryRun = '', moved = ''] = guide.fenced('');
  const [rules = ''] = guide.fenced('yaml');
  const nameless = (text: string): string => text.replaceAll(/web-[0-9a-f]{6}/g, 'web-x');

  async function are(places: Record<string, number>): Promise<void> {
    await settled(host, namespace, 'web', places);
  }
  async function scaled(replicas: number, places: Record<string, number>): Promise<void> {
    await kubectl(host, ['scale', 'deployment', 'web', '-n', namespace, `--replicas=${String(replicas)}`]);
    await are(places);
  }

  /** The namespace, the policy and the Deployment that the guide speaks of; what gives its pods the toleration comes with an installation. */
  beforeEach(async () => {
    await host.apply(manifest('admission/pod-defaults.yaml'));
    await shell.paste(guide.script('kubectl create namespace shop'));
    namespace = m.inNamespace('shop');
    await until('pods get the toleration', async () => {
      const probe = await shell.tryTo('kubectl run probe -n shop --image=nginx --dry-run=server -o yaml');
      return probe.stdout.includes('spillway.dev/virtual-node');
    });
    writeFileSync(join(shell.dir, 'policy.yaml'), rules);
    await shell.paste(guide.script('kubectl apply -f policy.yaml'));
    await are({ east: 3 });
  }, 120_000);
  afterEach(async () => {
    await kubectl(host, ['delete', '-f', '-'], { input: manifest('admission/pod-defaults.yaml') });
  });

  test('move a workload to west and back, empty east in order and at once, and let it take pods again', async () => {
    const look = guide.script('kubectl spillway move deployment/web -n shop --from east --to west --dry-run=server');
    expect(nameless(await shell.paste(look))).toBe(nameless(dryRun));
    expect([await stored(), m.evictions()]).toEqual([[], []]);
    const go = guide.script('kubectl spillway move deployment/web -n shop --from east --to west --wait');
    expect(nameless(await shell.paste(go))).toBe(nameless(moved));
    await are({ west: 3 });
    await shell.paste(guide.script('kubectl spillway move deployment/web -n shop --from west --to east --wait'));
    await are({ east: 3 });
    await shell.paste(guide.script('kubectl spillway move --all -n shop --from east --to west --wait'));
    await are({ west: 3 });
    // Later ones go where the policy wants them.
    await scaled(4, { east: 1, west: 3 });

    await shell.paste(guide.script('kubectl taint node east spillway.dev/drain:NoSchedule'));
    await are({ west: 4 });
    await shell.paste(guide.script('kubectl get events -A --field-selector reason=DrainedPodHeld'));
    await shell.paste(guide.script('kubectl taint node east spillway.dev/drain-'));
    await scaled(5, { east: 1, west: 4 });
    await shell.paste(guide.script('kubectl taint node -l spillway.dev/member=east spillway.dev/drain:NoSchedule'));
    await are({ west: 5 });
    await shell.paste(guide.script('kubectl taint node -l spillway.dev/member=east spillway.dev/drain-'));
    await scaled(6, { east: 1, west: 5 });

    expect(await shell.paste(guide.script('kubectl spillway drain east'))).toMatch(/^membercluster\/east drained$/m);
    await are({ west: 6 });
    const there = await shell.paste(failover.script('kubectl get pods -A --field-selector spec.nodeName=east'));
    expect(there).not.toMatch(/^shop /m);
    await shell.paste(guide.script('kubectl spillway uncordon east'));
    await scaled(7, { east: 1, west: 6 });
    const back = await shell.paste(failover.script('kubectl spillway rebalance deployment/web -n shop'));
    expect(back).toMatch(/^deployment\/web: 6 pods would be moved$/m);
    const ofMoves = failover.script(
      "kubectl get workloadplacement deployment-web -n shop -o jsonpath='{.status.moves}'",
    );
    expect(await shell.paste(ofMoves)).not.toBe('');
    await shell.paste(failover.script('kubectl get events -n shop --field-selector reason=MoveWanted'));
    await shell.paste(failover.script('kubectl get pods -A -o '));
  }, 240_000);
});

test('all moves are stopped, and let go on, by the commands of the page', async () => {
  const [stop = '', goOn = ''] = failover.commands('kubectl annotate lease spillway-descheduler');
  const isSaid = async (): Promise<boolean> => {
    return (await shell.tryTo('kubectl spillway status')).stdout.includes('INC-7, Anna');
  };
  await shell.paste(stop);
  await until('it is said', isSaid);
  await shell.paste(goOn);
  await until('it is not said any more', async () => !(await isSaid()));
});

describe('kubectl spillway move', () => {
  interface Counted {
    status?: { hard?: object };
  }

  test('brings three pods from east, which comes first, to west, three Ready all the time; a dry run only says that they fit', async () => {
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 3, '100m')]);
    await settled(host, namespace, 'web', { east: 3 });
    const dry = await move('deploy/web', '--dry-run=server');
    expect(dry.stdout).toMatch(
      /^workloadmigration\.spillway\.dev\/web-[0-9a-f]{6} created \(server dry run\)\ndeployment\/web: 3 pods: Fits\n$/,
    );
    expect([dry.code, await stored(), m.evictions(), m.writes('patch')]).toEqual([0, [], [], []]);
    let done = dry;
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      done = await move('--all', '--wait', '--timeout', '90');
      await settled(host, namespace, 'web', { west: 3 });
    });
    expect(fewest).toBe(3);
    expect(done.stdout.split('\n').slice(1)).toEqual([
      'deployment/web: 3 pods: Fits',
      'deployment/web: 3 of 3 pods moved',
      '',
    ]);
    expect(done.code).toBe(0);
    expect(m.evictions()).toHaveLength(3);
    // It is over: the policy alone says where the next one goes.
    await kubectl(host, ['scale', 'deployment', 'web', '-n', namespace, '--replicas=4']);
    await settled(host, namespace, 'web', { east: 1, west: 3 });
  });

  test('moves nothing, and says what does not fit, when west is too small for all of them', async () => {
    const onWest = { nodeSelector: { 'spillway.dev/member': 'west' } };
    await host.apply([deployment(namespace, 'filler', 2, '6', {}, onWest)]);
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 3, '2')]);
    await settled(host, namespace, 'web', { east: 3 });
    await settled(host, namespace, 'filler', { west: 2 });
    const { code, stdout, stderr } = await move('deployment/web');
    expect(code).toBe(5);
    expect(stdout.split('\n')[1]).toMatch(
      /^deployment\/web: 3 pods: DoesNotFit: a place for 2 of 3 pods \(member west: .*cpu/,
    );
    expect(stderr).toMatch(
      /^error: nothing was moved, as not all of it fits\nreason: 1 workload of 1: deployment\/web: .*\nfix: by what the reason says make room/m,
    );
    expect([m.evictions(), m.writes('patch')]).toEqual([[], []]);
    expect(whereAre(await m.pods())).toEqual({ east: 3 });
  });

  test('moves nothing, and says which quota is in the way, when the namespace in west has one that is too small', async () => {
    const west = m.topology.member('west').cluster;
    const labels = { 'spillway.dev/allow-host': 'any' };
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few', namespace } };
    await west.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
      { ...quota, spec: { hard: { 'requests.cpu': '250m' } } },
    ]);
    const quotaPath = `/api/v1/namespaces/${namespace}/resourcequotas/few`;
    await until('it is counted', async () => (await read<Counted>(west, quotaPath))?.status?.hard !== undefined);
    await m.inUse(m.rules());
    await host.apply([deployment(namespace, 'web', 3, '100m')]);
    await settled(host, namespace, 'web', { east: 3 });
    const { code, stdout, stderr } = await move('deployment/web');
    expect([code, stdout.split('\n')[1]]).toEqual([
      5,
      'deployment/web: 3 pods: DoesNotFit: a place for 2 of 3 pods (member west: quota few: 100m requests.cpu wanted, 50m left)',
    ]);
    expect(stderr).toMatch(/^reason: 1 workload of 1: deployment\/web: .*quota few/m);
    expect([m.evictions(), m.writes('patch'), await podsOf(west, namespace)]).toEqual([[], [], []]);
    expect(whereAre(await m.pods())).toEqual({ east: 3 });
  });

  test('stopped half way: what has begun is finished, and nothing more begins, also after a crash', async () => {
    await m.inUse(m.rules());
    await m.gatedAreReady(3);
    expect(await move('deployment/web')).toMatchObject({ code: 0 });
    const { metadata } = await m.released();
    await m.crash();
    await m.comeBack();
    await until('it is found', async () => (await m.metrics()).includes('spillway_descheduler_released_pods 1'));
    expect((await untilState('Progressing')).status?.finishTime).toBeUndefined();
    await shell.paste(inOurs(guide.script('kubectl delete workloadmigrations --all')));
    await openUntil({ east: 2, west: 1 });
    expect(await lookedAtAgain()).toEqual({
      report: 'deployment/web: 2 pods: Fits',
      released: [],
      evicted: [metadata.name],
    });
  });

  test('killed when the first of three is evicted, and started again: it goes on with what was judged, and each goes once', async () => {
    await m.inUse(m.rules());
    await m.gatedAreReady(3);
    const names = namesOf(await m.pods());
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      expect(await move('deployment/web')).toMatchObject({ code: 0 });
      const { metadata } = await m.released();
      const judged = await untilState('Progressing');
      for (const pod of await m.ungated()) await m.open(pod);
      await until('it is evicted', () => evicted().includes(metadata.name), { intervalMs: 20 });
      await m.crash();
      expect(evicted()).toEqual([metadata.name]);
      await m.comeBack();
      await openUntil({ west: 3 });
      const { status } = await untilState('Moved');
      expect(status?.workloads).toEqual([
        expect.objectContaining({ pods: 3, waiting: 0, moving: 0, moved: 3, reason: 'Moved' }),
      ]);
      const fits = judged.status?.conditions?.find(({ type }) => type === 'Fits');
      expect(status?.conditions).toContainEqual(fits);
    });
    expect(fewest).toBe(3);
    expect(evicted().toSorted()).toEqual(names);
  });

  test('suspended under way nothing more begins; not suspended any more it goes on to the end', async () => {
    await m.inUse(m.rules());
    await m.gatedAreReady(2);
    const names = namesOf(await m.pods());
    const fewest = await fewestReady(host, namespace, 'web', async () => {
      expect(await move('deployment/web')).toMatchObject({ code: 0 });
      const first = (await m.released()).metadata.name;
      const suspend = async ({ metadata: { name } }: WorkloadMigration, is: boolean): Promise<void> => {
        const page = inOurs(guide.script('kubectl patch workloadmigration web-90ab12'));
        await shell.paste(page.replace('web-90ab12', name).replace('true', String(is)));
      };
      await suspend(await untilState('Progressing'), true);
      const suspended = await untilState('Suspended');
      expect(suspended.status?.finishTime).toBeUndefined();
      // What has begun is finished.
      await openUntil({ east: 1, west: 1 });
      expect(await lookedAtAgain()).toEqual({ report: 'deployment/web: 1 pod: Fits', released: [], evicted: [first] });
      await untilState('Suspended');
      await suspend(suspended, false);
      await openUntil({ west: 2 });
      const { status } = await untilState('Moved');
      expect(status?.workloads).toEqual([expect.objectContaining({ pods: 1, moved: 1, reason: 'Moved' })]);
    });
    expect(fewest).toBe(2);
    expect(evicted().toSorted()).toEqual(names);
  });

  describe('what has no place', () => {
    /** Pods that say this of the nodes of a member. */
    function picky(name: string, replicas: number, constraints: Fields): Fields {
      const labels = { app: name };
      const annotations = { 'spillway.dev/member-constraints': JSON.stringify(constraints) };
      const { tolerations: own = [], ...spec } = burstSpec('100m');
      const tolerations = [...(own as Fields[]), ...((constraints['tolerations'] ?? []) as Fields[])];
      const template = { metadata: { labels, annotations }, spec: { ...spec, tolerations } };
      return deployment(namespace, name, replicas, '100m', { template });
    }

    /** The whole answer: each workload with its pods, and what is against it. */
    async function refused(
      words: readonly string[],
      found: Readonly<Record<string, readonly [pods: number, reason?: string, why?: string]>>,
    ): Promise<void> {
      const { code, stdout, stderr } = await move(...words);
      const entries = Object.entries(found);
      const lines = entries.map(([name, [count, reason = 'Fits', why]]) => {
        return `deployment/${name}: ${counted(count, 'pod')}: ${reason}${why === undefined ? '' : `: ${why}`}`;
      });
      expect([code, stdout.split('\n').slice(1)]).toEqual([5, [...lines, '']]);
      const against = entries.filter(([, [, reason]]) => reason !== undefined);
      const list = against.map(([name, [, , why = '']]) => `deployment/${name}: ${why}`).join('; ');
      const told = stderr.split('\n').filter((line) => /^(error|reason): /.test(line));
      expect(told).toEqual([
        'error: nothing was moved, as not all of it fits',
        `reason: ${counted(against.length, 'workload')} of ${String(entries.length)}: ${list}`,
      ]);
    }

    test('for want of a node with its labels, or of one without a taint, is named, and nothing is changed', async () => {
      const [east, west] = ['east', 'west'].map((name) => m.topology.member(name).cluster) as [Cluster, Cluster];
      const roomOfWest = async (cpu: string): Promise<void> => {
        await until(`west has ${cpu} CPUs`, async () => {
          const node = await read<Node>(host, '/api/v1/nodes/west');
          return node?.status?.allocatable?.['cpu'] === cpu;
        });
      };
      await kubectl(east, ['label', 'node', 'kwok-0', 'disk=ssd', 'gpu=yes']);
      await kubectl(west, ['label', 'node', 'kwok-0', 'gpu=yes']);
      await kubectl(west, ['taint', 'node', 'kwok-0', 'dedicated=db:NoSchedule']);
      try {
        await roomOfWest('8');
        await m.inUse(m.rules());
        await host.apply([
          picky('disk', 2, { nodeSelector: { disk: 'ssd' }, tolerations: [{ key: 'dedicated', operator: 'Exists' }] }),
          picky('gpu', 1, { nodeSelector: { gpu: 'yes' } }),
          deployment(namespace, 'web', 1, '100m'),
        ]);
        await settled(host, namespace, 'disk', { east: 2 });
        await settled(host, namespace, 'gpu', { east: 1 });
        await settled(host, namespace, 'web', { east: 1 });
        const uids = async () => (await podsOf(host, namespace)).map(({ metadata: { uid = '' } }) => uid).toSorted();
        const before = await uids();
        const unlike = (count: string): string => `${count}: does not match the pod's node selector or affinity`;
        const tainted = '1 node: untolerated taint dedicated=db:NoSchedule';
        const lists = {
          disk: `a place for 0 of 2 pods (member west: ${unlike('2 nodes')} (no node can be used))`,
          gpu: `a place for 0 of 1 pod (member west: ${unlike('1 node')}, ${tainted} (no node can be used))`,
        };
        // While one is not over no second one of the same is made.
        await refused(['deployment/disk'], { disk: [2, 'DoesNotFit', lists.disk] });
        await refused(['deployment/gpu'], { gpu: [1, 'DoesNotFit', lists.gpu] });
        await refused(['--all'], { disk: [2, 'DoesNotFit', lists.disk], gpu: [1, 'DoesNotFit', lists.gpu], web: [1] });
        expect([m.evictions(), m.writes('patch'), await podsOf(west, namespace)]).toEqual([[], [], []]);
        expect(await uids()).toEqual(before);
      } finally {
        await kubectl(west, ['taint', 'node', 'kwok-0', 'dedicated-']);
        for (const cluster of [east, west]) await kubectl(cluster, ['label', 'node', 'kwok-0', 'disk-', 'gpu-']);
        await roomOfWest('16');
      }
    });

    test('as its claim is bound in east, is named, and nothing is changed; with --leave-unmovable it alone stays', async () => {
      const [east, west] = ['east', 'west'].map((name) => m.topology.member(name).cluster) as [Cluster, Cluster];
      const member = '/apis/spillway.dev/v1alpha1/memberclusters/east';
      const disks = startProvisioner(east);
      await east.apply([diskClass('disk')]);
      const storage = { classes: [{ host: 'spillway', member: 'disk' }] };
      await host.api.call('PATCH', member, { spec: { storage } });
      try {
        await m.inUse(m.rules());
        await host.apply([
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { name: 'data', namespace },
            spec: {
              accessModes: ['ReadWriteOnce'],
              resources: { requests: { storage: '1Gi' } },
              storageClassName: 'spillway',
            },
          },
          deployment(
            namespace,
            'store',
            1,
            '100m',
            {},
            { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
          ),
          deployment(namespace, 'web', 1, '100m'),
        ]);
        const [store] = await settled(host, namespace, 'store', { east: 1 });
        await settled(host, namespace, 'web', { east: 1 });
        const claimPath = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/data`;
        expect((await read<PersistentVolumeClaim>(east, claimPath))?.status?.phase).toBe('Bound');
        const why = '1 pod in member east: it uses claims, and its data are there';
        await refused(['--all'], { store: [1, 'Unmovable', why], web: [1] });
        expect([m.evictions(), m.writes('patch'), await podsOf(west, namespace)]).toEqual([[], [], []]);
        const left = await move('--all', '--leave-unmovable', '--wait', '--timeout', '90');
        expect([left.code, left.stdout.split('\n').slice(1)]).toEqual([
          0,
          [
            `deployment/store: 1 pod: LeftBehind: ${why}`,
            'deployment/web: 1 pod: Fits',
            `deployment/store: 0 of 1 pod moved (LeftBehind: ${why})`,
            'deployment/web: 1 of 1 pod moved',
            '',
          ],
        ]);
        await settled(host, namespace, 'web', { west: 1 });
        const [still] = await settled(host, namespace, 'store', { east: 1 });
        expect(still?.metadata.uid).toBe(store?.metadata.uid);
      } finally {
        await kubectl(host, ['delete', 'deployment', 'store', '-n', namespace]);
        await kubectl(host, ['delete', 'pvc', 'data', '-n', namespace, '--wait=false']);
        await host.api.call('PATCH', member, { spec: { storage: null } });
        await disks.close();
      }
    });
  });
});

describe('moves of one workload are stopped by the commands of the page', () => {
  /** Of the page: which policy decides, that it stops, and that it lets them go on. */
  const [ask = '', stop = '', goOn = ''] = failover.commands(
    "kubectl get workloadplacement deployment-web -n shop -o jsonpath='{.status.policy",
  );

  /** As it stands there, but for the namespace and the policy of this test. */
  async function asWritten(command: string): Promise<string> {
    return await shell.paste(inOurs(command).replace('placementpolicy web', 'placementpolicy all'));
  }

  async function drained(how: ':NoSchedule' | '-'): Promise<void> {
    await host.kubectl(['taint', 'node', 'east', `spillway.dev/drain${how}`]);
  }

  test('a drain and a WorkloadMigration leave its pods, those of another policy go; then both go on', async () => {
    const { spec, ...rest } = m.rules();
    const other = { ...rest, metadata: { name: 'other', namespace }, spec: { ...(spec as Fields) } };
    Object.assign(other.spec, { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'other' }] });
    await m.inUse(m.rules(), other);
    await policyInUse(host, namespace, 'other');
    await host.apply(['web', 'other'].map((name) => deployment(namespace, name, 2, '100m')));
    const before = namesOf(await settled(host, namespace, 'web', { east: 2 }));
    await settled(host, namespace, 'other', { east: 2 });
    await until('it is written down which policy decides', async () => {
      return (await asWritten(ask)) === 'PlacementPolicy/all';
    });

    await asWritten(stop);
    const stopped = Date.now();
    await until('the look after it is over', () => Date.now() - stopped > 5_000);
    await drained(':NoSchedule');
    try {
      // Its turn would have come as well by then.
      await settled(host, namespace, 'other', { west: 2 });
      await until('it is told', async () =>
        (await eventsOf(host, namespace, before[0] ?? '')).some(
          ({ reason, message }) => reason === 'DrainedPodHeld' && message.endsWith('its policy says purgeMode: Never'),
        ),
      );
      // An order is refused, as it cannot be carried out.
      const refused = await move('deployment/web');
      expect([refused.code, refused.stdout.split('\n')[1]]).toEqual([
        5,
        'deployment/web: 2 pods: Unmovable: 2 pods in member east: its policy says purgeMode: Never',
      ]);
      await kubectl(host, ['delete', 'workloadmigrations', '--all', '-n', namespace]);
      // Or leaves them, if that is what it is to do.
      const left = await move('deployment/web', '--leave-unmovable', '--wait', '--timeout', '90');
      expect(left.stdout.split('\n')[1]).toBe(
        'deployment/web: 2 pods: LeftBehind: 2 pods in member east: its policy says purgeMode: Never',
      );
      await kubectl(host, ['delete', 'workloadmigrations', '--all', '-n', namespace]);
      const ofWeb = (): string[] => evicted().filter((name) => name.startsWith('web-'));
      expect([ofWeb(), namesOf((await m.pods()).filter(isReleased))]).toEqual([[], []]);
      expect(namesOf(await settled(host, namespace, 'web', { east: 2 }))).toEqual(before);

      await asWritten(goOn);
      await settled(host, namespace, 'web', { west: 2 });
      expect(ofWeb().toSorted()).toEqual(before);
    } finally {
      await drained('-');
    }
  });

  test('within 5 s, also under way: what has begun is finished, and no other pod goes', async () => {
    await m.inUse(m.rules());
    await m.gatedAreReady(3);
    expect(await move('deployment/web')).toMatchObject({ code: 0 });
    const { metadata } = await m.released();
    await asWritten(stop);
    const stopped = Date.now();
    await until('the look after it is over', () => Date.now() - stopped > 5_000);
    await openUntil({ east: 2, west: 1 });
    // It is over with that, and leaves the others.
    const over = await until('it is over', async () => (await stored()).find(({ status }) => status?.finishTime));
    expect(over.status?.workloads).toEqual([
      expect.objectContaining({
        waiting: 2,
        moved: 1,
        reason: 'LeftBehind',
        message: '2 pods: its policy says purgeMode: Never',
      }),
    ]);
    expect([evicted(), namesOf((await m.pods()).filter(isReleased))]).toEqual([[metadata.name], []]);
    // So it takes another one for them.
    await asWritten(goOn);
    expect(await lookedAtAgain()).toEqual({
      report: 'deployment/web: 2 pods: Fits',
      released: [],
      evicted: [metadata.name],
    });
    expect(await move('deployment/web')).toMatchObject({ code: 0 });
    await openUntil({ west: 3 });
  });
});
