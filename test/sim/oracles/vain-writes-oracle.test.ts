import { describe, expect, it } from 'vitest';
import type { Line } from '../network.ts';
import type { SimCluster } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import type { WatchFault, WatchStream } from '../watch-stream.ts';
import { World } from '../world.ts';
import { VainWritesOracle } from './vain-writes-oracle.ts';

const PODS = '/api/v1/namespaces/shop/pods';
const WEB = `${PODS}/web`;
const OWNER = { name: 'a#1' } as Call['owner'];

function callOf(origin: string, method: string, path: string, body: object | null, askedAt: number, query = ''): Call {
  const headers = ['content-type', 'application/merge-patch+json'];
  const outgoing = { method, path, headers, body: body === null ? null : JSON.stringify(body) };
  return { origin, outgoing, path, query, owner: OWNER, askedAt } as unknown as Call;
}

interface Stage {
  readonly west: SimCluster;
  readonly found: string[];
  /** The process sends such a patch at that moment (ms), which is carried out; `isAnswered`: and hears of it. */
  readonly patch: (at: number, body: object, isAnswered?: boolean) => void;
  readonly follow: (fault?: WatchFault) => void;
}

/** A pod in a member, of which a process was told at the beginning. */
function staged(): Stage {
  const world = new World(1, { ca: '', hasRules: false, hasResidence: false });
  const found: string[] = [];
  const oracle = new VainWritesOracle(world, (name, what) => found.push(`${name}: ${what}`));
  world.onVainWrite = (cluster, call) => oracle.changedNothing(cluster, call);
  const west = world.members.get('west');
  if (west === undefined) throw new Error('there is no such member');
  const pod = { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'web', namespace: 'shop', uid: 'web' }, status: {} };
  west.api.put(WEB, pod);
  const listed = JSON.stringify({ items: [west.get(WEB)] });
  oracle.received(callOf(west.origin, 'GET', '/api/v1/pods', null, 0), listed);
  const line = { whole: () => undefined } as unknown as Line;
  return {
    west,
    found,
    patch: (at, body, isAnswered = true) => {
      world.loop.now = at;
      const call = callOf(west.origin, 'PATCH', `${WEB}/status`, body, at);
      oracle.sent(call);
      west.take(call, line);
      if (isAnswered) oracle.received(call, '{}');
    },
    follow: (fault) => {
      const watch = { collection: '/api/v1/pods', call: { owner: OWNER }, fault, wake: () => undefined };
      west.watches.add(watch as unknown as WatchStream);
    },
  };
}

const RUNNING = { status: { phase: 'Running' } };
/** When every cache of the process shows what it was told at the beginning, in ms. */
const LATER = 60_000;

describe('the oracle of vain writes', () => {
  it('blames a patch that was made for the very version that it leaves as it is', () => {
    const { west, found, patch } = staged();
    patch(0, { metadata: { resourceVersion: west.get(WEB)?.metadata.resourceVersion }, ...RUNNING });
    expect(found).toEqual([]);
    patch(1, { metadata: { resourceVersion: west.get(WEB)?.metadata.resourceVersion }, ...RUNNING });
    expect(found).toEqual([expect.stringMatching(/^I8: a#1 patches .*\/web\/status in west with what is there/)]);
  });

  it('blames who has long been told what is there', () => {
    const { found, patch, follow } = staged();
    follow();
    patch(LATER, { status: {} });
    expect(found).toHaveLength(1);
  });

  it('blames nobody for what another one wrote a moment ago', () => {
    const { west, found, patch, follow } = staged();
    follow();
    west.patch('a#2', `${WEB}/status`, RUNNING);
    patch(LATER, RUNNING);
    expect(found).toEqual([]);
  });

  it('blames nobody who says again what was not answered', () => {
    const { found, patch, follow } = staged();
    follow();
    patch(1, { status: {} }, false);
    patch(LATER, { status: {} });
    expect(found).toEqual([]);
    patch(LATER, { status: {} });
    expect(found).toHaveLength(1);
  });

  it('blames nobody whose watches are broken, or who has none', () => {
    const { found, patch, follow } = staged();
    patch(LATER, { status: {} });
    follow('silent');
    patch(LATER, { status: {} });
    expect(found).toEqual([]);
  });

  it('looks at no rehearsal', () => {
    const { west, found } = staged();
    const { resourceVersion } = west.get(WEB)?.metadata ?? {};
    const call = callOf(west.origin, 'PATCH', WEB, { metadata: { resourceVersion } }, 0, 'dryRun=All');
    west.take(call, { whole: () => undefined } as unknown as Line);
    expect(found).toEqual([]);
  });
});
