import { describe, expect, it } from 'vitest';
import { HOST_LABEL, NODE_LABEL, OUT_OF_SERVICE_TAINT, UID_LABEL } from '../../../src/api/marks.ts';
import { NO_TROUBLE } from '../network.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';
import { World } from '../world.ts';
import { FencingOracle } from './fencing-oracle.ts';

const PODS = '/api/v1/namespaces/shop/pods';
const BY = 'a#1';
const ENDED_AT = 60_000;

function copy(name: string): SimObject {
  const labels = { [HOST_LABEL]: 'host', [NODE_LABEL]: 'west', [UID_LABEL]: `${name}-uid` };
  return { kind: 'Pod', metadata: { name, namespace: 'shop', uid: `copy-of-${name}`, resourceVersion: '1', labels } };
}

/** One pod is ended by an administrator's word while its copy is stored, and a copy of another one, asked for at `askedAt` (ms), is made. */
function foundWhenAskedAt(askedAt: number): string[] {
  const world = new World(1, { ca: '', hasRules: false, hasResidence: false });
  const found: string[] = [];
  const oracle = new FencingOracle(world, (_oracle, what) => found.push(what));
  const west = world.members.get('west');
  if (west === undefined) throw new Error('there is no such member');
  world.network.troubles.set(west.origin, { ...NO_TROUBLE, cutToServer: true, cutToClient: true });
  const spec = { taints: [{ key: OUT_OF_SERVICE_TAINT, effect: 'NoSchedule' }] };
  const node = { kind: 'Node', metadata: { name: 'west', uid: 'west', resourceVersion: '1' }, spec };
  oracle.changed({ cluster: world.host, object: node, type: 'ADDED', at: 0 } as unknown as Change);
  west.api.put(`${PODS}/ended`, copy('ended'));

  const asks = (): void => {
    const query = 'fieldValidation=Strict';
    const outgoing = { method: 'POST', path: `${PODS}?${query}`, body: JSON.stringify(copy('made')) };
    oracle.sent({ origin: west.origin, outgoing, path: PODS, query, owner: { name: BY } } as unknown as Call);
  };
  const ends = (): void => {
    const metadata = { name: 'ended', namespace: 'shop', uid: 'ended-uid', resourceVersion: '1' };
    oracle.removes({ metadata, spec: { nodeName: 'west' } }, BY);
    // Where that is written down is not looked at here.
    found.length = 0;
  };
  const turns = [
    { at: askedAt, turn: asks },
    { at: ENDED_AT, turn: ends },
  ];
  for (const { at, turn } of turns.sort((a, b) => a.at - b.at)) {
    world.loop.now = at;
    turn();
  }
  world.loop.now = ENDED_AT + 20_000;
  oracle.makes({ object: copy('made'), by: BY, cluster: west } as unknown as Change, 10_000, 0);
  return found;
}

describe('the oracle of fenced pods', () => {
  it('blames nobody for a copy that was asked for before another pod was ended, as behind a slow webhook', () => {
    expect(foundWhenAskedAt(ENDED_AT - 40_000)).toEqual([]);
  });

  it('blames who asks for a copy before that of an ended pod is told to end', () => {
    expect(foundWhenAskedAt(ENDED_AT + 10_000)).toEqual(['a#1 makes made in west before it ends ended, which is back']);
  });
});
