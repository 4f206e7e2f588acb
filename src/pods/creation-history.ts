import { HOST_LABEL, UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { isGone } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { acceptOf } from '../kube/metadata-only.ts';
import { isOlder } from '../kube/resource-version.ts';
import { PODS, resourcePath } from '../kube/resource.ts';
import { get, list } from '../kube/verbs.ts';
import type { WatchEvent } from '../kube/watch-decoder.ts';
import { watchQuery } from '../kube/watch-query.ts';
import { WatchRound } from '../kube/watch-round.ts';
import type { CreationIntent } from './creation-intent.ts';

/** How long the watch is asked for, in s. API servers tell how far they have come 2 s before its end. */
const WATCH_SECONDS = 5;
/** Without a word for so long the watch is given up, in ms. */
const SILENCE_MS = 10_000;

export type CreationHistory =
  /** It is there. */
  | { is: 'present'; memberPod: Pod }
  /** It was there after the intent was written, and is gone. */
  | { is: 'lost' }
  /** It never was there up to this resourceVersion. */
  | { is: 'absent'; upTo: string }
  /** The member does not remember that far back, and never will. */
  | { is: 'forgotten' }
  /** The API server did not say how far its answer goes. */
  | { is: 'unclear' };

/** The host's id in marks, and the UID of the host pod. */
interface Owner {
  hostId: string;
  uid: string;
}

interface HistoryOptions {
  monotonic: () => number;
  signal: AbortSignal;
}

/**
 * What came of the creation that a host pod speaks of: the member is asked for the pod and, when it has no such one, for all
 * that happened under that name since. Two requests, about 3 s; a third, past all caches of the API server, where it does not
 * remember or the pod came to life meanwhile. Rejects when the member cannot be read.
 */
export async function creationHistory(
  client: KubeClient,
  intent: CreationIntent,
  of: Owner,
  options: HistoryOptions,
): Promise<CreationHistory> {
  const told = await toldHistory(client, intent, of, options);
  if (told.is !== 'forgotten' && told.is !== 'came') return told;
  // A list, even by name, may come from a cache of the API server; a GET without a version never does.
  const memberPod = await copyNow(client, intent, of, options.signal);
  if (memberPod !== undefined) return { is: 'present', memberPod };
  return told.is === 'came' ? { is: 'lost' } : told;
}

function isCopyOf({ hostId, uid }: Owner, pod: Partial<Pod>): boolean {
  const labels = pod.metadata?.labels;
  return labels?.[HOST_LABEL] === hostId && labels[UID_LABEL] === uid;
}

/** The copy, past all caches of the API server; undefined: none of that name there is it. Rejects when the member cannot be read. */
export async function copyNow(
  client: KubeClient,
  { namespace, name }: Pick<CreationIntent, 'namespace' | 'name'>,
  of: Owner,
  signal: AbortSignal,
): Promise<Pod | undefined> {
  const pod = await ifThere(get<Pod>(client, PODS, { namespace, name }, { signal }));
  return pod !== undefined && isCopyOf(of, pod) ? pod : undefined;
}

/** By a list and a watch. `came`: it came to life after the list was made. */
async function toldHistory(
  client: KubeClient,
  intent: CreationIntent,
  of: Owner,
  options: HistoryOptions,
): Promise<CreationHistory | { is: 'came' }> {
  const { namespace, name, since } = intent;
  const fieldSelector = `metadata.name=${name}`;
  const { items, resourceVersion: upTo } = await list<Pod>(client, PODS, {
    namespace,
    fieldSelector,
    signal: options.signal,
  });
  const memberPod = items.find((pod) => isCopyOf(of, pod));
  if (memberPod !== undefined) return { is: 'present', memberPod };
  // A cluster that went back in time, or another one, has another history.
  if (since === '' || isOlder(upTo, since)) return { is: 'forgotten' };
  if (upTo === since) return { is: 'absent', upTo };
  const round = new WatchRound(options.monotonic, SILENCE_MS);
  let found: CreationHistory = { is: 'unclear' };
  let cameToLife = false;
  const answer = (history: CreationHistory): void => {
    found = history;
    round.stop();
  };
  const onEvent = ({ type, object }: WatchEvent): void => {
    if (type === 'ERROR') {
      const { code, reason } = object as { code?: unknown; reason?: unknown };
      if (code === 410 || reason === 'Expired' || reason === 'Gone') answer({ is: 'forgotten' });
      else round.stop();
      return;
    }
    const pod = object as Pod;
    if (type !== 'BOOKMARK') {
      if (!isCopyOf(of, pod)) return;
      cameToLife = type !== 'DELETED';
      if (type === 'DELETED') answer({ is: 'lost' });
      return;
    }
    const { resourceVersion } = pod.metadata;
    if (resourceVersion !== upTo && !isOlder(upTo, resourceVersion)) return;
    if (cameToLife) round.stop();
    else answer({ is: 'absent', upTo });
  };
  const request = {
    ...acceptOf(PODS, 'one'),
    path: resourcePath(PODS, namespace),
    query: watchQuery({ fieldSelector }, since, WATCH_SECONDS),
  };
  try {
    await round.run(client, request, WATCH_SECONDS, options.signal, onEvent);
  } catch (error) {
    if (isGone(error)) return { is: 'forgotten' };
    throw error;
  }
  return cameToLife ? { is: 'came' } : found;
}
