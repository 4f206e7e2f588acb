import { expect, it } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeClient, KubeRequest } from '../../src/kube/client.ts';
import { monotonic } from '../../src/kube/clock.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { creationHistory, type CreationHistory } from '../../src/pods/creation-history.ts';
import { HOST_ID, memberPod } from '../fixtures/pods.ts';

const INTENT = { member: 'east', namespace: 'shop', name: 'web-0', since: '20' };
const OF = { hostId: HOST_ID, uid: 'host-uid' };

interface Said {
  /** What the list holds, at version 30. */
  items?: Pod[];
  /** What the watch says before it ends. */
  events?: { type: string; object: unknown }[];
  refuses?: number;
  /** What has the name when it is read after all that. */
  now?: Pod;
}

const at = (resourceVersion: string): { type: string; object: unknown } => ({
  type: 'BOOKMARK',
  object: { kind: 'Pod', metadata: { resourceVersion } },
});
const copy = (resourceVersion: string): Pod => memberPod({ metadata: { resourceVersion } });

async function ask({ items = [], events = [], refuses, now }: Said): Promise<CreationHistory> {
  const client = {
    cluster: 'east',
    request: ({ path }: KubeRequest) => {
      const list = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '30' }, items };
      if (path.endsWith('/pods')) return Promise.resolve(list);
      if (now !== undefined) return Promise.resolve(now);
      const status = { kind: 'Status', code: 404, reason: 'NotFound' } as const;
      throw new ApiError({ cluster: 'east', method: 'GET', path, code: 404, status });
    },
    receive: (r: KubeRequest, onData: (chunk: Buffer) => void): Promise<void> => {
      const query = { resourceVersion: '20', fieldSelector: 'metadata.name=web-0', watch: true };
      expect(r).toMatchObject({ query, managedFields: false });
      if (refuses !== undefined) {
        const status = { kind: 'Status', code: refuses } as const;
        throw new ApiError({ cluster: 'east', method: 'GET', path: r.path, code: refuses, status });
      }
      for (const event of events) onData(Buffer.from(`${JSON.stringify(event)}\n`));
      return Promise.resolve();
    },
  } as unknown as KubeClient;
  return await creationHistory(client, INTENT, OF, { monotonic, signal: new AbortController().signal });
}

const added = { type: 'ADDED', object: copy('31') };
const deleted = { type: 'DELETED', object: copy('32') };
const another = { type: 'ADDED', object: memberPod({ metadata: { labels: {}, resourceVersion: '40' } }) };
const expired = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } };

it.each<[string, Said, CreationHistory['is']]>([
  ['a pod that the list has', { items: [copy('25')] }, 'present'],
  [
    'a pod of somebody else in the list, and nothing of ours',
    { items: [another.object], events: [at('30')] },
    'absent',
  ],
  ['nothing up to the list', { events: [at('30')] }, 'absent'],
  ['nothing beyond the list', { events: [at('31')] }, 'absent'],
  ['another pod of that name', { events: [another, at('41')] }, 'absent'],
  ['a pod that came to life after the list', { events: [added, at('31')], now: copy('33') }, 'present'],
  ['so, and no more how far that goes', { events: [added], now: copy('33') }, 'present'],
  ['so, and it is gone by now', { events: [added, at('31')] }, 'lost'],
  ['so, and another pod has the name by now', { events: [added, at('31')], now: another.object }, 'lost'],
  ['a pod that came and went', { events: [added, deleted] }, 'lost'],
  ['the end of a pod alone', { events: [deleted] }, 'lost'],
  ['less than the list', { events: [at('29')] }, 'unclear'],
  ['nothing at all', {}, 'unclear'],
  ['another pod, and nothing about how far that goes', { events: [another] }, 'unclear'],
  ['that it is too long ago', { events: [expired] }, 'forgotten'],
  ['so before it begins', { refuses: 410 }, 'forgotten'],
  ['so, and has a pod that its list did not have', { refuses: 410, now: copy('25') }, 'present'],
  ['so, and has a pod of somebody else', { events: [expired], now: another.object }, 'forgotten'],
  ['an error', { events: [{ type: 'ERROR', object: { kind: 'Status', code: 500 } }] }, 'unclear'],
])('when the member says %s', async (_, said, is) => {
  expect(await ask(said)).toMatchObject({ is });
});

it('a member that cannot be asked is no answer', async () => {
  await expect(ask({ refuses: 503 })).rejects.toMatchObject({ code: 503 });
});
