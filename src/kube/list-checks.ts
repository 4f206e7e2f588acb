import type { Logger } from 'pino';
import { DistrustError } from './distrust-error.ts';
import { ApiError, isNotFound } from './errors.ts';
import type { KubeClient } from './client.ts';
import { readListPage } from './list-page.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import type { Selection } from './list-pages.ts';
import { acceptOf } from './metadata-only.ts';
import type { KubeObject } from './object.ts';
import { resourcePath, type Resource } from './resource.ts';
import type { HistoryTimings, SeenHistory } from './seen-history.ts';
import { get } from './verbs.ts';

interface Asked extends Selection {
  client: KubeClient;
  resource: Resource;
}

interface Told {
  logger?: Logger | undefined;
  metrics?: InformerMetrics | undefined;
}

/** So many of the objects that a list lacks are looked for by name. */
const SAMPLE = 3;

/** How far the collection has come, by the smallest consistent read there is. */
export async function currentVersion(o: Asked, signal: AbortSignal): Promise<string> {
  const { client, resource, namespace, labelSelector, fieldSelector } = o;
  const path = resourcePath(resource, namespace);
  const raw = await client.request({
    ...acceptOf(resource, 'list'),
    path,
    query: { labelSelector, fieldSelector, limit: 1 },
    signal,
  });
  return readListPage({ cluster: client.cluster, method: 'GET', path }, resource, raw).resourceVersion;
}

/** @throws DistrustError for the version of a consistent read that is older than what was seen before, see SeenHistory. */
export function checkOnward(
  version: string,
  history: SeenHistory,
  { turnedBackMs }: HistoryTimings,
  { client: { cluster }, resource: { plural: resource }, metrics, logger }: Asked & Told,
): void {
  const older = `${cluster} listed ${resource} of resourceVersion ${version}, but ${history.newest} was seen before`;
  const labels = { cluster, resource };
  switch (history.judge(version)) {
    case 'onward':
      return;
    case 'turned':
      metrics?.turnedBack.inc(labels);
      logger?.warn(labels, `${older}; it goes on from there, so this is the present now`);
      return;
    case 'backward':
      throw new DistrustError(
        'backward',
        `${older}; what is known is kept unless the cluster goes on like this for ${turnedBackMs / 1000} s (was etcd restored from a backup?)`,
      );
  }
}

/**
 * Objects that an empty list says are gone must not be found by name either: caches of API servers and things between have
 * shown nothing where there was much. What may not be read by name proves nothing, nor does what is selected by labels,
 * which may have changed. @throws DistrustError `empty`.
 */
export async function checkGone(o: Asked, objects: Iterable<KubeObject>, signal: AbortSignal): Promise<void> {
  if (o.labelSelector !== undefined || !isFixed(o.fieldSelector)) {
    return;
  }
  let asked = 0;
  for (const { metadata } of objects) {
    if (asked++ === SAMPLE) {
      return;
    }
    try {
      const { namespace, name, uid } = metadata;
      const found = await get(o.client, o.resource, { namespace, name }, { signal });
      if (found.metadata.uid === uid) {
        const { cluster } = o.client;
        throw new DistrustError(
          'empty',
          `${cluster} lists no ${o.resource.plural}, but ${name} is there; all are kept`,
        );
      }
    } catch (error) {
      if (error instanceof ApiError && [403, 405].includes(error.code)) {
        return;
      }
      if (!isNotFound(error)) {
        throw error;
      }
    }
  }
}

/** Selects by what never changes in the life of an object, once it is selected. */
function isFixed(fieldSelector: string | undefined): boolean {
  return (
    fieldSelector === undefined || fieldSelector.split(',').every((term) => /^(metadata\.|spec\.nodeName=)/.test(term))
  );
}
