import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { KubeClient, KubeRequest } from '../../../src/kube/client.ts';
import { EventWatch } from '../../../src/pods/events/event-watch.ts';

it('reads no managed fields of the Event by which it learns whether it may read them all', async () => {
  const stop = new AbortController();
  const asked: KubeRequest[] = [];
  const request = (one: KubeRequest): Promise<object> => {
    asked.push(one);
    stop.abort();
    return Promise.resolve({ items: [] });
  };
  const watch = new EventWatch({
    client: { cluster: 'east', request } as unknown as KubeClient,
    kinds: [],
    wanted: () => true,
    take: () => undefined,
    logger: pino({ enabled: false }),
  });
  await watch.run(stop.signal);
  expect(asked).toMatchObject([{ path: '/api/v1/events', query: { limit: 1 }, managedFields: false }]);
});
