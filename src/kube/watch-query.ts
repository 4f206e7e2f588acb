import type { Selection } from './list-pages.ts';
import type { Query } from './request.ts';

/** What a watch asks for: all after `from`; without it first everything there is (KEP-3157). */
export function watchQuery(selection: Selection, from: string | undefined, timeoutSeconds: number): Query {
  const { labelSelector, fieldSelector } = selection;
  return {
    labelSelector,
    fieldSelector,
    watch: true,
    allowWatchBookmarks: true,
    timeoutSeconds,
    resourceVersion: from,
    ...(from === undefined ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' } : {}),
  };
}
