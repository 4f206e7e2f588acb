import { expect } from 'vitest';
import { until } from '../../hack/until.ts';
import type { WorkloadMigration } from '../../src/api/workload-migration.ts';
import type { WorkloadRebalancer } from '../../src/api/workload-rebalancer.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type Fields, isReady, podsOf, read } from '../fixtures/live-pods.ts';
import { deployment, settled, whereAre } from '../fixtures/scheduling.ts';
import { type CrashScenario, each, once } from './crash-rounds.ts';
import { isReleased, type MovesLab, THIRD } from './moves-lab.ts';

const API = '/apis/spillway.dev/v1alpha1';
const WEB = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
/** Those that people order stay where the others have to leave. */
const TOLERANT = { clusterTolerations: [{ key: 'drained', operator: 'Exists' }] };
/** Label by which the next pod knows the address of the one before it. */
const BEFORE = 'example.com/before';
const [RELEASE, EVICT, END_ABOVE, END_BELOW] = [
  'PATCH pods (host)',
  'POST pods/eviction (host)',
  'DELETE pods (host)',
  'DELETE pods (east)',
];

/** Moves of all kinds, in which the mover is killed. */
export class CrashScenarios {
  readonly #lab: MovesLab;
  /** As they were when they were seen last, also of those that are gone, by namespace; of rebalancers by name. */
  readonly #orders = new Map<string, KubeObject>();
  readonly #released = new Set<string>();
  readonly #addresses = new Map<string, string>();

  constructor(lab: MovesLab) {
    this.#lab = lab;
  }

  /** Until the signal aborts. */
  follow(signal: AbortSignal): Promise<void>[] {
    const { api } = this.#lab.host;
    return [
      api.follow(`${API}/workloadmigrations`, signal, ({ object }) => {
        this.#orders.set((object as KubeObject).metadata.namespace ?? '', object as KubeObject);
      }),
      api.follow(`${API}/workloadrebalancers`, signal, ({ object }) => {
        this.#orders.set((object as KubeObject).metadata.name, object as KubeObject);
      }),
      api.follow('/api/v1/pods', signal, ({ object }) => {
        const pod = object as Pod;
        if (isReleased(pod)) this.#released.add(pod.metadata.namespace ?? '');
      }),
    ];
  }

  get all(): readonly CrashScenario[] {
    return [
      this.#heal(),
      this.#loss(),
      this.#migration(),
      this.#rebalancer(),
      this.#statePreservation(),
      this.#giveBack(),
      this.#directly(),
    ];
  }

  async #runsIn(namespace: string, home: string): Promise<void> {
    await this.#lab.host.apply([deployment(namespace, 'web', 1, '100m')]);
    await settled(this.#lab.host, namespace, 'web', { [home]: 1 });
  }

  async #order(kind: string, namespace: string, name: string, spec: Fields): Promise<void> {
    const resource = `${kind.toLowerCase()}s`;
    const [path, metadata] =
      kind === 'WorkloadMigration'
        ? [`${API}/namespaces/${namespace}/${resource}`, { name, namespace }]
        : [`${API}/${resource}`, { name }];
    await this.#lab.host.api.call('POST', path, { apiVersion: 'spillway.dev/v1alpha1', kind, metadata, spec });
  }

  /** The order was deleted, as it is told to be when it is over, and the pod is there. */
  async #isCarriedOut(namespace: string, path: string): Promise<boolean> {
    const order = await read<KubeObject>(this.#lab.host, path);
    if (order !== undefined) throw new Error(`${path} is there: ${JSON.stringify(order)}`);
    return (await this.#lab.isAlone(namespace, 'west')) !== undefined;
  }

  /** It would go to west if it came now, and nothing moves it by itself. */
  async #isDisplaced(namespace: string, failover: Fields): Promise<void> {
    await this.#lab.prepare(namespace, failover, 'east', TOLERANT);
    await this.#runsIn(namespace, 'east');
    await this.#lab.rule(namespace, failover, ['west', 'east'], TOLERANT);
  }

  async #rebalance(namespace: string): Promise<void> {
    const spec = { workloads: [{ ...WEB, namespace }], ttlSecondsAfterFinished: 1 };
    await this.#order('WorkloadRebalancer', namespace, namespace, spec);
  }

  async #isRebalanced(namespace: string): Promise<boolean> {
    return await this.#isCarriedOut(namespace, `${API}/workloadrebalancers/${namespace}`);
  }

  #migration(): CrashScenario {
    const path = (namespace: string): string => `${API}/namespaces/${namespace}/workloadmigrations/all`;
    return {
      id: 'migration',
      what: 'a WorkloadMigration',
      // It fits, pods are moving, all have left.
      sites: [
        ...each('PATCH workloadmigrations/status (host)', 3),
        ...each('DELETE workloadmigrations (host)'),
        once('after', RELEASE),
        once('before', EVICT),
      ],
      fewest: 1,
      arrange: async (namespace) => {
        await this.#lab.prepare(namespace, {}, 'east', TOLERANT);
        await this.#runsIn(namespace, 'east');
      },
      begin: async (namespace) => {
        const spec = { workloads: [WEB], from: 'east', to: 'west', ttlSecondsAfterFinished: 1 };
        await this.#order('WorkloadMigration', namespace, 'all', spec);
      },
      isOver: async (namespace) => await this.#isCarriedOut(namespace, path(namespace)),
      expectWell: (namespace) => {
        this.#lab.expectMovedOnce(namespace);
        const { status } = this.#orders.get(namespace) as WorkloadMigration;
        expect(status?.finishTime, JSON.stringify(status)).toBeDefined();
        expect(status?.conditions).toMatchObject([
          { type: 'Fits', status: 'True' },
          { type: 'Complete', status: 'True', reason: 'Moved' },
        ]);
        expect(status?.workloads).toMatchObject([{ pods: 1, waiting: 0, moving: 0, moved: 1, reason: 'Moved' }]);
        return Promise.resolve();
      },
    };
  }

  #rebalancer(): CrashScenario {
    return {
      id: 'rebalancer',
      what: 'a WorkloadRebalancer',
      // It is looked at, all are where they are to be.
      sites: [
        ...each('PATCH workloadrebalancers/status (host)', 2),
        ...each('DELETE workloadrebalancers (host)'),
        once('before', RELEASE),
        once('after', EVICT),
      ],
      fewest: 1,
      arrange: async (namespace) => await this.#isDisplaced(namespace, {}),
      begin: async (namespace) => await this.#rebalance(namespace),
      isOver: async (namespace) => await this.#isRebalanced(namespace),
      expectWell: (namespace) => {
        this.#lab.expectMovedOnce(namespace);
        const { status } = this.#orders.get(namespace) as WorkloadRebalancer;
        expect(status?.finishTime, JSON.stringify(status)).toBeDefined();
        expect(status?.observedWorkloads).toMatchObject([{ result: 'Successful', reason: 'Rebalanced' }]);
        return Promise.resolve();
      },
    };
  }

  #statePreservation(): CrashScenario {
    const rules = [{ aliasLabelName: BEFORE, jsonPath: '{.podIP}' }];
    return {
      id: 'state',
      what: 'a move with statePreservation',
      // What the pod shows, its release, and the label of the next one.
      sites: [...each('PATCH workloadplacements/status (host)', 2), ...each(RELEASE, 3)],
      fewest: 1,
      arrange: async (namespace) => {
        await this.#isDisplaced(namespace, { cluster: { statePreservation: { rules } } });
        const [only] = await podsOf(this.#lab.host, namespace);
        this.#addresses.set(namespace, only?.status?.podIP ?? '');
      },
      begin: async (namespace) => await this.#rebalance(namespace),
      isOver: async (namespace) => await this.#isRebalanced(namespace),
      expectWell: async (namespace) => {
        this.#lab.expectMovedOnce(namespace);
        const { metadata } = await this.#lab.isAlone(namespace, 'west');
        expect(this.#addresses.get(namespace)).not.toBe('');
        expect(metadata.labels?.[BEFORE]).toBe(this.#addresses.get(namespace));
      },
    };
  }

  #giveBack(): CrashScenario {
    return {
      id: 'given-back',
      what: 'a give-back after a time-out',
      // The release, and its end.
      sites: [...each(RELEASE, 3), once('before', 'DELETE pods (west)')],
      fewest: 1,
      arrange: async (namespace) => {
        await this.#lab.prepare(namespace, { cluster: { gracePeriodSeconds: 3, onTimeout: 'GiveBack' } });
        await this.#lab.serves(namespace);
      },
      begin: async () => await this.#lab.taint(true),
      // Nobody lets the next one be Ready.
      isOver: async (namespace) => {
        if (!this.#released.has(namespace)) throw new Error(`${namespace}: none was released`);
        return (await this.#lab.isAlone(namespace, 'east')) !== undefined;
      },
      expectWell: (namespace) => {
        expect(this.#lab.evictions(namespace), this.#lab.told(namespace)).toEqual([]);
        return Promise.resolve();
      },
    };
  }

  #directly(): CrashScenario {
    return {
      id: 'directly',
      what: 'a move with purgeMode Directly',
      sites: [...each(EVICT), once('after', END_BELOW), once('before', END_ABOVE)],
      fewest: 0,
      arrange: async (namespace) => await this.#isDisplaced(namespace, { cluster: { purgeMode: 'Directly' } }),
      begin: async (namespace) => await this.#rebalance(namespace),
      isOver: async (namespace) => await this.#isRebalanced(namespace),
      expectWell: (namespace) => {
        this.#lab.expectMovedOnce(namespace);
        expect(this.#released.has(namespace)).toBe(false);
        return Promise.resolve();
      },
    };
  }

  async #runsInThird(namespace: string): Promise<void> {
    await this.#lab.prepare(namespace, { onMemberLost: { after: '1s', onHeal: 'KeepOriginal' } }, THIRD);
    await this.#runsIn(namespace, THIRD);
  }

  /** One was released as lost, and another one is Ready in west. */
  async #isReplaced(namespace: string): Promise<boolean> {
    const pods = await podsOf(this.#lab.host, namespace);
    const isThere = ({ spec }: Pod): boolean => spec.nodeName === 'west';
    if (pods.length === 2 && pods.some(isReleased) && pods.some((pod) => isThere(pod) && isReady(pod))) return true;
    throw new Error(
      `${namespace}: ${JSON.stringify(whereAre(pods))}, released ${String(pods.filter(isReleased).length)}`,
    );
  }

  #heal(): CrashScenario {
    return {
      id: 'heal',
      what: 'a heal with onHeal KeepOriginal',
      // The cost of the one that came, and the way back of the original.
      sites: [...each(RELEASE, 2), once('after', 'DELETE pods (west)'), once('before', END_ABOVE)],
      atOnce: 2,
      cutsLine: true,
      fewest: 1,
      arrange: async (namespace) => await this.#runsInThird(namespace),
      lead: async (namespace) => {
        this.#lab.cut(THIRD);
        await until('it is replaced', () => this.#isReplaced(namespace), { timeoutMs: 120_000 });
      },
      begin: () => Promise.resolve(this.#lab.proxies[THIRD]?.clear()),
      isOver: async (namespace) => (await this.#lab.isAlone(namespace, THIRD)) !== undefined,
      expectWell: (namespace) => Promise.resolve(this.#lab.expectMovedOnce(namespace, [THIRD, 'west'], 0)),
    };
  }

  #loss(): CrashScenario {
    return {
      id: 'loss',
      what: 'the loss of a member with onHeal KeepOriginal',
      sites: each(RELEASE),
      cutsLine: true,
      // Pods of a lost member are not Ready in the end.
      fewest: 0,
      arrange: async (namespace) => await this.#runsInThird(namespace),
      begin: () => Promise.resolve(this.#lab.cut(THIRD)),
      isOver: async (namespace) => await this.#isReplaced(namespace),
      expectWell: async (namespace) => {
        this.#lab.proxies[THIRD]?.clear();
        const isAtHome = async (): Promise<boolean> => (await this.#lab.isAlone(namespace, THIRD)) !== undefined;
        await until('the original is back', isAtHome, { timeoutMs: 120_000 });
        this.#lab.expectMovedOnce(namespace, [THIRD, 'west'], 0);
      },
    };
  }
}
