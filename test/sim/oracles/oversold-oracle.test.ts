import { describe, expect, it } from 'vitest';
import { HOST_LABEL, MEMBER_LABEL, NODE_LABEL, UID_LABEL } from '../../../src/api/marks.ts';
import type { JsonObject } from '../../../src/kube/json-equal.ts';
import { bind } from '../host-scheduler.ts';
import type { SimCluster, SimObject } from '../sim-cluster.ts';
import { PATHS, World } from '../world.ts';
import { OversoldOracle } from './oversold-oracle.ts';

const PODS = PATHS.pods('shop');
const BY = 'a#1';
/** Behind which there are 4 CPUs on west-1 and 3 on west-2. */
const NODE = 'west-gen';
/** When the process knows all that is in it. */
const FROM = 100_000;

/** Pods come to a member with little room. */
class Coming {
  readonly found: string[] = [];
  readonly #world = new World(1, { ca: '', hasRules: true, hasResidence: false, isCrowded: true });
  readonly #west: SimCluster;

  constructor() {
    const west = this.#world.members.get('west');
    if (west === undefined) throw new Error('there is no such member');
    this.#west = west;
    west.create('setup', PATHS.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const oracle = new OversoldOracle(this.#world, (_oracle, what) => this.found.push(what));
    this.#world.onChange.push((change) => oracle.changed(change));
    const labels = { [MEMBER_LABEL]: 'west' };
    this.#world.host.create(BY, PATHS.nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, labels } });
    this.#world.loop.now = FROM;
  }

  after(ms: number): void {
    this.#world.loop.now += ms;
  }

  /** It is bound in the host, and its copy is made. */
  sent(name: string, cpu: number): void {
    const { host } = this.#world;
    host.create('user', PODS, pod(name, cpu));
    const made = this.#stored(host, name);
    bind(host, `${PODS}/${name}`, made, NODE);
    this.after(10);
    const labels = { [HOST_LABEL]: 'host', [NODE_LABEL]: NODE, [UID_LABEL]: made.metadata.uid };
    this.#west.create(BY, PODS, pod(name, cpu, labels));
  }

  /** The member's scheduler puts its copy on a node. */
  bound(name: string, node: string): void {
    bind(this.#west, `${PODS}/${name}`, this.#stored(this.#west, name), node);
  }

  /** The member's scheduler has no node for its copy. */
  stuck(name: string): void {
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node fits' };
    this.#west.patch('scheduler', `${PODS}/${name}/status`, { status: { conditions: [condition] } });
  }

  left(name: string): void {
    this.#west.remove('kubelet', `${PODS}/${name}`, { gracePeriodSeconds: 0 });
  }

  #stored(cluster: SimCluster, name: string): SimObject {
    const stored = cluster.get(`${PODS}/${name}`);
    if (stored === undefined) throw new Error(`${cluster.name} has no pod ${name}`);
    return stored;
  }
}

function pod(name: string, cpu: number, labels: Record<string, string> = {}): JsonObject {
  const containers = [{ name: 'main', image: 'busybox', resources: { requests: { cpu: String(cpu) } } }];
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop', labels }, spec: { containers } };
}

/** A pod of 3 CPUs came when west-1 was free, and finds 2 on each node: the member's scheduler put the others on both. */
function withABigOneThatIsLeft(): Coming {
  const coming = new Coming();
  coming.sent('big', 3);
  coming.sent('small', 2);
  coming.sent('smaller', 1);
  coming.bound('small', 'west-1');
  coming.bound('smaller', 'west-2');
  return coming;
}

describe('the oracle of what is sold twice', () => {
  it('blames nobody for a small pod that passes by a big one, as soon as the member has no node for that', () => {
    const coming = withABigOneThatIsLeft();
    coming.stuck('big');
    coming.after(1_000);
    coming.sent('passes-by', 2);
    expect(coming.found).toEqual([]);
  });

  it('blames who gives the room of a copy away that is on its way to a node', () => {
    const coming = withABigOneThatIsLeft();
    coming.after(1_000);
    coming.sent('passes-by', 2);
    expect(coming.found).toEqual([`with passes-by there are 1 CPUs and 0 GPUs too many asked for behind ${NODE}`]);
  });

  it('blames who sends more than there is, however long another copy waits for a node', () => {
    const coming = withABigOneThatIsLeft();
    coming.stuck('big');
    coming.after(10_000);
    coming.sent('passes-by', 2);
    coming.sent('too-much', 3);
    expect(coming.found).toEqual([`with too-much there are 1 CPUs and 0 GPUs too many asked for behind ${NODE}`]);
  });

  it('blames nobody for a pod that is sent while one that was stuck gets its node, and who sends one later', () => {
    const coming = withABigOneThatIsLeft();
    coming.stuck('big');
    coming.after(1_000);
    coming.left('small');
    coming.bound('big', 'west-1');
    coming.sent('meanwhile', 4);
    expect(coming.found).toEqual([]);
    coming.after(5_000);
    coming.sent('later', 1);
    expect(coming.found).toEqual([`with later there are 2 CPUs and 0 GPUs too many asked for behind ${NODE}`]);
  });
});
