/**
 * The node takes WebSockets of exec, attach and port-forward as they are. The API server (1.36 and newer) then hands
 * them through instead of translating them to SPDY, where a stream that breaks looks like one that ended well.
 */
const WEBSOCKETS = 'ExtendWebSocketsToKubelet';

/**
 * What a virtual node says that its agent can do (`status.declaredFeatures`, KEP-5328): what every node behind it says,
 * for the scheduler and for admission of updates, and what the streams to the member can do, which is not up to those
 * nodes: they end at the member's API server, and one of 1.31 or newer takes every WebSocket that a host sends.
 * Sorted and unique, as the API wants it. Undefined while the member's version or nodes are not known.
 */
export function declaredFeatures(
  shared: readonly string[] | undefined,
  memberVersion: string | undefined,
): readonly string[] | undefined {
  if (shared === undefined || memberVersion === undefined) return undefined;
  const features = new Set(shared);
  features.delete(WEBSOCKETS);
  if (takesWebSockets(memberVersion)) features.add(WEBSOCKETS);
  return [...features].sort((a, b) => (a < b ? -1 : 1));
}

/** `v1.36.3`, `v1.31.4-eks-abcdef`, `v1.32.0+k3s1`. */
function takesWebSockets(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 31);
}
