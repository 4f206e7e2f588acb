import { malformed } from './answer.ts';
import type { KubeClient, KubeRequest, Query } from './client.ts';
import { readListPage } from './list-page.ts';
import type { KubeObject } from './object.ts';
import { resourcePath, type Resource } from './resource.ts';

export interface Selection {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

const PAGE_SIZE = 500;

/**
 * Reads a collection page by page and hands each page on, so that memory holds one page of raw objects at a time.
 * All pages are of one resourceVersion, which is returned. Without `resourceVersion` it is a consistent (quorum) read.
 * ApiError 410 when the server forgets that version between two pages; TransportError `malformed` for what is no list.
 */
export async function readPages(
  client: KubeClient,
  resource: Resource,
  o: Selection & {
    limit?: number | undefined;
    resourceVersion?: string | undefined;
    query?: Query | undefined;
    request?: Pick<KubeRequest, 'signal' | 'deadlineMs' | 'retry'>;
  },
  take: (items: KubeObject[]) => void,
): Promise<string> {
  const path = resourcePath(resource, o.namespace);
  const where = { cluster: client.cluster, method: 'GET', path };
  let next = '';
  let resourceVersion = '';
  for (;;) {
    const raw = await client.request({
      ...o.request,
      path,
      gzip: true,
      query: {
        ...o.query,
        labelSelector: o.labelSelector,
        fieldSelector: o.fieldSelector,
        limit: o.limit ?? PAGE_SIZE,
        resourceVersion: next === '' ? o.resourceVersion : undefined,
        continue: next === '' ? undefined : next,
      },
    });
    const page = readListPage(where, resource, raw);
    if (next !== '' && page.resourceVersion !== resourceVersion) {
      throw malformed(where, 'its pages are of different resourceVersions');
    }
    resourceVersion = page.resourceVersion;
    take(page.items);
    if (page.next === '') {
      return resourceVersion;
    }
    if (page.next === next) {
      throw malformed(where, 'its pages never end');
    }
    next = page.next;
  }
}
