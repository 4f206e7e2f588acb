import { hostUidOf } from '../pod-shapes.ts';
import type { SimObject } from '../sim-cluster.ts';
import type { Call } from '../sim-pool.ts';

const PODS = /\/namespaces\/[^/]+\/pods$/;
/** By call, which several oracles ask about. */
const known = new WeakMap<Call, string>();

/** UID of the host pod, where a process asks for a copy. */
export function createdFor(call: Call): string | undefined {
  const { owner, outgoing, path, query } = call;
  if (owner === undefined || outgoing.method !== 'POST' || outgoing.body === null || !PODS.test(path)) return undefined;
  if (query.includes('dryRun=')) return undefined;
  const uid = known.get(call) ?? hostUidOf(JSON.parse(String(outgoing.body)) as SimObject);
  if (uid !== undefined) known.set(call, uid);
  return uid;
}
