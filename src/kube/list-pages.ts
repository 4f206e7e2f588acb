import { malformed } from './response-body.ts';
import type { KubeClient, KubeRequest, Query } from './client.ts';
import { TransportError } from './errors.ts';
import { TooLargeError } from './exchange.ts';
import { LimitError } from './limit-error.ts';
import { readListPage } from './list-page.ts';
import { acceptOf } from './metadata-only.ts';
import type { KubeObject } from './object.ts';
import { resourcePath, type Resource } from './resource.ts';

export interface Selection {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

const PAGE_SIZE = 500;
/** A page that is too long is asked for again with so many times fewer objects. */
const SHRINK = 8;
/** Pages in a row without any object: a server may send some, but not for ever. */
const MOST_EMPTY_PAGES = 100;

/**
 * Reads a collection page by page and hands each page on, so that memory holds one page of raw objects at a time.
 * All pages are of one resourceVersion, which is returned. Without `resourceVersion` it is a consistent (quorum) read.
 * ApiError 410 when the server forgets that version between two pages; TransportError `malformed` for what is no list;
 * LimitError when not even one object fits into an answer.
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
  let limit = o.limit ?? PAGE_SIZE;
  let empty = 0;
  /** So that nothing of a page is held while the next one is waited for. */
  const readPage = async (): Promise<{ next: string; isEmpty: boolean }> => {
    const raw = await client.request({
      ...o.request,
      ...acceptOf(resource, 'list'),
      path,
      gzip: true,
      query: {
        ...o.query,
        labelSelector: o.labelSelector,
        fieldSelector: o.fieldSelector,
        limit,
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
    return { next: page.next, isEmpty: page.items.length === 0 };
  };
  for (;;) {
    let page: Awaited<ReturnType<typeof readPage>>;
    try {
      page = await readPage();
    } catch (error) {
      if (!(error instanceof TransportError && error.cause instanceof TooLargeError)) throw error;
      if (limit === 1) throw new LimitError(`cluster ${client.cluster}: of ${path}, ${error.cause.message}`);
      limit = Math.max(1, Math.floor(limit / SHRINK));
      continue;
    }
    if (page.next === '') {
      return resourceVersion;
    }
    empty = page.isEmpty ? empty + 1 : 0;
    if (page.next === next || empty > MOST_EMPTY_PAGES) {
      throw malformed(where, 'its pages never end');
    }
    next = page.next;
  }
}
